"""frappe.qb: pypika's PostgreSQL dialect, whose queries run on the site's connection."""

import frappe
from pypika import Case, Field, Interval, Order, PostgreSQLQuery, Table
from pypika.dialects import PostgreSQLQueryBuilder
from pypika.queries import QueryBuilder, _SetOperation

__all__ = ["Case", "DocType", "Field", "Interval", "Order"]


def _run(query: QueryBuilder, **options):
	return frappe.db.sql(query.get_sql(), **options)


PostgreSQLQueryBuilder.run = _SetOperation.run = _run


def DocType(table) -> Table:
	return Table(table if table.startswith("__") else f"tab{table}") if isinstance(table, str) else table


def _of_doctype(method: str) -> staticmethod:
	return staticmethod(lambda table: getattr(PostgreSQLQuery, method)(DocType(table)))


class Postgres(PostgreSQLQuery):
	DocType, Field, desc, asc = staticmethod(DocType), Field, Order.desc, Order.asc
	from_, into, update = map(_of_doctype, ("from_", "into", "update"))
