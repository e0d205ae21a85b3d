"""Job Types that handlers declare: made when missing, kept up to date, never against an administrator.

A Job Type remembers in `declared` what was declared last. A field that still says so follows the declaration;
one that says something else was changed by somebody, and stays until it is set back.
"""

import json
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from types import ModuleType

import frappe
from frappe import _

from dartwing_jobs.engine.handling import handlers
from dartwing_jobs.engine.handling.handlers import HOOK, Declaration, declaration_of
from dartwing_jobs.engine.rules import priorities
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.messages import throw

DOCTYPE = "Job Type"
# options that are kept under another name
RENAMED = {"timeout": "default_timeout", "priority": "default_priority", "schema": "parameters_schema"}


def sync() -> list[str]:
	"""Brings the Job Types of all declared handlers up to date; returns the names of those that changed."""
	return [name for name, handler in _by_job_type().items() if _sync_one(name, handler)]


def _by_job_type() -> dict[str, Callable]:
	found: dict[str, Callable] = {}
	for handler in (handler for path in frappe.get_hooks(HOOK) for handler in _declaring_handlers(path)):
		name = declaration_of(handler).job_type
		first = found.setdefault(name, handler)
		if first is not handler:
			message = _("Job Type {0} is declared twice: by {1} and by {2}.")
			throw(message.format(name, _path(first), _path(handler)), InvalidJobError)
	return found


def _declaring_handlers(path: str) -> list[Callable]:
	"""The handler at a path, or those defined in the module there, as far as they declare something."""
	target = _load(path)
	if not isinstance(target, ModuleType):
		handlers.check(path, target)
	members = vars(target).values() if isinstance(target, ModuleType) else [target]
	own = [member for member in members if target is member or getattr(member, "__module__", None) == path]
	return [member for member in own if declaration_of(member)]


def _load(path: str):
	try:
		return import_module(path)
	except ModuleNotFoundError as error:
		# the path of a function is no module; a module that misses one of its own imports is another matter
		if error.name != path:
			raise
	return frappe.get_attr(path)


def _sync_one(name: str, handler: Callable) -> bool:
	declared = _as_fields(declaration_of(handler), handler)
	if not frappe.db.exists(DOCTYPE, name):
		_create(name, declared)
		return True
	return _update(frappe.get_doc(DOCTYPE, name), declared)


def _create(name: str, declared: dict) -> None:
	job_type = frappe.get_doc({"doctype": DOCTYPE, "type_name": name, **declared})
	job_type.insert(ignore_permissions=True)
	# what was left open is remembered too: an option that is declared later finds the field untouched
	_remember(job_type, {fieldname: job_type.get(fieldname) for fieldname in _declarable_fields()})


def _update(job_type, declared: dict) -> bool:
	last = frappe.parse_json(job_type.declared) if job_type.declared else {}
	untouched = {field for field in declared if field in last and _same(job_type.get(field), last[field])}
	changes = {field: declared[field] for field in untouched if not _same(last[field], declared[field])}
	if changes:
		job_type.update(changes).save(ignore_permissions=True)
	if last | declared != last:
		_remember(job_type, last | declared)
	return bool(changes)


def _remember(job_type, declared: dict) -> None:
	frappe.db.set_value(DOCTYPE, job_type.name, "declared", json.dumps(declared), update_modified=False)


def _as_fields(declaration: Declaration, handler: Callable) -> dict:
	"""What a declaration speaks of, as the fields and values that a Job Type stores."""
	given = {option: value for option, value in vars(declaration).items() if value is not None}
	name = given.pop("job_type")
	stored = {RENAMED.get(option, option): _as_stored(option, value) for option, value in given.items()}
	return {"display_name": name, "handler_method": _path(handler), **stored}


def _as_stored(option: str, value):
	if option == "schema":
		from dartwing_jobs import schemas

		return schemas.text(value)
	if isinstance(value, list | tuple):
		return "\n".join(value)
	return priorities.from_value(value) if option == "priority" else value


def _declarable_fields() -> list[str]:
	options = [field.name for field in fields(Declaration) if field.name != "job_type"]
	return ["handler_method", *(RENAMED.get(option, option) for option in options)]


def _same(one, other) -> bool:
	"""Forms and databases do not tell nothing from an empty text or a zero."""
	return (one or None) == (other or None)


def _path(handler: Callable) -> str:
	return f"{handler.__module__}.{handler.__qualname__}"
