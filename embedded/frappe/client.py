"""Whitelisted document calls for programs: `frappe.client.*`."""

import frappe
from frappe import _
from frappe.desk.reportview import validate_args


@frappe.whitelist()
def get_list(doctype, limit_page_length=20, **options):
	options |= {"doctype": doctype, "limit_page_length": limit_page_length}
	return frappe.get_list(**validate_args(options))


@frappe.whitelist()
def get_count(doctype, filters=None, debug=False, cache=False):
	return frappe.db.count(doctype, _parsed(filters))


@frappe.whitelist()
def get(doctype, name=None, filters=None):
	return readable(doctype, name or _parsed(filters) or doctype).as_dict()


@frappe.whitelist()
def get_value(doctype, fieldname, filters=None):
	fields, filters = _parsed(fieldname), _parsed(filters)
	filters = {"name": filters} if isinstance(filters, str) else filters
	fields = [fields] if isinstance(fields, str) else fields
	found = get_list(doctype, fields=fields, filters=filters, limit_page_length=1)
	return found[0] if found else {}


@frappe.whitelist(methods=["POST", "PUT"])
def set_value(doctype, name, fieldname, value=None):
	"""One field, or several as a JSON object in `fieldname`."""
	if fieldname in frappe.model.default_fields:
		frappe.throw(_("{0} is a standard field and cannot be set").format(fieldname))
	values = None if value else _parsed(fieldname)
	values = values if isinstance(values, dict) else {fieldname: value or ""}
	return _whole(doctype, name).update(values).save().as_dict()


@frappe.whitelist(methods=["POST", "PUT"])
def insert(doc=None):
	return _whole(frappe.parse_json(doc)).insert().as_dict()


@frappe.whitelist(methods=["POST", "PUT"])
def save(doc):
	return frappe.get_doc(frappe.parse_json(doc)).save().as_dict()


@frappe.whitelist(methods=["DELETE", "POST"])
def delete(doctype, name):
	_whole(doctype, name).delete()


@frappe.whitelist(methods=["POST", "PUT"])
def bulk_update(docs):
	failed = []
	for values in frappe.parse_json(docs):
		try:
			frappe.get_doc(values["doctype"], values["docname"]).update(values).save()
		except Exception:
			failed.append({"doc": values, "exc": frappe.get_traceback()})
	return {"failed_docs": failed}


@frappe.whitelist()
def validate_link(doctype: str, docname: str, fields=None):
	"""The stored name and, where the user may read them, other fields of a document that a form links to."""
	if doctype != "DocType" and not frappe.has_permission(doctype):
		frappe.throw(_("You may neither read nor select {0}").format(doctype), frappe.PermissionError)
	values = frappe._dict(name=frappe.db.get_value(doctype, docname))
	return values.update(get_value(doctype, fields, docname)) if values.name and fields else values


def readable(doctype: str, name: str):
	doc = frappe.get_doc(doctype, name)
	doc.check_permission("read")
	return doc


def _whole(*args):
	doc = frappe.get_doc(*args)
	if doc.meta.istable:
		raise frappe.NotOfferedError("A row of a child table without its document")
	return doc


def _parsed(value):
	try:
		return frappe.parse_json(value)
	except ValueError:
		return value
