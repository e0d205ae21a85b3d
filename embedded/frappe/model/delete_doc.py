"""Deletes documents, after asking whether others link to them."""

from typing import Any

import frappe
from frappe import _
from frappe.model.naming import revert_series_if_last
from frappe.utils.password import delete_all_passwords_for

LINKS = """select f.parent, f.fieldname, f.fieldtype, f.options, t.istable
	from `tabDocField` f join `tabDocType` t on t.name = f.parent
	where ((f.fieldtype = 'Link' and f.options = %s) or f.fieldtype = 'Dynamic Link') and t.issingle = 0"""


def delete_doc(
	doctype: str,
	name: str,
	force: Any = 0,
	for_reload: bool = False,
	ignore_permissions: bool = False,
	flags: dict | None = None,
	ignore_on_trash: bool = False,
	ignore_missing: bool = True,
) -> bool | None:
	if not frappe.db.exists(doctype, name):
		if not ignore_missing:
			raise frappe.DoesNotExistError
		return False
	# raises when somebody else holds the row
	frappe.db.get_value(doctype, name, for_update=True, wait=False, order_by=None)
	doc = frappe.get_doc(doctype, name)
	doc.flags.update(flags or {}, **({"ignore_permissions": True} if ignore_permissions else {}))
	if not for_reload:
		_check(doc, force, ignore_on_trash)
	series = doc.get("naming_series") or doc.meta.autoname or ""
	if doc.get("naming_series") or ".#" in series:
		revert_series_if_last(series, name, doc)
	delete_all_passwords_for(doctype, name)
	frappe.db.delete(doctype, name)
	for df in doc.meta.get_table_fields():
		frappe.db.delete(df.options, {"parenttype": doctype, "parent": name})
	doc.run_method("after_delete")
	frappe.clear_document_cache(doctype, name)
	if not for_reload:
		doc.notify_update()
	return None


def _check(doc: Any, force: Any, ignore_on_trash: bool) -> None:
	is_standard = doc.doctype == "DocType" and not doc.custom
	if (is_standard and not force) or not doc.has_permission("delete"):
		frappe.throw(_("You may not delete {0} {1}").format(doc.doctype, doc.name), frappe.PermissionError)
	if not ignore_on_trash:
		doc.run_method("on_trash")
		doc.run_method("on_change")
	if not force and doc.doctype != "DocType":
		_check_links(doc)


def _check_links(doc: Any) -> None:
	ignored = frappe.get_hooks("ignore_links_on_delete")
	linking = frappe.db.sql(LINKS, (doc.doctype,), as_dict=True)
	for df in [df for df in linking if df.parent not in ignored]:
		filters = {df.fieldname: doc.name}
		if df.fieldtype == "Dynamic Link":
			filters[df.options] = doc.doctype
		columns = ["parenttype", "parent"] if df.istable else ["name", "name"]
		for doctype, name in frappe.db.get_values(df.parent, filters, columns, order_by=None):
			doctype = doctype if df.istable else df.parent
			if doctype not in ignored and (doctype, name) != (doc.doctype, doc.name):
				text = _("{0} {1} cannot be deleted: {2} {3} links to it")
				frappe.throw(text.format(doc.doctype, doc.name, doctype, name), frappe.LinkExistsError)
