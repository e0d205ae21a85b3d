"""Remote calls: `/api/method/<path>` and the few names that need no path."""

from collections.abc import Callable
from typing import Any

import frappe
from frappe import _
from werkzeug.wrappers import Response


def handle() -> Response | None:
	"""Run `form_dict.cmd`; what it returns becomes `message`, unless it is a whole response."""
	command = frappe.local.form_dict.cmd
	data = execute_cmd(command) if command != "login" else None
	if isinstance(data, Response):
		return data
	if data is not None:
		frappe.local.response["message"] = data
	return None


def execute_cmd(cmd: str) -> Any:
	method = find_method(cmd)
	if method is not run_doc_method:
		check_callable(method)
	return frappe.call(method, **frappe.local.form_dict)


def find_method(path: str) -> Callable:
	overrides = frappe.get_hooks("override_whitelisted_methods", {}).get(path)
	path = overrides[-1] if overrides else path
	try:
		return frappe.get_attr(path) if "." in path else SHORT_NAMES[path]
	except Exception as error:
		frappe.throw(_("There is no method {0}: {1}").format(path, error))


def check_callable(method: Callable) -> None:
	frappe.is_whitelisted(method)
	is_valid_http_method(method)


def is_valid_http_method(method: Callable) -> None:
	used = frappe.local.request.method
	if used not in frappe.allowed_http_methods_for_whitelisted_func[method]:
		frappe.throw(_("This cannot be called with {0}").format(used), frappe.PermissionError)


@frappe.whitelist(allow_guest=True)
def ping() -> str:
	return "pong"


@frappe.whitelist(allow_guest=True)
def logout() -> None:
	frappe.local.login_manager.logout()
	frappe.db.commit()


def run_doc_method(
	method: str, docs: Any = None, dt: str | None = None, dn: str | None = None, args: Any = None
) -> None:
	"""A whitelisted method of a document, stored (dt, dn) or sent along (docs)."""
	doc = frappe.get_doc(dt, dn or dt) if dt else _sent_document(docs)
	if not doc.has_permission("read"):
		frappe.throw(_("You may not read this document"), frappe.PermissionError)
	bound = getattr(doc, method)
	check_callable(getattr(bound, "__func__", bound))
	args = frappe.parse_json(args or "{}")
	if not isinstance(args, dict):
		raise frappe.NotOfferedError("run_doc_method with arguments that are not an object")
	answer = doc.run_method(method, **args)
	frappe.local.response.docs.append(doc)
	if answer is not None:
		frappe.local.response["message"] = answer


def _sent_document(docs: Any) -> Any:
	doc = frappe.get_doc(frappe.parse_json(docs))
	doc._original_modified = doc.modified
	doc.check_if_latest()
	return doc


SHORT_NAMES = {"ping": ping, "logout": logout, "run_doc_method": run_doc_method}
