"""Whitelisted document calls for programs: `frappe.client.*`."""

from typing import Any

import frappe
from frappe import _
from frappe.desk.reportview import validate_args


@frappe.whitelist()
def get_list(doctype, fields=None, filters=None, limit_page_length=20, **options):
	options |= {"doctype": doctype, "fields": fields, "filters": filters}
	return frappe.get_list(**validate_args({**options, "limit_page_length": limit_page_length}))


@frappe.whitelist()
def get_count(doctype, filters=None, debug=False, cache=False):
	return frappe.db.count(doctype, _parsed(filters), debug, cache)


@frappe.whitelist()
def get(doctype, name=None, filters=None):
	filters = _parsed(filters)
	return readable(doctype, name or (doctype if filters is None else filters)).as_dict()


@frappe.whitelist()
def get_value(doctype, fieldname, filters=None):
	if not frappe.has_permission(doctype):
		frappe.throw(_("You may not read {0}").format(_(doctype)), frappe.PermissionError)
	fields, filters = _parsed(fieldname), _parsed(filters)
	fields = [fields] if isinstance(fields, str) else fields
	if frappe.get_meta(doctype).issingle:
		return frappe._dict({field: frappe.db.get_single_value(doctype, field) for field in fields})
	filters = {"name": filters} if isinstance(filters, str) else filters
	found = get_list(doctype, fields=fields, filters=filters or None, limit_page_length=1)
	return found[0] if found else {}


@frappe.whitelist(methods=["POST", "PUT"])
def set_value(doctype, name, fieldname, value=None):
	"""One field, or several as a JSON object in `fieldname`."""
	if fieldname in frappe.model.default_fields + frappe.model.child_table_fields:
		frappe.throw(_("{0} is a standard field and cannot be set").format(fieldname))
	_refuse_rows(doctype)
	values = None if value else _parsed(fieldname)
	doc = frappe.get_doc(doctype, name)
	doc.update(values if isinstance(values, dict) else {fieldname: value or ""})
	return doc.save().as_dict()


@frappe.whitelist(methods=["POST", "PUT"])
def insert(doc=None):
	values = {key: value for key, value in frappe.parse_json(doc).items() if key != "flags"}
	_refuse_rows(values["doctype"])
	return frappe.get_doc(values).insert().as_dict()


@frappe.whitelist(methods=["POST", "PUT"])
def save(doc):
	return frappe.get_doc(frappe.parse_json(doc)).save().as_dict()


@frappe.whitelist(methods=["DELETE", "POST"])
def delete(doctype, name):
	_refuse_rows(doctype)
	frappe.delete_doc(doctype, name, ignore_missing=False)


@frappe.whitelist(methods=["POST", "PUT"])
def bulk_update(docs):
	failed = []
	for values in frappe.parse_json(docs):
		values.pop("flags", None)
		try:
			doc = frappe.get_doc(values["doctype"], values["docname"])
			doc.update(values)
			doc.save()
		except Exception:
			failed.append({"doc": values, "exc": frappe.get_traceback()})
	return {"failed_docs": failed}


@frappe.whitelist()
def validate_link(doctype: str, docname: str, fields=None):
	"""The stored name and, where the user may read them, other fields of a document that a form links to."""
	if doctype != "DocType" and not any(frappe.has_permission(doctype, p) for p in ("select", "read")):
		frappe.throw(_("You may neither read nor select {0}").format(doctype), frappe.PermissionError)
	values = frappe._dict(name=frappe.db.get_value(doctype, docname, cache=True))
	if values.name and fields and frappe.has_permission(doctype):
		values.update(get_value(doctype, fields, docname))
	return values


def readable(doctype: str, name: Any) -> Any:
	doc = frappe.get_doc(doctype, name)
	doc.check_permission("read")
	doc.apply_fieldlevel_read_permissions()
	return doc


def _refuse_rows(doctype: str) -> None:
	if frappe.is_table(doctype):
		raise frappe.NotOfferedError("A row of a child table without its document")


def _parsed(value: Any) -> Any:
	try:
		return frappe.parse_json(value)
	except ValueError:
		return value
