"""HTTP answers made from `frappe.response` and from what was logged during the request."""

import datetime
import decimal
import json
import sys
from collections.abc import Iterable
from typing import Any

import frappe
from frappe.model.base_document import BaseDocument
from werkzeug.wrappers import Response


def build_response(response_type: str) -> Response:
	answer, messages = frappe.local.response, frappe.local.message_log
	kind = answer.get("type") or response_type
	if kind == "binary":
		response = Response(answer.filecontent, mimetype="application/octet-stream")
		response.headers.add("Content-Disposition", None, filename=answer.filename)
		return response
	if kind != "json":
		raise frappe.NotOfferedError(f"A response of type {kind}")
	if not answer.get("docs"):
		answer.pop("docs", None)
	if messages:
		texts = json.dumps([json.dumps(entry) for entry in messages])
		answer |= {"messages": messages} if is_v2() else {"_server_messages": texts}
	if frappe.local.flags.error_message and not is_v2():
		answer["_error_message"] = frappe.local.flags.error_message
	status = answer.pop("http_status_code", None) or 200
	body = json.dumps(answer, default=json_handler, separators=(",", ":"))
	return Response(body, status=status, mimetype="application/json")


def report_error(status_code: int) -> Response:
	"""The body for the exception being handled, in the form of the API version that was called."""
	kind, error, _trace = sys.exc_info()
	shown = status_code != 404 and frappe.db.get_single_value("System Settings", "allow_error_traceback")
	trace, answer = frappe.get_traceback() if shown else "", frappe._dict(http_status_code=status_code)
	if is_v2():
		answer.errors = [{"type": kind.__name__, "message": str(error), "exception": trace}]
	else:
		answer.exc_type = kind.__name__
		if trace:
			answer.update(exception=trace.splitlines()[-1], exc=json.dumps([trace]))
	frappe.local.response = answer
	return build_response("json")


def is_v2() -> bool:
	return frappe.local.request.path.startswith("/api/v2/")


def json_handler(value: Any) -> Any:
	if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
		return str(value)
	if isinstance(value, decimal.Decimal):
		return float(value)
	if isinstance(value, BaseDocument):
		return value.as_dict(no_nulls=True)
	if isinstance(value, Iterable):
		return list(value)
	raise TypeError(f"{type(value).__name__} cannot be written as JSON: {value!r}")
