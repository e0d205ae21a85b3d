"""HTTP answers made from `frappe.response` and from what was logged during the request."""

import datetime
import decimal
import json
import mimetypes
import sys
import uuid
from collections.abc import Iterable
from typing import Any

import frappe
import werkzeug.utils
from frappe.model.base_document import BaseDocument
from werkzeug.local import LocalProxy
from werkzeug.wrappers import Response


def build_response(response_type: str | None = None) -> Response:
	if "docs" in frappe.local.response and not frappe.local.response.docs:
		del frappe.local.response["docs"]
	kind = frappe.local.response.get("type") or response_type
	makers = {"json": as_json, "csv": as_csv, "txt": as_csv, "download": as_file, "binary": as_file}
	makers |= {"redirect": lambda: werkzeug.utils.redirect(frappe.local.response.location)}
	if kind not in makers:
		raise frappe.NotOfferedError(f"A response of type {kind}")
	return makers[kind]()


def as_json() -> Response:
	_add_logs()
	status = frappe.local.response.pop("http_status_code", None) or 200
	body = json.dumps(frappe.local.response, default=json_handler, separators=(",", ":"))
	return Response(body, status=status, mimetype="application/json")


def as_csv() -> Response:
	kind = frappe.local.response.type
	mimetype = "text/csv" if kind == "csv" else "text"
	response = Response(frappe.local.response["result"], mimetype=mimetype)
	name = f"{frappe.local.response['doctype']}.{kind}"
	response.headers.add("Content-Disposition", "attachment", filename=name)
	return response


def as_file() -> Response:
	name, binary = frappe.local.response["filename"], frappe.local.response.type == "binary"
	guessed = frappe.local.response.get("content_type") or mimetypes.guess_type(name)[0]
	mimetype = "application/octet-stream" if binary else guessed or "application/unknown"
	response = Response(frappe.local.response["filecontent"], mimetype=mimetype)
	shown_as = None if binary else frappe.local.response.get("display_content_as", "attachment")
	response.headers.add("Content-Disposition", shown_as, filename=name)
	return response


def report_error(status_code: int) -> Response:
	"""The body for the exception being handled, in the form of the API version that was called."""
	kind, error, _trace = sys.exc_info()
	trace = frappe.get_traceback() if _may_show_traceback(status_code) else ""
	if _is_v2():
		frappe.local.response["errors"] = [_error_v2(kind.__name__, error, trace)]
	else:
		frappe.local.response["exc_type"] = kind.__name__
		if trace:
			frappe.local.response["exception"] = trace.splitlines()[-1]
			frappe.local.response["exc"] = json.dumps([trace])
	response = build_response("json")
	response.status_code = status_code
	return response


def _error_v2(kind: str, error: BaseException, trace: str) -> dict[str, Any]:
	entry = {"type": kind} | ({"exception": trace} if trace else {})
	for message in list(frappe.local.message_log):
		if message.get("raise_exception") and str(message["message"]) == str(error):
			frappe.local.message_log.remove(message)
			return entry | {key: value for key, value in message.items() if key != "raise_exception"}
	return entry


def _may_show_traceback(status_code: int) -> bool:
	if status_code == 404 or frappe.local.flags.disable_traceback or not getattr(frappe.local, "db", None):
		return False
	return bool(frappe.db.get_single_value("System Settings", "allow_error_traceback"))


def _add_logs() -> None:
	messages = frappe.local.message_log
	if _is_v2():
		if messages:
			frappe.local.response["messages"] = messages
		return
	if messages:
		frappe.local.response["_server_messages"] = json.dumps([json.dumps(entry) for entry in messages])
	if frappe.local.flags.error_message:
		frappe.local.response["_error_message"] = frappe.local.flags.error_message


def _is_v2() -> bool:
	from frappe.api import ApiVersion, get_api_version

	return get_api_version() == ApiVersion.V2


def json_handler(value: Any) -> Any:
	if isinstance(value, datetime.date | datetime.time | datetime.timedelta | uuid.UUID | LocalProxy):
		return str(value)
	if isinstance(value, decimal.Decimal):
		return float(value)
	if isinstance(value, BaseDocument):
		return value.as_dict(no_nulls=True)
	if isinstance(value, Iterable):
		return list(value)
	if isinstance(value, Exception) or callable(value):
		return repr(value)
	raise TypeError(f"{type(value).__name__} cannot be written as JSON: {value!r}")
