"""Lists as list views ask for them: rows, counts, CSV files."""

import csv
import io
import json
import re
from typing import Any

import frappe
from frappe import _
from frappe.model import child_table_fields, default_fields, optional_fields

IGNORED = ("cmd", "data", "ignore_permissions", "view", "user", "join", "save_user_settings")
IGNORED += ("with_comment_count", "strict", "applied_filters", "report_name")
STANDARD = (*default_fields, *optional_fields, *child_table_fields, "*")
FIELD = re.compile(
	r"(?:(?:count|sum|avg|min|max)\((?:distinct )?)?(?:`tab([^`]+)`\.)?`?(\w+|\*)`?\)?(?: as .+)?", re.I
)


@frappe.whitelist()
def get() -> Any:
	rows = get_list()
	return rows and {"keys": list(rows[0]), "values": [list(row.values()) for row in rows], "user_info": {}}


@frappe.whitelist()
def get_list() -> list[dict]:
	return frappe.get_list(**validate_args(frappe.local.form_dict))


@frappe.whitelist()
def get_count() -> int:
	arguments = validate_args(frappe.local.form_dict)
	arguments.update(order_by=None, fields=["name"])
	if arguments.limit:
		return len(frappe.get_list(**arguments))
	arguments.update(distinct=False, fields=[f"count(distinct `tab{arguments.doctype}`.`name`) as total"])
	return frappe.get_list(**arguments)[0].total


@frappe.whitelist()
def export_query() -> None:
	arguments = validate_args(frappe.local.form_dict)
	kind, title = arguments.pop("file_format_type"), arguments.pop("title", arguments.doctype)
	if kind != "CSV":
		raise frappe.NotOfferedError(f"Exporting as {kind}")
	frappe.permissions.can_export(arguments.doctype, raise_exception=True)
	arguments.update(start=0, page_length=None, as_list=True)
	file = io.StringIO()
	writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
	writer.writerow([_("Sr"), *(_label(arguments.doctype, field) for field in arguments.fields or ["name"])])
	writer.writerows([number, *row] for number, row in enumerate(frappe.get_list(**arguments), 1))
	content = file.getvalue().encode()
	frappe.local.response.update(type="binary", filename=f"{_(title)}.csv", filecontent=content)


def validate_args(sent: dict) -> frappe._dict:
	"""Refuse fields that the DocType does not have; those that the user may not read are left out later."""
	data = frappe._dict({key: value for key, value in sent.items() if key not in IGNORED})
	if isinstance(data.fields, str):
		data.fields = ["*"] if data.fields == "*" else json.loads(data.fields)
	for field in data.fields or []:
		_label(data.doctype, field)
	return data


def _label(doctype: str, field: str) -> str:
	match = FIELD.fullmatch(field.strip())
	meta = frappe.get_meta(match[1] or doctype) if match else None
	if not meta or not (match[2] in STANDARD or meta.get_field(match[2])):
		frappe.throw(_("{0} cannot be queried").format(field), frappe.DataError)
	return _("ID") if match[2] == "name" else _(meta.get_label(match[2]))
