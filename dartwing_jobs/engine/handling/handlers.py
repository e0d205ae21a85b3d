"""Handlers: the functions that job types may name. A row in a table must never be arbitrary code."""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from dataclasses import dataclass, fields
from types import FunctionType

import frappe
from frappe import _

from dartwing_jobs.errors import InvalidJobError, WorkNotDone
from dartwing_jobs.messages import throw

HOOK = "dartwing_job_handlers"
MARK = "__dartwing_job__"
# what is handed out in place of work: none of it is done before its caller asks for it
UNDONE = (Awaitable, Generator, AsyncGenerator)
_resolved: dict[tuple[str, str], Callable] = {}


@dataclass(frozen=True, kw_only=True)
class Declaration:
	"""The Job Type that a handler brings along. None leaves a field to its category or default."""

	job_type: str
	display_name: str | None = None
	description: str | None = None
	category: str | None = None
	job_queue: str | None = None
	priority: str | int | None = None
	timeout: int | None = None
	max_retries: int | None = None
	retry_mode: str | None = None
	retry_unknown_errors: str | None = None
	backoff_base_seconds: int | None = None
	backoff_cap_seconds: int | None = None
	isolation: str | None = None
	completion: str | None = None
	requires_permission: str | None = None
	deduplication_window: int | None = None
	retention_days: int | None = None
	max_snoozes: int | None = None
	allow_critical: bool | None = None
	allow_schedule: bool | None = None
	schema: dict | None = None
	writable_doctypes: list[str] | None = None
	allowed_secrets: list[str] | None = None


def job_handler(function: Callable | None = None, **options) -> Callable:
	"""Marks a function as a handler. Options declare its Job Type as well; see `Declaration`."""
	declaration = _declaration(options) if options else None

	def mark(function: Callable) -> Callable:
		if reason := why_unfit(function):
			raise TypeError(f"{function!r} cannot be a job handler: {reason}.")
		setattr(function, MARK, declaration)
		return function

	return mark(function) if function else mark


def handler_at(path: str) -> Callable:
	"""`resolve`, remembered for as long as a worker's process lives: code does not change in it."""
	key = frappe.local.site, path
	if key not in _resolved:
		_resolved[key] = resolve(path)
	return _resolved[key]


def declaration_of(function: Callable) -> Declaration | None:
	return vars(function).get(MARK) if type(function) is FunctionType else None


def why_unfit(function: object) -> str | None:
	"""Why something cannot be a handler; None when it can.

	By its type and not by what it says of itself: Frappe's proxies say whatever is asked of them.
	"""
	if type(function) is not FunctionType:
		return "only a plain function can be one"
	if inspect.iscoroutinefunction(function):
		return "nothing awaits an async def function, so it would never run"
	if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
		return "nothing asks for what a function with yield hands out, so it would never run"
	return None


def check(path: str, function: object) -> None:
	"""Raises unless what was found at a path can be called from there as a handler."""
	reason = why_unfit(function)
	if not reason and any(
		name.startswith(("_", "<")) for name in (path.rpartition(".")[2], function.__name__)
	):
		reason = _("a function without a public name is private to its module")
	if reason:
		throw(_("{0} cannot be a job handler: {1}.").format(path, reason), InvalidJobError)


def check_result(path: str, result: object) -> None:
	"""A handler that looks like any other may still return its work in place of doing it."""
	if not isinstance(result, UNDONE):
		return
	if isinstance(result, Generator) or inspect.iscoroutine(result):
		result.close()  # Python would complain later, somewhere else
	message = _("The work of {0} has not been run: it returned a {1}. Let it do its work before it returns.")
	raise WorkNotDone(message.format(path, type(result).__name__))


def resolve(path: str) -> Callable:
	"""The handler at a dotted path; raises unless it was marked or is listed in the hook."""
	try:
		function = frappe.get_attr(path)
	except (ImportError, AttributeError, frappe.ValidationError) as e:
		throw(_("Handler {0} cannot be imported: {1}").format(path, e), InvalidJobError)
	is_listed = path in frappe.get_hooks(HOOK)
	is_marked = type(function) is FunctionType and MARK in vars(function)
	if is_listed or is_marked:
		check(path, function)
	else:
		message = _("{0} is not a job handler: mark it with @job_handler, or list it in the hook {1}.")
		throw(message.format(path, HOOK), InvalidJobError)
	return function


def _declaration(options: dict) -> Declaration:
	"""Wrong options are the programmer's mistake, so they raise where the handler is imported."""
	if unknown := sorted(set(options) - {field.name for field in fields(Declaration)}):
		raise TypeError(f"@job_handler has no option {', '.join(unknown)}")
	if not options.get("job_type"):
		raise TypeError("@job_handler declares a Job Type only with its name: job_type=...")
	return Declaration(**options)
