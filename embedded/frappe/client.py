"""Whitelisted document calls for programs: `frappe.client.*`."""

from typing import Any

import frappe
from frappe import _
from frappe.desk.reportview import validate_args

MAX_INSERTS = 200


@frappe.whitelist()
def get_list(
	doctype,
	fields=None,
	filters=None,
	group_by=None,
	order_by=None,
	limit_start=None,
	limit_page_length=20,
	parent=None,
	debug: bool = False,
	as_dict: bool = True,
	or_filters=None,
):
	_check_child(doctype, parent)
	arguments = frappe._dict(doctype=doctype, fields=fields, filters=filters, or_filters=or_filters)
	arguments.update(parent_doctype=parent, group_by=group_by, order_by=order_by, limit_start=limit_start)
	arguments.update(limit_page_length=limit_page_length, debug=debug, as_list=not as_dict)
	return frappe.get_list(**validate_args(arguments))


@frappe.whitelist()
def get_count(doctype, filters=None, debug=False, cache=False):
	return frappe.db.count(doctype, _parsed(filters), debug, cache)


@frappe.whitelist()
def get(doctype, name=None, filters=None, parent=None):
	_check_child(doctype, parent)
	filters = _parsed(filters)
	if name:
		doc = frappe.get_doc(doctype, name)
	else:
		doc = frappe.get_doc(doctype, filters) if filters is not None else frappe.get_doc(doctype)
	doc.check_permission()
	doc.apply_fieldlevel_read_permissions()
	return doc.as_dict()


@frappe.whitelist()
def get_value(doctype, fieldname, filters=None, as_dict=True, debug=False, parent=None):
	_check_child(doctype, parent)
	if not frappe.has_permission(doctype, parent_doctype=parent):
		frappe.throw(_("You may not read {0}").format(_(doctype)), frappe.PermissionError)
	try:
		fields = frappe.parse_json(fieldname)
	except (TypeError, ValueError):
		fields = [fieldname]
	fields = [fields] if isinstance(fields, str) else fields
	if frappe.get_meta(doctype).issingle:
		found = [frappe._dict({field: frappe.db.get_single_value(doctype, field) for field in fields})]
		found = found if as_dict else [tuple(found[0].values())]
	else:
		filters = _parsed(filters)
		filters = {"name": filters} if isinstance(filters, str) else filters
		options = {"filters": filters or None, "limit_page_length": 1, "parent": parent, "as_dict": as_dict}
		found = get_list(doctype, fields=fields, debug=debug, **options)
	if as_dict:
		return found[0] if found else {}
	if not found:
		return None
	return found[0] if len(fields) > 1 else found[0][0]


@frappe.whitelist()
def get_single_value(doctype, field):
	if not frappe.has_permission(doctype):
		frappe.throw(_("You may not read {0}").format(_(doctype)), frappe.PermissionError)
	return frappe.db.get_single_value(doctype, field)


@frappe.whitelist(methods=["POST", "PUT"])
def set_value(doctype, name, fieldname, value=None):
	"""One field, or several as a JSON object in `fieldname`."""
	if fieldname in frappe.model.default_fields + frappe.model.child_table_fields:
		frappe.throw(_("{0} is a standard field and cannot be set").format(fieldname))
	values = {fieldname: value} if value else _several(fieldname)
	if frappe.get_meta(doctype).istable:
		row = frappe.db.get_value(doctype, name, ["parenttype", "parent", "parentfield"], as_dict=True)
		doc = frappe.get_doc(row.parenttype, row.parent)
		next(child for child in doc.get(row.parentfield) if child.name == name).update(values)
	else:
		doc = frappe.get_doc(doctype, name)
		doc.update(values)
	doc.save()
	return doc.as_dict()


@frappe.whitelist(methods=["POST", "PUT"])
def insert(doc=None):
	return insert_doc(frappe.parse_json(doc)).as_dict()


@frappe.whitelist(methods=["POST", "PUT"])
def insert_many(docs=None):
	docs = frappe.parse_json(docs)
	if len(docs) > MAX_INSERTS:
		frappe.throw(_("At most {0} documents can be inserted in one request").format(MAX_INSERTS))
	return [insert_doc(doc).name for doc in docs]


@frappe.whitelist(methods=["POST", "PUT"])
def save(doc):
	doc = frappe.get_doc(frappe.parse_json(doc))
	doc.save()
	return doc.as_dict()


@frappe.whitelist(methods=["DELETE", "POST"])
def delete(doctype, name):
	if not frappe.is_table(doctype):
		frappe.delete_doc(doctype, name, ignore_missing=False)
		return
	row = frappe.db.get_value(doctype, name, ["parenttype", "parent", "parentfield"], as_dict=True)
	if not row:
		raise frappe.DoesNotExistError
	parent = frappe.get_doc(row.parenttype, row.parent)
	parent.set(row.parentfield, [child for child in parent.get(row.parentfield) if child.name != name])
	parent.save()


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
def has_permission(doctype, docname, perm_type="read"):
	return {"has_permission": frappe.has_permission(doctype, perm_type.lower(), docname)}


@frappe.whitelist()
def get_doc_permissions(doctype, docname):
	return {"permissions": frappe.permissions.get_doc_permissions(frappe.get_doc(doctype, docname))}


@frappe.whitelist()
def validate_link(doctype: str, docname: str, fields=None):
	"""The stored name and, where the user may read them, other fields of a document that a form links to."""
	may_link = doctype == "DocType" or any(frappe.has_permission(doctype, p) for p in ("select", "read"))
	if not may_link:
		frappe.throw(_("You may neither read nor select {0}").format(doctype), frappe.PermissionError)
	values = frappe._dict(name=frappe.db.get_value(doctype, docname, cache=True))
	fields = frappe.parse_json(fields)
	if not values.name or not fields:
		return values
	try:
		values.update(get_value(doctype, fields, docname))
	except frappe.PermissionError:
		frappe.clear_last_message()
		frappe.msgprint(_("You may not read the values of {0} {1}").format(doctype, docname))
	return values


def insert_doc(doc: dict) -> Any:
	"""A row of a child table is appended to its parent, which is then saved."""
	doc.pop("flags", None)
	if not frappe.is_table(doc["doctype"]):
		return frappe.get_doc(doc).insert()
	if not (doc.get("parenttype") and doc.get("parent") and doc.get("parentfield")):
		frappe.throw(_("A child row needs parenttype, parent and parentfield"))
	parent = frappe.get_doc(doc["parenttype"], doc["parent"])
	parent.append(doc["parentfield"], doc)
	parent.save()
	return parent


def _several(fieldname: Any) -> dict:
	try:
		return frappe.parse_json(fieldname)
	except ValueError:
		return {fieldname: ""}


def _parsed(filters: Any) -> Any:
	try:
		return frappe.parse_json(filters)
	except ValueError:
		return filters


def _check_child(doctype: str, parent: str | None) -> None:
	if frappe.is_table(doctype):
		from frappe.model.db_query import check_parent_permission

		check_parent_permission(parent, doctype)
