"""Handlers: the functions that job types may name. A row in a table must never be arbitrary code."""

from collections.abc import Callable
from dataclasses import dataclass, fields

import frappe
from frappe import _

from dartwing_jobs.errors import InvalidJobError

HOOK = "dartwing_job_handlers"
MARK = "__dartwing_job__"
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
	backoff_base_seconds: int | None = None
	backoff_cap_seconds: int | None = None
	isolation: str | None = None
	requires_permission: str | None = None
	deduplication_window: int | None = None
	retention_days: int | None = None
	allow_critical: bool | None = None
	allow_schedule: bool | None = None
	schema: dict | None = None
	writable_doctypes: list[str] | None = None
	allowed_secrets: list[str] | None = None


def job_handler(function: Callable | None = None, **options) -> Callable:
	"""Marks a function as a handler. Options declare its Job Type as well; see `Declaration`."""
	declaration = _declaration(options) if options else None

	def mark(function: Callable) -> Callable:
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
	return getattr(function, MARK, None)


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


def _declaration(options: dict) -> Declaration:
	"""Wrong options are the programmer's mistake, so they raise where the handler is imported."""
	if unknown := sorted(set(options) - {field.name for field in fields(Declaration)}):
		raise TypeError(f"@job_handler has no option {', '.join(unknown)}")
	if not options.get("job_type"):
		raise TypeError("@job_handler declares a Job Type only with its name: job_type=...")
	return Declaration(**options)
