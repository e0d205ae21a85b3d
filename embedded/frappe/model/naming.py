"""How documents get their names."""

import re

import frappe
from frappe import _
from frappe.utils.data import cstr


def set_new_name(doc) -> None:
	doc.run_method("before_naming")
	if doc.meta.autoname != "Prompt" and not frappe.flags.in_import:
		doc.name = None
	if doc.meta.issingle:
		doc.name = doc.doctype
	if not doc.name:
		doc.run_method("autoname")
	doc.name = validate_name(doc.doctype, doc.name or _name_from_option(doc))


def _name_from_option(doc) -> str:
	kind, _colon, field = (doc.meta.autoname or "hash").partition(":")
	if kind == "field":
		return cstr(doc.get(field))
	if kind not in ("hash", "Prompt"):
		raise frappe.NotOfferedError(f"autoname: {kind}")
	return "" if kind == "Prompt" else frappe.generate_hash(length=10)


def validate_name(doctype: str, name: str) -> str:
	name = name.strip()
	is_taken = doctype == name and name != "DocType" and not frappe.get_meta(doctype).issingle
	if is_taken or not name or name.startswith(f"New {doctype}") or re.search("[<>]", name):
		exception = frappe.NameError if name else frappe.ValidationError
		frappe.throw(_('A {0} cannot be called "{1}"').format(doctype, name), exception)
	return name
