"""One way in for every method over HTTP: guests are asked to log in, arguments are read by their kinds."""

import inspect
from collections.abc import Callable
from typing import get_args, get_type_hints

import frappe
from frappe import _

from dartwing_jobs.api.arguments import refuse
from dartwing_jobs.document import shown
from dartwing_jobs.messages import throw

# Frappe's own, beside what a method is sent
NOT_ARGUMENTS = frozenset({"cmd", "csrf_token", "_"})


def endpoint(*verbs: str) -> Callable:
	"""Marks a method that may be called over HTTP, with these verbs.

	Guests get as far as the sentence that asks them to log in; Frappe would say that there is no such method.
	"""

	def wrap(method: Callable) -> Callable:
		parameters = inspect.signature(method).parameters
		readers = {name: _reader(hint) for name, hint in _hints(method).items() if name in parameters}

		def answer(*given, **sent):
			_refuse_guests()
			return method(**_read(method.__name__, parameters, readers, given, sent))

		answer.__name__, answer.__qualname__ = method.__name__, method.__qualname__
		answer.__module__, answer.__doc__ = method.__module__, method.__doc__
		answer.arguments = readers
		answer.required = [name for name, one in parameters.items() if one.default is one.empty]
		return frappe.whitelist(allow_guest=True, methods=list(verbs))(answer)

	return wrap


def _refuse_guests() -> None:
	if frappe.session.user == "Guest":
		throw(_("Log in, or send an API key: this is not for guests."), frappe.PermissionError)


def _hints(method: Callable) -> dict:
	return get_type_hints(method, include_extras=True)


def _reader(hint):
	"""What reads an argument of this annotation: its own metadata, or that of one of its alternatives."""
	(reader,) = [one.__metadata__[0] for one in (hint, *get_args(hint)) if hasattr(one, "__metadata__")]
	return reader


def _read(method: str, parameters: dict, readers: dict, given: tuple, sent: dict) -> dict:
	"""The arguments as the method takes them; what was not sent is left to its default."""
	sent = {**dict(zip(parameters, given, strict=False)), **sent}
	_refuse_unknown(method, set(sent) - set(parameters) - NOT_ARGUMENTS, parameters)
	read = {name: readers[name].read(name, sent[name]) for name in parameters if sent.get(name) is not None}
	for name, parameter in parameters.items():
		if parameter.default is parameter.empty and read.get(name) in (None, ""):
			refuse(_("{0} is missing."), name)
	return read


def _refuse_unknown(method: str, unknown: set, parameters: dict) -> None:
	if unknown:
		known = ", ".join(parameters) or _("none")
		names = ", ".join(sorted(map(shown, unknown))[:5])
		refuse(_("{0} has no argument {1}. It takes: {2}."), method, names, known)
