"""Builds the queries of frappe.db from a DocType, fields and filters; NULL compares as in plain SQL."""

import operator
import re
from collections.abc import Callable
from typing import Any

import frappe
from frappe.database.utils import DefaultOrderBy
from pypika.queries import QueryBuilder, Table
from pypika.terms import Criterion, Term

OPERATORS: dict[str, Callable] = {
	"=": operator.eq,
	"!=": operator.ne,
	"<": operator.lt,
	">": operator.gt,
	"<=": operator.le,
	">=": operator.ge,
	"in": lambda field, value: field.isin(value.split(",") if isinstance(value, str) else value),
	"not in": lambda field, value: field.notin(value.split(",") if isinstance(value, str) else value),
	"like": lambda field, value: field.like(value),
	"not like": lambda field, value: field.not_like(value),
	"regex": lambda field, value: field.regex(value),
	"between": lambda field, value: field[slice(*value)],
	"is": lambda field, value: field.isnotnull() if value.lower() == "set" else field.isnull(),
}
NAME = re.compile(r"^[\w -]*$", re.ASCII)


def get_query(
	table: str | Table,
	fields: Any = None,
	filters: Any = None,
	order_by: str | None = None,
	group_by: str | None = None,
	limit: int | None = None,
	offset: int | None = None,
	distinct: bool = False,
	for_update: bool = False,
	update: bool = False,
	into: bool = False,
	delete: bool = False,
	*,
	validate_filters: bool = False,
	skip_locked: bool = False,
	wait: bool = True,
) -> QueryBuilder:
	if isinstance(table, str):
		if not NAME.match(table):
			frappe.throw(frappe._("{0} is no name for a DocType").format(table))
		table = frappe.qb.DocType(table)
	query = _start(table, fields, update, into, delete)
	for condition in conditions(table, filters):
		query = query.where(condition)
	query = _order(query, order_by)
	query = query.limit(limit) if limit else query
	query = query.offset(offset) if offset else query
	query = query.distinct() if distinct else query
	query = query.for_update(skip_locked=skip_locked, nowait=not wait) if for_update else query
	return query.groupby(group_by) if group_by else query


def _start(table: Table, fields: Any, update: bool, into: bool, delete: bool) -> QueryBuilder:
	if update:
		return frappe.qb.update(table)
	if into:
		return frappe.qb.into(table)
	query = frappe.qb.from_(table)
	return query.delete() if delete else query.select(*_fields(table, fields))


def _fields(table: Table, fields: Any) -> list:
	if not fields:
		return [table.name]
	fields = fields if isinstance(fields, list | tuple) else [fields]
	split = [part for f in fields for part in (f.split(",") if isinstance(f, str) else [f])]
	return [_field(table, part) for part in split if part]


def _field(table: Table, field: Any) -> Any:
	if isinstance(field, Term):
		return field
	if not isinstance(field, str) or "(" in field or "." in field:
		raise frappe.NotOfferedError(f"the field {field!r} in frappe.db (use frappe.qb)")
	name, _, alias = field.strip().partition(" as ")
	name = name.strip("` ")
	if name == "*":
		return table.star
	return table[name].as_(alias.strip()) if alias else table[name]


def conditions(table: Table, filters: Any) -> list[Criterion]:
	if filters is None:
		return []
	if isinstance(filters, Criterion):
		return [filters]
	if isinstance(filters, str | int):
		return [table.name == str(filters)]
	if isinstance(filters, dict):
		return [_condition(table, field, *_operator_and_value(value)) for field, value in filters.items()]
	if filters and all(isinstance(f, str | int) for f in filters):
		return [table.name.isin(list(filters))]
	found = []
	for entry in filters:
		found += (
			[_list_condition(table, entry)] if isinstance(entry, list | tuple) else conditions(table, entry)
		)
	return found


def _operator_and_value(value: Any) -> tuple[str, Any]:
	return tuple(value) if isinstance(value, list | tuple) else ("=", value)


def _list_condition(table: Table, entry: list | tuple) -> Criterion:
	if len(entry) == 2:
		return _condition(table, entry[0], "=", entry[1])
	if len(entry) == 4 and frappe.qb.DocType(entry[0]) != table:
		raise frappe.NotOfferedError(f"a filter on {entry[0]} in frappe.db")
	return _condition(table, *entry[-3:])


def _condition(table: Table, field: Any, op: str, value: Any) -> Criterion:
	if isinstance(field, str):
		if re.search(r"\W", field):
			frappe.throw(frappe._("{0} is no field to filter by").format(field))
		field = table[field]
	if op.casefold() not in OPERATORS:
		raise frappe.NotOfferedError(f"the filter operator {op!r}")
	if value is None:
		return field.isnull()
	if isinstance(value, bool):
		value = int(value)
	elif isinstance(value, list | tuple | set) and not value:
		value = ("",)
	return OPERATORS[op.casefold()](field, value)


def _order(query: QueryBuilder, order_by: str | None) -> QueryBuilder:
	for part in (order_by or "").split(",") if order_by != DefaultOrderBy else ():
		if part.strip():
			field, _, direction = part.strip().replace("`", "").partition(" ")
			ascending = direction.strip().lower() == "asc"
			query = query.orderby(field, order=frappe.qb.asc if ascending else frappe.qb.desc)
	return query
