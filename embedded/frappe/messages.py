"""What is said to people: translated text, messages of a request, errors, logs."""

import inspect
import logging
import os
import sys
import traceback
from logging.handlers import RotatingFileHandler
from typing import Any, NoReturn

import frappe
from frappe.context import local
from frappe.types.frappedict import _dict


def _(msg: str, lang: str | None = None, context: str | None = None) -> str:
	return msg


def bold(text: str) -> str:
	return f"<strong>{text}</strong>"


def msgprint(
	msg: Any,
	title: str | None = None,
	raise_exception: bool | type[Exception] = False,
	as_table: bool = False,
	as_list: bool = False,
	indicator: str | None = None,
	alert: bool = False,
	primary_action: Any = None,
	is_minimizable: bool = False,
	wide: bool = False,
	*,
	realtime: bool = False,
) -> None:
	indicator = indicator or ("red" if raise_exception else None)
	extras = _dict(
		as_table=int(as_table and isinstance(msg, list | tuple)),
		as_list=int(as_list and isinstance(msg, list | tuple)),
		indicator=indicator,
		alert=int(alert),
		raise_exception=int(bool(raise_exception)),
		primary_action=primary_action,
		is_minimizable=is_minimizable,
		wide=wide,
	)
	out = _dict(message=msg, title=title or _("Message"), **{k: v for k, v in extras.items() if v})
	if not local.flags.mute_messages:
		_deliver(out, realtime)
	if raise_exception:
		is_class = inspect.isclass(raise_exception) and issubclass(raise_exception, Exception)
		raise (raise_exception if is_class else frappe.ValidationError)(msg)


def _deliver(out: _dict, realtime: bool) -> None:
	if realtime:
		frappe.publish_realtime(event="msgprint", message=out)
		return
	if local.flags.print_messages:
		print(f"Message: {out.message}")
	local.message_log.append(out)


def throw(
	msg: Any,
	exc: type[Exception] = frappe.exceptions.ValidationError,
	title: str | None = None,
	is_minimizable: bool = False,
	wide: bool = False,
	as_list: bool = False,
	primary_action: Any = None,
) -> NoReturn:
	options = {"is_minimizable": is_minimizable, "wide": wide, "as_list": as_list}
	msgprint(msg, title, exc, indicator="red", primary_action=primary_action, **options)
	raise AssertionError("msgprint did not raise")


def clear_messages() -> None:
	local.message_log = []


def get_message_log() -> list[dict]:
	return list(local.message_log)


def clear_last_message() -> None:
	local.message_log = local.message_log[:-1]


def get_traceback(with_context: bool = False) -> str:
	kind, value, tb = sys.exc_info()
	if not value:
		return ""
	bench = os.path.dirname(os.path.abspath(getattr(local, "sites_path", "."))) + "/"
	return "".join(traceback.format_exception(kind, value, tb)).replace(bench, "")


def errprint(msg: str) -> None:
	if not getattr(local, "request", None) or local.conf.developer_mode:
		print(msg)
	local.error_log.append({"exc": str(msg)})


def log(msg: str) -> None:
	local.debug_log.append(str(msg))


def log_error(
	title: str | None = None,
	message: str | None = None,
	reference_doctype: str | None = None,
	reference_name: str | None = None,
	*,
	defer_insert: bool = False,
) -> Any:
	if defer_insert:
		raise frappe.NotOfferedError("frappe.log_error(defer_insert=True)")
	if message and title and "\n" in title:
		title, message = message, title
	return frappe.get_doc(
		doctype="Error Log",
		method=title or "Error",
		error=str(message or get_traceback(with_context=True)),
		reference_doctype=reference_doctype,
		reference_name=reference_name,
	).insert(ignore_permissions=True)


def logger(
	module: str | None = None,
	with_more_info: bool = False,
	allow_site: bool = True,
	filter: Any = None,
	max_size: int = 100_000,
	file_count: int = 20,
) -> logging.Logger:
	name = f"{module or 'frappe'}-{getattr(local, 'site', None) or 'all'}"
	found = logging.getLogger(name)
	if not found.handlers:
		found.propagate = False
		found.setLevel(getattr(frappe, "log_level", None) or logging.WARNING)
		os.makedirs(os.path.join("..", "logs"), exist_ok=True)
		path = os.path.join("..", "logs", f"{module or 'frappe'}.log")
		handler = RotatingFileHandler(path, maxBytes=max_size, backupCount=file_count, delay=True)
		handler.setFormatter(logging.Formatter(f"%(asctime)s %(levelname)s {name} %(message)s"))
		found.addHandler(handler)
		if filter:
			found.addFilter(filter)
	return found
