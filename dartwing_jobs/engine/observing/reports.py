"""The one way in which an error leaves the engine: as a text without secrets.

Frappe's own `log_error` writes the variables of every function on the way, and RQ keeps the text of what
escapes a message in Redis: both show what a handler was working with.
"""

import logging
import traceback
from collections.abc import Callable
from functools import wraps

import frappe

from dartwing_jobs.engine import sanitize
from dartwing_jobs.engine.observing import journal
from dartwing_jobs.errors import EngineFailed

LONGEST = 20_000
TITLE_LENGTH = 140


def text_of(error: BaseException) -> str:
	"""The traceback of an error and of its causes, without variables; of a very long one, its end."""
	return sanitize.end("".join(traceback.format_exception(error)), LONGEST)


def to_log(what: str, error: BaseException, level: int = logging.ERROR, about=None) -> None:
	"""Into the structured log: for when the database may not answer. `about` is a job, if it is one's."""
	error_class = f"{type(error).__module__}.{type(error).__qualname__}"
	journal.say(f"{sanitize.text(what)}\n{text_of(error)}", level, about, error_class)


def to_error_log(title: str, error: BaseException) -> None:
	"""Into Error Log, in the caller's transaction."""
	frappe.log_error(title=sanitize.text(title)[:TITLE_LENGTH], message=text_of(error))


def masked(function: Callable) -> Callable:
	"""For what a message or the scheduler calls: what escapes it has no secret, no variable and no cause."""

	@wraps(function)
	def call(*args, **kwargs):
		try:
			return function(*args, **kwargs)
		except BaseException as error:
			text = text_of(error)
		# not while the other one is handled: it would be kept as the context of this one
		raise EngineFailed(text)

	return call
