"""Lists as list views ask for them: rows, counts, CSV files."""

import csv
import io
import json
import re
from typing import Any

import frappe
from frappe import _
from frappe.model import child_table_fields, default_fields, get_permitted_fields, optional_fields
from frappe.utils import cint

IGNORED = ("cmd", "data", "ignore_permissions", "view", "user", "csrf_token", "join", "save_user_settings")
IGNORED += ("with_comment_count", "strict", "applied_filters", "report_name")
PARSED = ("filters", "or_filters", "docstatus")
COLUMN = re.compile(r"(?:(?:`tab(?P<doctype>[^`]+)`|(?P<table>\w+))\.)?`?(?P<field>\w+)`?(?: as .+)?", re.I)
AGGREGATE = re.compile(r"(?:count|sum|avg|min|max)\((?:distinct )?(?P<column>.+?)\)(?: as .+)?", re.I)


@frappe.whitelist()
def get() -> Any:
	rows = get_list()
	if not rows:
		return rows
	keys = list(rows[0])
	return {"keys": keys, "values": [[row.get(key) for key in keys] for row in rows], "user_info": {}}


@frappe.whitelist()
def get_list() -> list[dict]:
	return frappe.get_list(**get_form_params())


@frappe.whitelist()
def get_count() -> int:
	arguments = get_form_params()
	arguments.order_by = None
	arguments.pop("distinct", None)
	if cint(arguments.limit):
		return len(frappe.get_list(**{**arguments, "fields": ["name"]}))
	arguments.fields = [f"count(distinct `tab{arguments.doctype}`.`name`) as total_count"]
	return frappe.get_list(**arguments)[0].total_count


@frappe.whitelist()
def export_query() -> None:
	arguments = get_form_params()
	kind, title = arguments.pop("file_format_type"), arguments.pop("title", arguments.doctype)
	if kind != "CSV":
		raise frappe.NotOfferedError(f"Exporting as {kind}")
	frappe.permissions.can_export(arguments.doctype, raise_exception=True)
	delimiter = str(arguments.pop("csv_delimiter", ","))[0]
	quoting = cint(arguments.pop("csv_quoting", csv.QUOTE_NONNUMERIC))
	for option in ("add_totals_row", "translate_values"):
		if cint(arguments.pop(option, 0)):
			raise frappe.NotOfferedError(f"Exporting with {option}")
	if selected := arguments.pop("selected_items", None):
		arguments.filters = {"name": ("in", json.loads(selected))}
	arguments.update(limit_page_length=None, as_list=True)
	for option in ("start", "page_length"):
		arguments.pop(option, None)
	rows = frappe.get_list(**arguments)
	file = io.StringIO()
	writer = csv.writer(file, delimiter=delimiter, quoting=quoting)
	writer.writerow([_("Sr"), *(_label(arguments.doctype, field) for field in arguments.fields or ["name"])])
	writer.writerows([number, *row] for number, row in enumerate(rows, 1))
	content = file.getvalue().encode()
	frappe.local.response.update(type="binary", filename=f"{_(title)}.csv", filecontent=content)


def get_form_params() -> frappe._dict:
	sent = {key: value for key, value in frappe.local.form_dict.items() if key not in IGNORED}
	return validate_args(frappe._dict(sent))


def validate_args(data: frappe._dict) -> frappe._dict:
	"""Parse what came as JSON text and refuse fields that the DocType does not have."""
	for key in PARSED:
		if isinstance(data.get(key), str) and data[key]:
			data[key] = json.loads(data[key])
	if isinstance(data.get("fields"), str):
		data["fields"] = ["*"] if data["fields"] == "*" else json.loads(data["fields"])
	if data.get("fields") == ["*"]:
		data["fields"] = get_permitted_fields(data.doctype, parenttype=data.parent_doctype)
	elif data.get("fields"):
		data["fields"] = [field for field in data["fields"] if _may_read(data.doctype, field)]
	for filters in (data.get("filters"), data.get("or_filters")):
		_check_filters(data.doctype, filters or ())
	return data


def _may_read(doctype: str, field: str) -> bool:
	"""Unknown fields are an error; fields above the user's level are left out."""
	if match := AGGREGATE.fullmatch(field.strip()):
		return match["column"] == "*" or _may_read(doctype, match["column"])
	meta, name = _locate(doctype, field)
	if not _is_known(meta, name):
		_refuse(field)
	return _is_standard(name) or name in get_permitted_fields(meta.name, parenttype=doctype)


def _check_filters(doctype: str, filters: Any) -> None:
	for condition in filters:
		if isinstance(condition, str):
			meta, name = _locate(doctype, condition)
		elif len(condition) == 3:
			meta, name = _locate(doctype, condition[0])
		else:
			meta, name = frappe.get_meta(condition[0]), condition[1]
		if not _is_known(meta, name):
			_refuse(name)


def _locate(doctype: str, field: str) -> tuple[Any, str]:
	match = COLUMN.fullmatch(field.strip())
	if not match:
		_refuse(field)
	meta = frappe.get_meta(match["doctype"] or doctype)
	if match["table"]:
		table = meta.get_field(match["table"])
		meta = frappe.get_meta(table.options) if table else _refuse(field)
	return meta, match["field"]


def _is_known(meta: Any, name: str) -> bool:
	return _is_standard(name) or bool(meta.get_field(name))


def _is_standard(name: str) -> bool:
	return name in (*default_fields, *optional_fields, *child_table_fields)


def _refuse(field: str) -> None:
	frappe.throw(_("{0} cannot be queried").format(field), frappe.DataError)


def _label(doctype: str, field: str) -> str:
	meta, name = _locate(doctype, field)
	found = meta.get_field(name)
	return _("ID") if name == "name" else _(found.label if found else name)
