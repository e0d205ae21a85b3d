"""Version 2 of the API: `/api/v2/document`, `/api/v2/method` and `/api/v2/doctype`."""

from typing import Any

import frappe
import frappe.client
import frappe.handler
from frappe.api import documents
from werkzeug.routing import Rule


def handle_rpc_call(method: str, doctype: str | None = None) -> Any:
	if doctype:
		from frappe.modules.utils import load_doctype_module

		method = f"{load_doctype_module(doctype).__name__}.{method}"
	found = frappe.handler.find_method(method)
	frappe.handler.check_callable(found)
	return frappe.call(found, **frappe.local.form_dict)


def login() -> None:
	"""Nothing is left to do: the request's session was made before its route was looked up."""


def run_doc_method() -> Any:
	sent = frappe.local.form_dict
	frappe.handler.run_doc_method(sent.method, docs=sent.document, args=sent.kwargs)
	return frappe.local.response.pop("message", None)


def document_list(doctype: str) -> list[dict]:
	return documents.list_documents(doctype, frappe.local.form_dict.limit or 20)


def create_doc(doctype: str) -> Any:
	return documents.create(doctype, frappe.local.form_dict)


def update_doc(doctype: str, name: str) -> Any:
	return documents.update(doctype, name, frappe.local.form_dict)


def delete_doc(doctype: str, name: str) -> str:
	frappe.client.delete(doctype, name)
	return documents.accepted()


def get_meta(doctype: str) -> Any:
	frappe.only_for("All")
	return frappe.get_meta(doctype)


def count(doctype: str) -> int:
	from frappe.desk.reportview import get_count

	frappe.local.form_dict.doctype = doctype
	return get_count()


url_rules = [
	Rule("/method/login", endpoint=login),
	Rule("/method/logout", endpoint=frappe.handler.logout),
	Rule("/method/ping", endpoint=frappe.handler.ping),
	Rule("/method/run_doc_method", methods=["GET", "POST"], endpoint=run_doc_method),
	Rule("/method/<method>", endpoint=handle_rpc_call),
	Rule("/method/<doctype>/<method>", endpoint=handle_rpc_call),
	Rule("/document/<doctype>", methods=["GET"], endpoint=document_list),
	Rule("/document/<doctype>", methods=["POST"], endpoint=create_doc),
	Rule("/document/<doctype>/<path:name>/", methods=["GET"], endpoint=documents.read),
	Rule("/document/<doctype>/<path:name>/", methods=["PATCH", "PUT"], endpoint=update_doc),
	Rule("/document/<doctype>/<path:name>/", methods=["DELETE"], endpoint=delete_doc),
	Rule(
		"/document/<doctype>/<path:name>/method/<method>/",
		methods=["GET", "POST"],
		endpoint=documents.call_method,
	),
	Rule("/doctype/<doctype>/meta", methods=["GET"], endpoint=get_meta),
	Rule("/doctype/<doctype>/count", methods=["GET"], endpoint=count),
]
