"""Version 1 of the API: `/api/resource` and `/api/method`."""

from typing import Any

import frappe
import frappe.handler
from frappe.api import documents
from werkzeug.routing import Rule


def document_list(doctype: str) -> list[dict]:
	sent = frappe.local.form_dict
	return documents.list_documents(doctype, sent.get("limit_page_length", sent.limit or 20))


def handle_rpc_call(method: str) -> Any:
	frappe.local.form_dict.cmd = method.split("/")[0]
	return frappe.handler.handle()


def create_doc(doctype: str) -> Any:
	return documents.create(doctype, _sent_values())


def update_doc(doctype: str, name: str) -> Any:
	return documents.update(doctype, name, _sent_values())


def delete_doc(doctype: str, name: str) -> str:
	frappe.delete_doc(doctype, name, ignore_missing=False)
	return documents.accepted()


def read_doc(doctype: str, name: str) -> Any:
	if "run_method" in frappe.local.form_dict:
		return execute_doc_method(doctype, name)
	return documents.read(doctype, name)


def execute_doc_method(doctype: str, name: str) -> Any:
	return documents.call_method(doctype, name, frappe.local.form_dict.pop("run_method"))


def _sent_values() -> dict:
	"""The body itself, or a JSON text in a form field called `data`."""
	sent = frappe.local.form_dict
	try:
		data = sent.data if sent.data is not None else frappe.local.request.get_data(as_text=True)
		values = frappe.parse_json(data)
	except ValueError:
		return sent
	return values if isinstance(values, dict) else sent


url_rules = [
	Rule("/method/<path:method>", endpoint=handle_rpc_call),
	Rule("/resource/<doctype>", methods=["GET"], endpoint=document_list),
	Rule("/resource/<doctype>", methods=["POST"], endpoint=create_doc),
	Rule("/resource/<doctype>/<path:name>/", methods=["GET"], endpoint=read_doc),
	Rule("/resource/<doctype>/<path:name>/", methods=["PUT"], endpoint=update_doc),
	Rule("/resource/<doctype>/<path:name>/", methods=["DELETE"], endpoint=delete_doc),
	Rule("/resource/<doctype>/<path:name>/", methods=["POST"], endpoint=execute_doc_method),
]
