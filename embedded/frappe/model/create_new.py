"""The values that a new document starts with."""

from typing import Any

import frappe
from frappe.model import data_fieldtypes
from frappe.permissions import filter_allowed_docs_for_doctype, get_user_permissions
from frappe.utils.data import cstr, now_datetime, nowdate, nowtime


def get_new_doc(
	doctype: str, parent_doc: Any = None, parentfield: str | None = None, as_dict: bool = False
) -> Any:
	templates = frappe.local.new_doc_templates
	if doctype not in templates:
		templates[doctype] = _template(doctype)
	values = templates[doctype].copy()
	for df in frappe.get_meta(doctype).fields:
		if df.fieldtype == "Datetime" and cstr(df.default).lower() == "now":
			values[df.fieldname] = now_datetime()
		elif df.fieldtype == "Time":
			values[df.fieldname] = nowtime()
		elif cstr(df.default).startswith(":"):
			_set_from_other(values, df, parent_doc)
	if parent_doc:
		values.update(parent=parent_doc.name, parenttype=parent_doc.doctype)
	if parentfield:
		values["parentfield"] = parentfield
	return values if as_dict else frappe.get_doc(values)


def _set_from_other(values: Any, df: Any, parent_doc: Any) -> None:
	source = df.default[1:]
	link = frappe.scrub(source)
	name = parent_doc.get(link) if parent_doc else frappe.db.get_default(link)
	if not values.get(df.fieldname) and name:
		values[df.fieldname] = frappe.db.get_value(source, name, df.fieldname)


def _template(doctype: str) -> frappe._dict:
	start = {"doctype": doctype, "__islocal": 1, "owner": frappe.session.user, "docstatus": 0}
	doc = frappe.get_doc(start)
	permissions, defaults = get_user_permissions(frappe.session.user), frappe.defaults.get_defaults()
	for df in doc.meta.fields:
		if df.fieldtype in data_fieldtypes:
			value = _default(df, permissions, defaults, doc.meta.title_field)
			if value is not None:
				doc.set(df.fieldname, value)
	doc._fix_numeric_types()
	values = doc.get_valid_dict(sanitize=False).update(doctype=doctype, __islocal=1)
	return values if doc.meta.issingle else values.update(__unsaved=1)


def _default(df: Any, permissions: dict, defaults: dict, title_field: str | None) -> Any:
	granted = permissions.get(df.options, [])
	allowed, single = filter_allowed_docs_for_doctype(granted, df.parent, with_default_doc=True)
	restricted = df.fieldtype == "Link" and not df.ignore_user_permissions and bool(allowed)
	if df.fieldtype == "Link" and df.options != "User":
		if single and not df.ignore_user_permissions:
			return single if frappe.db.exists(df.options, single) else None
		value = defaults.get(df.fieldname)
		if value and (not restricted or value in allowed):
			return value if frappe.db.exists(df.options, value) else None
	if df.fieldname == title_field:
		return None
	return _static_default(df, restricted, allowed)


def _static_default(df: Any, restricted: bool, allowed: list[str]) -> Any:
	if not df.default:
		is_choice = df.fieldtype == "Select" and df.options and df.options not in ("[Select]", "Loading...")
		return df.options.split("\n", 1)[0] if is_choice else None
	if df.default == "__user":
		return frappe.session.user
	if df.default == "Today":
		return nowdate()
	if cstr(df.default).startswith(":"):
		return None
	is_free = df.fieldtype != "Link" or df.options == "User" or not restricted
	return df.default if is_free or df.default in allowed else None
