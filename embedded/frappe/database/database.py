"""frappe.db: one connection, opened at the first statement, with Frappe's transaction callbacks."""

import itertools
import random
import re
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import frappe
import psycopg2
from frappe.database import sequence
from frappe.database.postgres import TYPE_MAP, PostgresErrors, modify_query, modify_values
from frappe.database.utils import EmptyQueryValues, is_query_type
from frappe.database.values import Values
from frappe.query_builder import get_table_name
from frappe.utils import CallbackManager
from psycopg2.extensions import ISOLATION_LEVEL_REPEATABLE_READ, QuotedString


class PostgresDatabase(PostgresErrors, Values):
	VARCHAR_LEN = 140
	MAX_WRITES_PER_TRANSACTION = 200_000
	REGEX_CHARACTER = "~"
	OPTIONAL_COLUMNS = ("_user_tags", "_comments", "_assign", "_liked_by")
	DEFAULT_SHORTCUTS = ("_Login", "__user", "_Full Name", "Today", "__today", "now", "Now")
	db_type, type_map = "postgres", TYPE_MAP

	def __init__(self, host: str, port: int, user: str, password: str, cur_db_name: str):
		self.host, self.port, self.user = host, port, user
		self.password, self.cur_db_name = password, cur_db_name
		self.transaction_writes, self.auto_commit_on_many_writes = 0, 0
		self.value_cache: dict = {}
		self._conn = self._cursor = None
		self.before_commit, self.after_commit = CallbackManager(), CallbackManager()
		self.before_rollback, self.after_rollback = CallbackManager(), CallbackManager()

	def connect(self) -> None:
		self._conn = psycopg2.connect(
			user=self.user, dbname=self.cur_db_name, host=self.host, port=self.port, password=self.password
		)
		self._conn.set_isolation_level(ISOLATION_LEVEL_REPEATABLE_READ)
		self._cursor = self._conn.cursor()

	def close(self) -> None:
		if self._conn:
			self._conn.close()
			self._conn = self._cursor = None

	def sql(
		self,
		query: Any,
		values: Any = EmptyQueryValues,
		*,
		as_dict: bool = False,
		as_list: bool = False,
		debug: bool = False,
		ignore_ddl: bool = False,
		auto_commit: bool = False,
		update: dict | None = None,
		explain: bool = False,
		run: bool = True,
		pluck: bool = False,
		as_iterator: bool = False,
	) -> Any:
		query, values = modify_query(query), modify_values(values)
		if not run:
			return query
		if not self._conn:
			self.connect()
		self._count_writes(query)
		if auto_commit:
			self.commit()
		self._execute(query, values, ignore_ddl)
		if auto_commit:
			self.commit()
		if not self._cursor.description:
			return ()
		rows = self._rows(as_dict, as_list, pluck, update)
		return rows if as_iterator else list(rows)

	def _execute(self, query: str, values: Any, ignore_ddl: bool) -> None:
		if values is EmptyQueryValues:
			values = None
		elif values is not None and not isinstance(values, tuple | dict | list):
			values = (values,)
		try:
			self._cursor.execute(query, values)
		except Exception as e:
			if self.is_deadlocked(e):
				raise frappe.QueryDeadlockError(e) from e
			if self.is_timedout(e):
				raise frappe.QueryTimeoutError(e) from e
			if self.is_read_only_mode_error(e):
				frappe.throw(frappe._("The site is in read only mode"), frappe.InReadOnlyMode)
			missing = self.is_missing_column(e) or self.is_table_missing(e) or self.cant_drop_field_or_key(e)
			if not (ignore_ddl and missing):
				raise

	def _rows(self, as_dict: bool, as_list: bool, pluck: bool, update: dict | None) -> Iterator:
		keys = [column[0] for column in self._cursor.description]
		for row in self._cursor.fetchall():
			if pluck:
				yield row[0]
			elif as_dict:
				yield frappe._dict(zip(keys, row, strict=True), **(update or {}))
			else:
				yield list(row) if as_list else row

	def _count_writes(self, query: str) -> None:
		if is_query_type(query, ("commit", "rollback")) and "savepoint" not in query.lower():
			self.transaction_writes = 0
		if not is_query_type(query, ("update", "insert", "delete")):
			return
		self.transaction_writes += 1
		if self.transaction_writes > self.MAX_WRITES_PER_TRANSACTION:
			if not self.auto_commit_on_many_writes:
				raise frappe.TooManyWritesError(frappe._("Too many changes in one transaction"))
			self.commit()

	def sql_list(self, query: Any, values: Any = (), debug: bool = False, **kwargs: Any) -> list:
		return self.sql(query, values, debug=debug, pluck=True, **kwargs)

	def sql_ddl(self, query: str, debug: bool = False) -> None:
		self.commit()
		self.sql(query, debug=debug)

	def multisql(self, sql_dict: dict[str, str], values: Any = (), **kwargs: Any) -> Any:
		return self.sql(sql_dict[self.db_type], values, **kwargs)

	def begin(self, *, read_only: bool = False) -> None:
		self.sql(f"START TRANSACTION {'READ ONLY' if read_only or frappe.flags.read_only else ''}")

	def commit(self) -> None:
		self.before_rollback.reset()
		self.after_rollback.reset()
		self.before_commit.run()
		self.sql("commit")
		self.begin()
		self.after_commit.run()

	def rollback(self, *, save_point: str | None = None) -> None:
		if save_point:
			self.sql(f"rollback to savepoint {save_point}")
			return
		self.before_commit.reset()
		self.after_commit.reset()
		self.before_rollback.run()
		self.sql("rollback")
		self.begin()
		self.after_rollback.run()

	def savepoint(self, save_point: str) -> None:
		self.sql(f"savepoint {save_point}")

	def release_savepoint(self, save_point: str) -> None:
		self.sql(f"release savepoint {save_point}")

	def escape(self, s: Any, percent: bool = True) -> str:
		s = s.decode() if isinstance(s, bytes) else s or ""
		return str(QuotedString((s.replace("%", "%%") if percent else s).encode()))

	def get_tables(self, cached: bool = True) -> list[str]:
		return self.sql("select tablename from pg_tables where schemaname = 'public'", pluck=True)

	def table_exists(self, doctype: str, cached: bool = True) -> bool:
		return f"tab{doctype}" in self.get_tables(cached)

	has_table = table_exists

	def get_db_table_columns(self, table: str) -> list[str]:
		columns = frappe.cache.hget("table_columns", table)
		if columns is None:
			columns = self.sql(
				"select column_name from information_schema.columns where table_name = %s", table, pluck=True
			)
			if columns:
				frappe.cache.hset("table_columns", table, columns)
		return columns

	def get_table_columns(self, doctype: str) -> list[str]:
		columns = self.get_db_table_columns(f"tab{doctype}")
		if not columns:
			raise self.TableMissingError("DocType", doctype)
		return columns

	def has_column(self, doctype: str, column: str) -> bool:
		return column in self.get_table_columns(doctype)

	def has_index(self, table_name: str, index_name: str) -> Any:
		return self.sql(
			"select 1 from pg_indexes where tablename = %s and indexname = %s limit 1",
			(table_name, index_name),
		)

	@staticmethod
	def get_index_name(fields: Sequence[str]) -> str:
		return re.sub(r"\s*\([^)]+\)\s*", "", "_".join(fields) + "_index")

	def add_index(self, doctype: str, fields: Sequence[str], index_name: str | None = None) -> None:
		columns = ", ".join('"' + re.sub(r"\(.*\)", "", field) + '"' for field in fields)
		index_name = index_name or self.get_index_name(fields)
		self.sql_ddl(f'CREATE INDEX IF NOT EXISTS "{index_name}" ON "{get_table_name(doctype)}" ({columns})')

	def add_unique(self, doctype: str, fields: Any, constraint_name: str | None = None) -> None:
		fields = [fields] if isinstance(fields, str) else fields
		constraint_name = constraint_name or "unique_" + "_".join(fields)
		if not self.has_index(f"tab{doctype}", constraint_name):
			self.commit()
			self.sql(
				f'ALTER TABLE "tab{doctype}" ADD CONSTRAINT {constraint_name} UNIQUE ({", ".join(fields)})'
			)

	def updatedb(self, doctype: str, meta: Any = None) -> None:
		from frappe.database.schema import sync_table

		meta = meta or frappe.get_meta(doctype, cached=False)
		if not meta.issingle:
			sync_table(meta)
			self.begin()

	def truncate(self, doctype: str) -> None:
		self.sql_ddl(f'truncate "{get_table_name(doctype)}"')

	def bulk_insert(
		self,
		doctype: str,
		fields: Sequence[str],
		values: Iterable[Sequence[Any]],
		ignore_duplicates: bool = False,
		*,
		chunk_size: int = 10_000,
	) -> None:
		query = frappe.qb.into(frappe.qb.DocType(doctype)).columns(*fields)
		query = query.on_conflict().do_nothing() if ignore_duplicates else query
		rows = iter(values)
		while chunk := tuple(itertools.islice(rows, chunk_size)):
			query.insert(*chunk).run()

	create_sequence = staticmethod(sequence.create_sequence)
	get_next_sequence_val = staticmethod(sequence.get_next_val)
	set_next_sequence_val = staticmethod(sequence.set_next_val)

	def __getattr__(self, name: str) -> Callable:
		raise frappe.NotOfferedAttribute(f"frappe.db.{name}")


@contextmanager
def savepoint(catch: type[BaseException] | tuple[type[BaseException], ...] = Exception) -> Iterator[None]:
	name = "".join(random.sample(string.ascii_lowercase, 10))
	frappe.db.savepoint(name)
	try:
		yield
	except catch:
		frappe.db.rollback(save_point=name)
	else:
		frappe.db.release_savepoint(name)
