"""The values that a new document starts with."""

from typing import Any

import frappe
from frappe.model.base_document import typed
from frappe.permissions import get_allowed_docs, get_user_permissions
from frappe.utils.data import now_datetime, nowdate


def new_doc(doctype: str, *, as_dict: bool = False, **kwargs: Any) -> Any:
	meta = frappe.get_meta(doctype)
	values = frappe._dict.fromkeys(meta.get_valid_columns())
	values.update(
		{df.fieldname: typed(df, _default(df, meta)) for df in meta.fields if df.fieldname in values}
	)
	values.update(doctype=doctype, owner=frappe.session.user, docstatus=0, __islocal=1, __unsaved=1)
	return (values if as_dict else frappe.get_doc(values)).update(kwargs)


def _default(df: Any, meta: Any) -> Any:
	if df.fieldtype == "Link" and df.options != "User" and not df.ignore_user_permissions:
		allowed = get_allowed_docs(get_user_permissions(), df.options, meta.name)
		if len(allowed) == 1:
			return frappe.db.exists(df.options, allowed[0])
	if df.fieldname == meta.title_field or not df.default:
		return df.options.split("\n")[0] if df.fieldtype == "Select" and df.options else None
	if df.fieldtype == "Datetime" and df.default.lower() == "now":
		return now_datetime()
	if df.default == "Today":
		return nowdate()
	return frappe.session.user if df.default == "__user" else df.default
