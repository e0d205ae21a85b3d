"""Lists as list views ask for them: rows and counts."""

import json

import frappe
from frappe import _
from frappe.model import child_table_fields, default_fields, optional_fields
from frappe.model.db_query import FIELD

IGNORED = ("cmd", "data", "ignore_permissions", "view", "user", "join", "save_user_settings")
IGNORED += ("with_comment_count", "strict", "applied_filters", "report_name")
STANDARD = (*default_fields, *optional_fields, *child_table_fields)


@frappe.whitelist()
def get():
	rows = get_list()
	return rows and {"keys": list(rows[0]), "values": [list(row.values()) for row in rows], "user_info": {}}


@frappe.whitelist()
def get_list() -> list[dict]:
	return frappe.get_list(**validate_args(frappe.local.form_dict))


@frappe.whitelist()
def get_count() -> int:
	arguments = validate_args(frappe.local.form_dict)
	return len(frappe.get_list(**arguments.update(order_by=None, fields=["name"])))


def validate_args(sent: dict) -> frappe._dict:
	"""Refuses fields that the DocType does not have."""
	data = frappe._dict({key: value for key, value in sent.items() if key not in IGNORED})
	if isinstance(data.fields, str):
		data.fields = ["*"] if data.fields == "*" else json.loads(data.fields)
	for field in [field for field in data.fields or [] if field != "*"]:
		match = FIELD.fullmatch(field.strip())
		meta = frappe.get_meta(match[1] or data.doctype) if match else None
		if not meta or not (match[2] in STANDARD or meta.get_field(match[2])):
			frappe.throw(_("{0} cannot be queried").format(field), frappe.DataError)
	return data
