"""Deletes documents, after asking whether others link to them."""

from typing import Any

import frappe
from frappe import _
from frappe.model.naming import revert_series_if_last
from frappe.utils.password import delete_all_passwords_for


def delete_doc(
	doctype: str | None = None,
	name: Any = None,
	force: Any = 0,
	ignore_doctypes: list[str] | None = None,
	for_reload: bool = False,
	ignore_permissions: bool = False,
	flags: dict | None = None,
	ignore_on_trash: bool = False,
	ignore_missing: bool = True,
	delete_permanently: bool = False,
) -> Any:
	doctype, name = doctype or frappe.form_dict.get("dt"), name or frappe.form_dict.get("dn")
	for one in name if isinstance(name, list | tuple) else [name]:
		if not frappe.db.exists(doctype, one):
			if not ignore_missing:
				raise frappe.DoesNotExistError
			return False
		delete_all_passwords_for(doctype, one)
		_lock(doctype, one)
		doc = frappe.get_doc(doctype, one)
		if ignore_permissions:
			flags = {**(flags or {}), "ignore_permissions": True}
		doc.flags.update(flags or {})
		if not for_reload:
			_check(doc, force, ignore_on_trash)
		_delete_rows(doc, ignore_doctypes or [])
		doc.clear_cache()
		if not for_reload:
			doc.notify_update()
	return None


def _lock(doctype: str, name: str) -> None:
	try:
		frappe.db.get_value(doctype, name, for_update=True, wait=False, order_by=None)
	except frappe.QueryTimeoutError:
		frappe.throw(
			_("{0} {1} is being changed by somebody else").format(doctype, name), frappe.QueryTimeoutError
		)


def _check(doc: Any, force: Any, ignore_on_trash: bool) -> None:
	is_standard = doc.doctype == "DocType" and not doc.custom
	if is_standard and not (force or frappe.conf.developer_mode or frappe.flags.in_patch):
		frappe.throw(_("A standard DocType cannot be deleted"))
	if frappe.session.user != "Administrator" and (is_standard or not doc.has_permission("delete")):
		text = _("You may not delete {0} {1}").format(doc.doctype, doc.name)
		frappe.msgprint(text, raise_exception=frappe.PermissionError)
	if doc.doctype == "DocType":
		return
	if not ignore_on_trash:
		doc.run_method("on_trash")
		doc.flags.in_delete = True
		doc.run_method("on_change")
	if not force:
		check_if_doc_is_linked(doc)
		check_if_doc_is_dynamically_linked(doc)


def _delete_rows(doc: Any, ignore_doctypes: list[str]) -> None:
	if doc.doctype != "DocType":
		update_naming_series(doc)
	if doc.meta.issingle:
		frappe.db.delete("Singles", {"doctype": doc.name})
	else:
		frappe.db.delete(doc.doctype, {"name": doc.name})
	for child in {df.options for df in doc.meta.get_table_fields()} - set(ignore_doctypes):
		frappe.db.delete(child, {"parenttype": doc.doctype, "parent": doc.name})
	if doc.doctype == "DocType":
		frappe.clear_cache(doctype=doc.name)
	else:
		doc.run_method("after_delete")


def update_naming_series(doc: Any) -> None:
	autoname = doc.meta.autoname or ""
	if autoname.startswith("naming_series:") and doc.get("naming_series"):
		revert_series_if_last(doc.naming_series, doc.name, doc)
	elif autoname and autoname.split(":", 1)[0] not in (
		"Prompt",
		"field",
		"hash",
		"autoincrement",
		"naming_series",
	):
		revert_series_if_last(autoname, doc.name, doc)


def _linking_fields(fieldtype: str, doctype: str | None = None) -> list:
	return frappe.db.sql(
		f"""select f.parent, f.fieldname, f.options, t.issingle, t.istable
		from `tabDocField` f join `tabDocType` t on t.name = f.parent
		where f.fieldtype = %s {"and f.options = %s" if doctype else ""}""",
		(fieldtype, doctype) if doctype else (fieldtype,),
		as_dict=True,
	)


def check_if_doc_is_linked(doc: Any, method: str = "Delete") -> None:
	for df in _linking_fields("Link", doc.doctype):
		_refuse_if_linked(doc, df, {df.fieldname: doc.name})


def check_if_doc_is_dynamically_linked(doc: Any, method: str = "Delete") -> None:
	for df in _linking_fields("Dynamic Link"):
		_refuse_if_linked(doc, df, {df.options: doc.doctype, df.fieldname: doc.name})


def _refuse_if_linked(doc: Any, df: Any, filters: dict) -> None:
	ignored = frappe.get_hooks("ignore_links_on_delete")
	if df.parent in ignored:
		return
	if df.issingle:
		values = frappe.db.get_singles_dict(df.parent)
		if all(values.get(key) == value for key, value in filters.items()):
			_raise_linked(doc, df.parent, "")
		return
	fields = ["name", "parent", "parenttype"] if df.istable else ["name"]
	for row in frappe.db.get_values(df.parent, filters, fields, as_dict=True, order_by=None):
		doctype, name = (row.parenttype, row.parent) if row.parent else (df.parent, row.name)
		is_itself = df.parent == doc.doctype and name == doc.name
		if doctype not in ignored and not is_itself:
			_raise_linked(doc, doctype, name)


def _raise_linked(doc: Any, doctype: str, name: str) -> None:
	text = _("{0} {1} cannot be deleted: {2} {3} links to it")
	frappe.throw(text.format(doc.doctype, doc.name, doctype, name), frappe.LinkExistsError)
