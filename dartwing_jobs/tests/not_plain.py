"""What may not be a handler, though it is marked; and handlers that return their work undone."""

import asyncio
from collections.abc import Callable
from functools import partial

from dartwing_jobs import job_handler
from dartwing_jobs.engine.handling.handlers import MARK


def mark(function: Callable) -> Callable:
	setattr(function, MARK, None)
	return function


@mark
class MarkedClass:
	def __init__(self, parameters=None, context=None):
		pass

	def method(self, parameters, context):
		pass

	def __call__(self, parameters, context):
		pass


@mark
def _private(parameters, context):
	pass


@mark
async def asynchronous(parameters, context):
	pass


@mark
def generator(parameters, context):
	yield


@mark
async def asynchronous_generator(parameters, context):
	yield


async def listed(parameters, context):
	pass


mark(MarkedClass.method)
public_name = _private
bound_method = MarkedClass().method
marked_object = mark(MarkedClass())
marked_lambda = mark(lambda parameters, context: None)
marked_partial = mark(partial(print))


@job_handler
def returns_coroutine(parameters, context):
	return listed(parameters, context)


@job_handler
def returns_generator(parameters, context):
	return (number for number in range(3))


@job_handler
def returns_asynchronous_generator(parameters, context):
	return asynchronous_generator(parameters, context)


@job_handler
def returns_future(parameters, context):
	return asyncio.new_event_loop().create_future()
