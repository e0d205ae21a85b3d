"""The reads and writes of frappe.db by DocType and filters; NULL compares as in plain SQL."""

import operator
import re
from contextlib import suppress

import frappe
from frappe.utils.data import cast, now
from psycopg2.errors import UndefinedTable
from pypika import PostgreSQLQuery
from pypika.functions import Count
from pypika.queries import QueryBuilder
from pypika.terms import Criterion, Term

OPERATORS = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le}
OPERATORS |= {">=": operator.ge, "in": Term.isin, "not in": Term.notin, "like": Term.like}
OPERATORS |= {"not like": Term.not_like, "between": lambda field, value: field.between(*value)}
OPERATORS["is"] = lambda field, value: field.isnotnull() if value.lower() == "set" else field.isnull()


def _rows_of(doctype: str) -> QueryBuilder:
	# built in place: a copy at each step takes longer than the query
	return PostgreSQLQuery.from_(frappe.qb.DocType(doctype), immutable=False)


def _where(query: QueryBuilder, filters) -> QueryBuilder:
	if isinstance(filters, str | int):
		filters = {"name": str(filters)}
	if isinstance(filters, dict):
		filters = [(f, *v) if isinstance(v, list | tuple) else (f, "=", v) for f, v in filters.items()]
	elif filters and all(isinstance(entry, str | int) for entry in filters):
		filters = [("name", "in", filters)]
	for entry in filters or ():
		query = query.where(_condition(*entry))
	return query


def _condition(field: str, op: str, value) -> Criterion:
	if re.search(r"\W", field):
		frappe.throw(frappe._("{0} is no field to filter by").format(field))
	if op.lower() not in OPERATORS:
		raise frappe.NotOfferedError(f"the filter operator {op!r}")
	if value is None:
		return frappe.qb.Field(field).isnull()
	if op.lower() in ("in", "not in"):
		value = list(value.split(",") if isinstance(value, str) else value) or [""]
	return OPERATORS[op.lower()](frappe.qb.Field(field), int(value) if isinstance(value, bool) else value)


def _end(query, order_by="modified", limit=None, for_update=False, skip_locked=False, wait=True, cache=False):
	# with cache Frappe may answer from memory: a fresh answer does as well
	if order_by:
		field, _, direction = order_by.partition(" ")
		query = query.orderby(field, order=frappe.qb.asc if direction == "asc" else frappe.qb.desc)
	query = query.limit(limit)
	return query.for_update(skip_locked=skip_locked, nowait=not wait) if for_update else query


def _updates(field, value, update_modified: bool = True) -> dict:
	updates = dict(field) if isinstance(field, dict) else {field: value}
	return updates | {"modified": now(), "modified_by": frappe.session.user} if update_modified else updates


class Values:
	def get_value(self, doctype: str, filters=None, fieldname="name", **options):
		row = next(iter(self.get_values(doctype, filters, fieldname, limit=1, **options)), None)
		return row[0] if row and len(row) == 1 and not isinstance(row, dict) else row

	def get_values(self, doctype: str, filters=None, fieldname="name", **options):
		"""Takes as_dict, pluck, order_by, limit, for_update, skip_locked and wait."""
		if filters is None or filters == []:
			if frappe.get_meta(doctype).issingle:
				raise frappe.NotOfferedError("frappe.db.get_value of a single DocType")
			return []
		fields = [fieldname] if isinstance(fieldname, str) else fieldname
		shape = {"as_dict": options.pop("as_dict", fieldname == "*"), "pluck": options.pop("pluck", False)}
		query = _where(_rows_of(doctype), filters).select(*fields)
		return _end(query, **options).run(**shape)

	def get_singles_dict(self, doctype: str, for_update: bool = False) -> frappe._dict:
		options = {"order_by": None, "for_update": for_update}
		return frappe._dict(self.get_values("Singles", {"doctype": doctype}, ["field", "value"], **options))

	def get_single_value(self, doctype: str, fieldname: str, cache: bool = True):
		df = frappe.get_meta(doctype).get_field(fieldname)
		if not df:
			frappe.throw(frappe._("{1} has no field {0}").format(fieldname, doctype))
		known = self.value_cache.setdefault(doctype, {})
		if not cache or fieldname not in known:
			known[fieldname] = cast(df.fieldtype, self.get_singles_dict(doctype).get(fieldname))
		return known[fieldname]

	def set_single_value(self, doctype: str, fieldname, value=None, **options) -> None:
		updates = _updates(fieldname, value, **options)
		self.delete("Singles", {"field": ("in", tuple(updates)), "doctype": doctype})
		rows = [(doctype, key, int(v) if isinstance(v, bool) else v) for key, v in updates.items()]
		self.bulk_insert("Singles", ["doctype", "field", "value"], rows)
		frappe.clear_document_cache(doctype, doctype)
		self.value_cache.pop(doctype, None)

	def set_value(self, dt: str, dn, field, val=None, **options) -> None:
		if dn is None or (dt == dn and dt != "DocType"):
			raise frappe.NotOfferedError("frappe.db.set_value of a single DocType")
		query = _where(frappe.qb.update(dt), dn)
		for column, value in _updates(field, val, **options).items():
			query = query.set(column, value)
		query.run()
		frappe.clear_document_cache(dt, dn if isinstance(dn, str) else None)

	def exists(self, dt, dn=None):
		if isinstance(dt, dict):
			dt, dn = dt["doctype"], {key: value for key, value in dt.items() if key != "doctype"}
		if dn is None or (dt != "DocType" and dt == dn):
			return dn
		with suppress(UndefinedTable):
			return self.get_value(dt, dn, order_by=None)

	def count(self, dt: str, filters=None, debug: bool = False, cache: bool = False) -> int:
		return _where(_rows_of(dt), filters).select(Count("*")).run()[0][0]

	def delete(self, doctype: str, filters=None) -> None:
		_where(_rows_of(doctype), filters).delete().run()

	def get_all(self, *args, **kwargs) -> list:
		return frappe.get_all(*args, **kwargs)

	def get_global(self, key: str) -> str | None:
		where = {"defkey": key, "parent": "__global"}
		found = ("DefaultValue", where, "defvalue")
		return frappe.cache.get_value(f"global::{key}", lambda: self.get_value(*found))

	def set_global(self, key: str, val: str) -> None:
		self.delete("DefaultValue", {"defkey": key, "parent": "__global"})
		row = {"name": frappe.generate_hash(length=10), "parent": "__global", "defkey": key, "defvalue": val}
		self.bulk_insert("DefaultValue", row, [tuple(row.values())])
		frappe.cache.delete_value(f"global::{key}")
