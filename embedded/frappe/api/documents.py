"""What both versions of the API do with documents."""

import json
from typing import Any

import frappe
import frappe.client


def list_documents(doctype: str, page_length: Any) -> list[dict]:
	arguments = frappe.local.form_dict
	if isinstance(arguments.get("fields"), str):
		arguments["fields"] = json.loads(arguments["fields"])
	for flag in ("as_dict", "debug"):
		if isinstance(arguments.get(flag), str):
			arguments[flag] = arguments[flag].lower() in ("true", "1", "y", "yes")
	arguments["limit_page_length"] = page_length
	arguments.pop("doctype", None)
	return frappe.call(frappe.client.get_list, doctype, **arguments)


def create(doctype: str, values: dict) -> Any:
	return frappe.new_doc(doctype, **_without(values, "doctype")).insert()


def update(doctype: str, name: str, values: dict) -> Any:
	doc = frappe.get_doc(doctype, name, for_update=True)
	doc.update(_without(values, "flags"))
	doc.save()
	if doc.get("parenttype"):
		frappe.get_doc(doc.parenttype, doc.parent).save()
	return doc


def read(doctype: str, name: str) -> Any:
	doc = frappe.get_doc(doctype, name)
	doc.check_permission("read")
	doc.apply_fieldlevel_read_permissions()
	return doc


def call_method(doctype: str, name: str, method: str) -> Any:
	doc = frappe.get_doc(doctype, name)
	doc.is_whitelisted(method)
	doc.check_permission("read" if frappe.local.request.method == "GET" else "write")
	return doc.run_method(method, **frappe.local.form_dict)


def accepted() -> str:
	frappe.local.response["http_status_code"] = 202
	return "ok"


def _without(values: dict, key: str) -> dict:
	return {name: value for name, value in values.items() if name != key}
