"""Routes below `/api`: documents and whitelisted methods, in two versions."""

from typing import Any

import frappe
from frappe import _, client
from frappe.utils.response import build_response, is_v2
from werkzeug.exceptions import NotFound
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response


def handle(request: Request) -> Response:
	try:
		endpoint, arguments = ROUTES.bind_to_environ(request.environ).match()
	except NotFound:
		raise frappe.DoesNotExistError from None
	data = endpoint(**arguments)
	if isinstance(data, Response):
		return data
	if data is not None:
		frappe.local.response["message" if endpoint is call_method and not is_v2() else "data"] = data
	return build_response("json")


def call_method(method: str) -> Any:
	if method == "ping":
		return "pong"
	if not is_v2():
		frappe.local.form_dict.cmd = method
	path = frappe.get_hooks("override_whitelisted_methods", {}).get(method, [method])[-1]
	try:
		found = frappe.get_attr(path)
	except Exception as error:
		if "." not in path or path.startswith("frappe."):
			raise frappe.NotOfferedError(f"The method {path}") from error
		frappe.throw(_("There is no method {0}: {1}").format(path, error))
	frappe.is_whitelisted(found)
	verb = frappe.local.request.method
	if verb not in frappe.allowed_http_methods_for_whitelisted_func[found]:
		frappe.throw(_("This cannot be called with {0}").format(verb), frappe.PermissionError)
	return frappe.call(found, **frappe.local.form_dict)


def list_documents(doctype: str) -> list[dict]:
	sent = frappe.local.form_dict
	size = sent.pop("limit", None) or 20
	sent.update(doctype=doctype, limit_page_length=size if is_v2() else sent.get("limit_page_length", size))
	return client.get_list(**sent)


def create(doctype: str) -> Any:
	frappe.local.form_dict.pop("doctype", None)
	return frappe.new_doc(doctype, **frappe.local.form_dict).insert()


def read(doctype: str, name: str) -> Any:
	if "run_method" in frappe.local.form_dict:
		raise frappe.NotOfferedError("The parameter run_method")
	return client.readable(doctype, name)


def update(doctype: str, name: str) -> Any:
	frappe.local.form_dict.pop("flags", None)
	doc = frappe.get_doc(doctype, name, for_update=True)
	doc.update(frappe.local.form_dict)
	return doc.save()


def delete(doctype: str, name: str) -> str:
	frappe.delete_doc(doctype, name, ignore_missing=False)
	frappe.local.response["http_status_code"] = 202
	return "ok"


RULES = [("/<doctype>", "GET", list_documents), ("/<doctype>", "POST", create)]
RULES += [("/<doctype>/<path:name>", verb, update) for verb in ("PUT", "PATCH")]
RULES += [("/<doctype>/<path:name>", "GET", read), ("/<doctype>/<path:name>", "DELETE", delete)]
ROUTES = Map(strict_slashes=False, merge_slashes=False)
for version, documents in {"": "resource", "/v1": "resource", "/v2": "document"}.items():
	ROUTES.add(Rule(f"/api{version}/method/<method>", endpoint=call_method))
	for rest, verb, endpoint in RULES:
		ROUTES.add(Rule(f"/api{version}/{documents}{rest}", methods=[verb], endpoint=endpoint))
