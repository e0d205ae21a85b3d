"""Handlers: the functions that job types may name. A row in a table must never be arbitrary code."""

from collections.abc import Callable

import frappe
from frappe import _

from dartwing_jobs.errors import InvalidJobError

HOOK = "dartwing_job_handlers"
MARK = "__dartwing_job__"


def job_handler(function: Callable | None = None, **job_type) -> Callable:
	"""Marks a function as a handler. Keyword arguments declare its Job Type (`type_name`, `category`, …)."""

	def mark(function: Callable) -> Callable:
		setattr(function, MARK, job_type)
		return function

	return mark(function) if function else mark


def resolve(path: str) -> Callable:
	"""The handler at a dotted path; raises unless it was marked or is listed in the hook."""
	try:
		function = frappe.get_attr(path)
	except (ImportError, AttributeError, frappe.ValidationError) as e:
		frappe.throw(_("Handler {0} cannot be imported: {1}").format(path, e), InvalidJobError)
	if not callable(function) or not (hasattr(function, MARK) or path in frappe.get_hooks(HOOK)):
		message = _("{0} is not a job handler: mark it with @job_handler, or list it in the hook {1}.")
		frappe.throw(message.format(path, HOOK), InvalidJobError)
	return function
