"""Other processes with connections of their own, for tests of what happens at the same time."""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.pool import AsyncResult

import frappe

_inherited = []


def in_other_processes(function: Callable, *arguments: tuple) -> list:
	"""Calls a function at the same time in as many processes as there are arguments; returns the results."""
	with beside(function, *arguments) as results:
		return results.get()


@contextmanager
def beside(function: Callable, *arguments: tuple) -> Iterator[AsyncResult]:
	"""The same, while the test does something else."""
	fork = multiprocessing.get_context("fork")
	with fork.Pool(len(arguments), initializer=connect_anew, initargs=(frappe.local.site,)) as pool:
		yield pool.starmap_async(function, arguments, chunksize=1)


def connect_anew(site: str) -> None:
	"""In a process that was forked."""
	_inherited.append(frappe.local.db)  # kept, unused: closing it would end the session of the test
	frappe.init(site, force=True)
	frappe.connect()
	frappe.set_user("Administrator")
