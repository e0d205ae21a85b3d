"""frappe.qb: pypika's PostgreSQL dialect, whose queries run on the site's connection with bound strings."""

from datetime import time, timedelta
from typing import Any

import frappe
import pypika.queries
import pypika.terms
from pypika import (  # noqa: F401  # noqa: F401
	Case,
	Criterion,
	CustomFunction,
	Field,
	Interval,
	JoinType,
	Not,
	NullValue,
	Order,
	PostgreSQLQuery,
	Schema,
	Table,
	Tuple,
)
from pypika.dialects import PostgreSQLQueryBuilder
from pypika.queries import Column, QueryBuilder, _SetOperation  # noqa: F401
from pypika.terms import Function, PseudoColumn, ValueWrapper
from pypika.utils import format_alias_sql, ignore_copy


class Parameters(dict):
	def add(self, value: str) -> str:
		key = f"param{len(self) + 1}"
		self[key] = value
		return f"%({key})s"


def _value_sql(self: ValueWrapper, **kwargs: Any) -> str:
	wrapper = kwargs.pop("param_wrapper", None)
	if isinstance(self.value, time | timedelta):
		self.value = str(self.value)
	if wrapper is not None and isinstance(self.value, str):
		sql = wrapper.add(self.value)
	else:
		sql = self.get_value_sql(**{"secondary_quote_char": "'"} | kwargs)
	return format_alias_sql(sql, self.alias, quote_char=kwargs.get("quote_char"))


def _function_sql(self: Function, **kwargs: Any) -> str:
	inner = {k: kwargs.get(k) for k in ("with_namespace", "quote_char", "dialect", "param_wrapper")}
	sql = self.get_function_sql(**inner)
	if self.schema is not None:
		sql = f"{self.schema.get_sql(quote_char=inner['quote_char'])}.{sql}"
	if kwargs.get("with_alias"):
		return format_alias_sql(sql, self.alias, quote_char=inner["quote_char"])
	return sql


def _walk(query: QueryBuilder) -> tuple[str, dict]:
	parameters = Parameters()
	return query.get_sql(param_wrapper=parameters), parameters


def _run(query: QueryBuilder, *args: Any, **kwargs: Any) -> Any:
	sql, parameters = _walk(query)
	return frappe.db.sql(sql, parameters, *args, **kwargs)


# pypika drops unknown keywords inside functions and has no bound values of its own
ValueWrapper.get_sql = _value_sql
Function.get_sql = _function_sql
for _builder in (PostgreSQLQueryBuilder, _SetOperation):
	_builder.run, _builder.walk = _run, _walk
# a column may be called `field`, which pypika reserves
pypika.queries.Selectable.__getattr__ = ignore_copy(lambda table, name: Field(name, table=table))
pypika.queries.Selectable.__getitem__ = ignore_copy(lambda table, name: Field(name, table=table))
pypika.queries.Selectable.field = PseudoColumn("field")


def get_table_name(table_name: str) -> str:
	return table_name if table_name.startswith("__") else f"tab{table_name}"


class Postgres(PostgreSQLQuery):
	desc, asc, terms, Schema, Table, Field = Order.desc, Order.asc, pypika.terms, Schema, Table, Field

	@staticmethod
	def functions(name: str, *args: Any, **kwargs: Any) -> Function:
		return Function(name, *args, **kwargs)

	@staticmethod
	def DocType(table_name: str, *args: Any, **kwargs: Any) -> Table:
		return Table(get_table_name(table_name), *args, **kwargs)

	@classmethod
	def from_(cls, table: Any, *args: Any, **kwargs: Any) -> QueryBuilder:
		return super().from_(cls.DocType(table) if isinstance(table, str) else table, *args, **kwargs)

	@classmethod
	def into(cls, table: Any, *args: Any, **kwargs: Any) -> QueryBuilder:
		return super().into(cls.DocType(table) if isinstance(table, str) else table, *args, **kwargs)

	@classmethod
	def update(cls, table: Any, *args: Any, **kwargs: Any) -> QueryBuilder:
		return super().update(cls.DocType(table) if isinstance(table, str) else table, *args, **kwargs)

	@staticmethod
	def get_query(*args: Any, **kwargs: Any) -> QueryBuilder:
		from frappe.database.query import get_query

		return get_query(*args, **kwargs)


DocType = Postgres.DocType
