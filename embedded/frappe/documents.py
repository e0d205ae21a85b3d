"""Documents by other ways than frappe.get_doc, JSON, and what may be called from outside."""

import datetime
import inspect
import json
import math
import secrets
from collections.abc import Callable, Iterable
from functools import cache as remember
from functools import partial, wraps
from typing import Any, ForwardRef, Union

import frappe
import pydantic
from frappe.context import local

whitelisted: list[Callable] = []
guest_methods: list[Callable] = []
allowed_http_methods_for_whitelisted_func: dict[Callable, list[str]] = {}


def get_last_doc(doctype: str, filters=None, order_by: str = "creation desc"):
	names = frappe.get_all(doctype, filters=filters, limit=1, order_by=order_by, pluck="name")
	return frappe.get_doc(doctype, names[0] if names else None)


def get_cached_doc(doctype: str, name: str | None = None):
	name = name or doctype
	return frappe.cache.get_value(f"document_cache::{doctype}::{name}", lambda: frappe.get_doc(doctype, name))


def clear_document_cache(doctype: str, name: str | None = None) -> None:
	"""Forgets all documents of the DocType: now, and what others read until the transaction ends."""
	clear = partial(frappe.cache.delete_keys, f"document_cache::{doctype}::")
	clear()
	local.db.after_commit.add(clear)
	local.db.after_rollback.add(clear)


def clear_cache(user: str | None = None, doctype: str | None = None) -> None:
	if doctype:
		frappe.cache.delete_value(f"doctype_meta::{doctype}")
		frappe.cache.delete_value(f"table_columns::{doctype}")
		frappe.controllers.get(local.site, {}).pop(doctype, None)
	elif not user:
		frappe.cache.delete_keys("")
		local.cache = {}
		frappe.controllers.pop(local.site, None)


def as_json(obj, indent: int | None = 1) -> str:
	return json.dumps(obj, indent=indent, sort_keys=True, default=json_handler, separators=(",", ": "))


def json_handler(value):
	if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
		return str(value)
	if isinstance(value, frappe.model.document.BaseDocument):
		return value.as_dict(no_nulls=True)
	if isinstance(value, Iterable):
		return list(value)
	raise TypeError(f"{type(value).__name__} cannot be written as JSON: {value!r}")


def parse_json(val):
	val = json.loads(val) if isinstance(val, str) else val
	return frappe._dict(val) if type(val) is dict else val


def generate_hash(length: int = 56) -> str:
	return secrets.token_hex(math.ceil(length / 2))[:length]


def whitelist(allow_guest: bool = False, methods: list[str] | None = None) -> Callable:
	def wrap(fn: Callable) -> Callable:
		fn = _checked(fn)
		allowed_http_methods_for_whitelisted_func[fn] = methods or ["GET", "POST", "PUT", "DELETE"]
		whitelisted.append(fn)
		guest_methods.extend([fn] if allow_guest else [])
		return fn

	return wrap


def is_whitelisted(method: Callable) -> None:
	if method not in (guest_methods if local.session.user == "Guest" else whitelisted):
		text = frappe._("{0} may not be called from outside").format(f"{method.__module__}.{method.__name__}")
		frappe.throw(text, frappe.PermissionError)


def _checked(func: Callable) -> Callable:
	"""Arguments sent from outside are checked and cast by their annotations."""
	signature, config = inspect.signature(func), pydantic.ConfigDict(arbitrary_types_allowed=True)
	adapter = remember(lambda n: pydantic.TypeAdapter(_accepted(signature.parameters[n]), config=config))

	@wraps(func)
	def checked(*args, **kwargs):
		if not (getattr(local, "request", None) or local.flags.in_test):
			return func(*args, **kwargs)
		call = signature.bind_partial(*args, **kwargs)
		for name, value in call.arguments.items():
			try:
				call.arguments[name] = adapter(name).validate_python(value)
			except (TypeError, pydantic.ValidationError) as error:
				raise frappe.FrappeTypeError(f"Argument {name} cannot be a {type(value).__name__}") from error
		return func(*call.args, **call.kwargs)

	return checked


def _accepted(parameter: inspect.Parameter):
	"""The annotation, widened by the default's type."""
	annotation = parameter.annotation
	parts = (annotation, *getattr(annotation, "__args__", ()))
	is_variable = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
	if annotation is parameter.empty or is_variable or any(isinstance(p, ForwardRef | str) for p in parts):
		return Any
	annotation = Union[int, bool, float] if annotation is bool else annotation  # noqa: UP007
	default = () if parameter.default is parameter.empty else (type(parameter.default),)
	return Union[(annotation, *default)]
