"""frappe.get_list and get_all: filters with Frappe's NULL rules, and what the user may see."""

import json
import re

import frappe
from frappe import _
from frappe.model import child_table_fields, default_fields, optional_fields
from frappe.utils.data import cint, cstr, flt, get_datetime, getdate

DEFAULT_ORDER, LONG_AGO = "KEEP_DEFAULT_ORDERING", "0001-01-01"
OPERATORS = ("=", "!=", ">", "<", ">=", "<=", "like", "not like", "in", "not in", "is")
NUMERIC = ("Check", "Float", "Int", "Currency", "Percent")
STANDARD_TYPES = {"creation": "Datetime", "modified": "Datetime", "docstatus": "Int", "idx": "Int"}
COLUMN = r"(?:`tab(?P<table>[^`]+)`\.)?`?(?P<name>\w+)`?"
FIELD = re.compile(rf"{COLUMN}( as \w+)?", re.IGNORECASE)
ORDER = re.compile(rf"{COLUMN}(?: asc| desc)?", re.IGNORECASE)


def quoted(*values) -> str:
	return ", ".join(frappe.db.escape(cstr(value), percent=False) for value in values)


def get_all(doctype: str, *args, **kwargs):
	return get_list(doctype, *args, **kwargs, ignore_permissions=True)


def get_list(
	doctype: str,
	fields=None,
	filters=None,
	or_filters=None,
	order_by: str | None = DEFAULT_ORDER,
	limit_start: int = 0,
	limit_page_length: int | None = None,
	as_list: bool = False,
	ignore_permissions: bool = False,
	start: int | None = None,
	page_length: int | None = None,
	limit: int | None = None,
	pluck: str | None = None,
):
	meta = frappe.get_meta(doctype)
	if isinstance(fields, dict) or (fields and isinstance(fields[0], list)):
		fields, filters = filters, fields
	conditions = [_condition(meta, *f) for f in _filter_list(meta, filters)]
	if either := [_condition(meta, *f) for f in _filter_list(meta, or_filters)]:
		conditions.append(f"({' or '.join(either)})")
	if not ignore_permissions:
		conditions += _permission_conditions(meta, frappe.session.user)
	columns = [column for field in fields or [pluck or "name"] for column in _columns(meta, field)]
	order = _order_by(meta, order_by)
	size = cint(limit or page_length or limit_page_length)
	query = f"select {', '.join(columns)} from `tab{meta.name}`"
	query += f" where {' and '.join(conditions)}" if conditions else ""
	query += f" order by {order}" if order else ""
	query += f" limit {size} offset {cint(start or limit_start)}" if size else ""
	rows = frappe.db.sql(query, as_dict=not as_list)
	return [row[pluck] for row in rows] if pluck else rows


def _columns(meta, field: str) -> list[str]:
	if field == "*":
		return [_quoted(meta, column) for column in meta.get_valid_columns()]
	match = FIELD.fullmatch(field)
	if not match or (match["table"] or meta.name) != meta.name:
		frappe.throw(_("{0} is not a plain field of {1}").format(field, meta.name), frappe.DataError)
	return [_quoted(meta, match["name"]) + (match[3] or "")]


def _quoted(meta, fieldname: str) -> str:
	return f"`tab{meta.name}`.`{fieldname}`"


def _order_by(meta, order_by: str | None) -> str:
	if order_by == DEFAULT_ORDER:
		return f"{_quoted(meta, meta.sort_field or 'modified')} {meta.sort_order or 'desc'}"
	for part in order_by.split(",") if order_by else ():
		if not ORDER.fullmatch(part.strip()):
			frappe.throw(_("{0} cannot be used to sort").format(part))
	return order_by or ""


def _filter_list(meta, filters) -> list:
	filters = json.loads(filters) if filters and isinstance(filters, str) else filters or []
	if isinstance(filters, dict):
		pairs = filters.items()
		return [(key, *(v if isinstance(v, list | tuple) else ("=", v))) for key, v in pairs]
	found = []
	for entry in filters:
		if len(entry) == 4 and entry[0] != meta.name:
			raise frappe.NotOfferedError(f"a filter on {entry[0]} in a list of {meta.name}")
		found += _filter_list(meta, entry) if isinstance(entry, dict) else [entry[-3:]]
	return found


def _condition(meta, fieldname: str, operator: str, value) -> str:
	operator, df, column = operator.lower(), meta.get_field(fieldname), _quoted(meta, fieldname)
	if not df and fieldname not in (*default_fields, *optional_fields, *child_table_fields):
		frappe.throw(_("{0} has no field {1} to filter by").format(meta.name, fieldname))
	if operator not in OPERATORS:
		frappe.throw(_("{0} is no filter operator").format(operator))
	fieldtype = df.fieldtype if df else STANDARD_TYPES.get(fieldname, "Data")
	nullable = fieldname not in ("name", "creation", "modified") and fieldtype not in NUMERIC
	if operator == "is":
		return f"{column} != ''" if value == "set" else f"ifnull({column}, '') = ''"
	if operator in ("in", "not in"):
		values = [cstr(v).strip() for v in (value.split(",") if isinstance(value, str) else value or [""])]
		if nullable and (operator == "not in" or "" in values):
			column = f"ifnull({column}, '')"
		return f"{column} {operator} ({quoted(*values)})"
	text, fallback = _literal(fieldtype, operator, value)
	is_later = operator in (">", ">=") and fieldtype in ("Date", "Datetime")
	if nullable and not is_later and not (value and operator in ("=", "like")):
		column = f"ifnull({column}, '{fallback}')"
	return f"{column} {'ilike' if operator == 'like' else operator} {text}"


def _permission_conditions(meta, user: str) -> list[str]:
	frappe.has_permission(meta.name, "read", user=user, throw=True)
	hooks = frappe.get_hooks("permission_query_conditions", {})
	methods = [frappe.get_attr(path) for path in hooks.get(meta.name, []) + hooks.get("*", [])]
	conditions = [frappe.call(method, user, doctype=meta.name) for method in methods]
	if "read" in frappe.permissions.get_role_permissions(meta, user=user).get("if_owner", {}):
		conditions.append(f"{_quoted(meta, 'owner')} = {quoted(user)}")
	else:
		conditions += _user_permission_conditions(meta, frappe.permissions.get_user_permissions(user))
	return [f"({condition})" for condition in conditions if condition]


def _user_permission_conditions(meta, granted: dict) -> list[str]:
	links = {df.fieldname: df.options for df in meta.get_link_fields() if not df.ignore_user_permissions}
	found = []
	for fieldname, doctype in {**links, "name": meta.name}.items():
		column = _quoted(meta, fieldname)
		if allowed := frappe.permissions.get_allowed_docs(granted, doctype, meta.name):
			found.append(f"ifnull({column}, '') = '' or {column} in ({quoted(*allowed)})")
	return found


def _literal(fieldtype: str, operator: str, value) -> tuple[str, str]:
	"""A value as SQL, and what NULL counts as where it is compared with one."""
	if "like" in operator:
		return quoted(cstr(value).replace("\\", "\\\\")), ""
	if fieldtype in ("Date", "Datetime"):
		read = getdate if fieldtype == "Date" else get_datetime
		return quoted(read(value or LONG_AGO)), LONG_AGO
	return (repr(flt(value)), "0") if fieldtype in NUMERIC else (quoted(value), "")
