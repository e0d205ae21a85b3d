"""frappe.db: one connection, opened at the first statement, with Frappe's transaction callbacks."""

import itertools
import re

import frappe
import psycopg2
from frappe.database import sequence
from frappe.database.schema import TYPE_MAP, updatedb
from frappe.database.values import Values
from frappe.utils import CallbackManager
from psycopg2 import extensions
from psycopg2.errors import DeadlockDetected, LockNotAvailable, QueryCanceled, UniqueViolation

_float = extensions.new_type(extensions.DECIMAL.values, "FLOAT", lambda v, _: None if v is None else float(v))
extensions.register_type(_float)
# as in Frappe: a number is compared with numbers and texts alike, a list goes where a tuple goes
extensions.register_adapter(int, lambda value: extensions.AsIs(f"'{value}'"))
extensions.register_adapter(list, extensions.SQL_IN)
LITERAL = re.compile(r"('(?:[^']|'')*')")
REWRITES = (("`", '"'), (r"(?i)\bifnull\(", "coalesce("))
# PostgreSQL compares a text with '5', not with 5
REWRITES += ((r"([=><]+)\s*([+-]?\d+)(\.0)?(?![a-zA-Z.\d])", r"\1 '\2'"),)


def modify_query(query) -> str:
	"""SQL written for both databases; literals stay as they are."""
	parts = LITERAL.split(str(query).strip())
	for pattern, replacement in REWRITES:
		parts[::2] = [re.sub(pattern, replacement, part) for part in parts[::2]]
	return "".join(parts)


class PostgresDatabase(Values):
	db_type, type_map = "postgres", TYPE_MAP
	updatedb = staticmethod(updatedb)
	create_sequence = staticmethod(sequence.create_sequence)
	get_next_sequence_val = staticmethod(sequence.get_next_val)
	is_primary_key_violation = staticmethod(lambda e: isinstance(e, UniqueViolation) and "_pkey" in str(e))
	is_unique_key_violation = staticmethod(lambda e: isinstance(e, UniqueViolation) and "_key" in str(e))

	def __init__(self, conf: frappe._dict):
		self.conf, self._conn, self._cursor = conf, None, None
		self.transaction_writes, self.value_cache = 0, {}
		self.before_commit, self.after_commit = CallbackManager(), CallbackManager()
		self.before_rollback, self.after_rollback = CallbackManager(), CallbackManager()

	def __getattr__(self, name: str):
		raise frappe.NotOfferedAttribute(f"frappe.db.{name}")

	def connect(self) -> None:
		conf, login = self.conf, {"user": self.conf.db_name, "password": self.conf.db_password}
		self._conn = psycopg2.connect(dbname=conf.db_name, host=conf.db_host, port=conf.db_port, **login)
		self._conn.set_isolation_level(extensions.ISOLATION_LEVEL_REPEATABLE_READ)
		self._cursor = self._conn.cursor()

	def close(self) -> None:
		if self._conn:
			self._conn.close()
			self._conn = self._cursor = None

	def sql(self, query, values=(), as_dict: bool = False, as_list: bool = False, pluck: bool = False):
		if not self._conn:
			self.connect()
		query = modify_query(query)
		self.transaction_writes += query.lower().startswith(("update", "insert", "delete"))
		self._execute(query, values if isinstance(values, tuple | list | dict | None) else (values,))
		if not self._cursor.description:
			return ()
		rows = self._cursor.fetchall()
		if as_dict:
			keys = [column[0] for column in self._cursor.description]
			return [frappe._dict(zip(keys, row, strict=True)) for row in rows]
		if pluck:
			return [row[0] for row in rows]
		return list(map(list, rows)) if as_list else rows

	def _execute(self, query: str, values) -> None:
		if "\0" in query:
			raise ValueError("SQL cannot contain NUL characters")
		try:
			self._cursor.execute(query, values or None)
		except DeadlockDetected as e:
			raise frappe.QueryDeadlockError(e) from e
		except (QueryCanceled, LockNotAvailable) as e:
			raise frappe.QueryTimeoutError(e) from e

	def multisql(self, sql_dict: dict[str, str], values=None, **options):
		return self.sql(sql_dict[self.db_type], values, **options)

	def sql_ddl(self, query: str) -> None:
		self.commit()
		self.sql(query)

	def commit(self) -> None:
		self.before_rollback.reset()
		self.after_rollback.reset()
		self._end("commit", self.before_commit, self.after_commit)

	def rollback(self, *, save_point: str | None = None) -> None:
		if save_point:
			self.sql(f"rollback to savepoint {save_point}")
			return
		self.before_commit.reset()
		self.after_commit.reset()
		self._end("rollback", self.before_rollback, self.after_rollback)

	def _end(self, how: str, before: CallbackManager, after: CallbackManager) -> None:
		before.run()
		if self._conn:
			getattr(self._conn, how)()
		self.transaction_writes = 0
		after.run()

	def savepoint(self, save_point: str) -> None:
		self.sql(f"savepoint {save_point}")

	def release_savepoint(self, save_point: str) -> None:
		self.sql(f"release savepoint {save_point}")

	def escape(self, s: str, percent: bool = True) -> str:
		return str(extensions.QuotedString((s.replace("%", "%%") if percent else s).encode()))

	def table_exists(self, doctype: str, cached: bool = True) -> bool:
		return self.sql("select to_regclass(%s) is not null", f'"tab{doctype}"')[0][0]

	def get_table_columns(self, doctype: str) -> list[str]:
		query = "select column_name from information_schema.columns where table_name = %s"
		key, names = f"table_columns::{doctype}", (f"tab{doctype}",)
		return frappe.cache.get_value(key, lambda: self.sql(query, names, pluck=True))

	def has_column(self, doctype: str, column: str) -> bool:
		return column in self.get_table_columns(doctype)

	def has_index(self, table_name: str, index_name: str) -> bool:
		query = "select 1 from pg_indexes where tablename = %s and indexname = %s"
		return bool(self.sql(query, (table_name, index_name)))

	def add_index(self, doctype: str, fields: list[str], index_name: str | None = None) -> None:
		# how much of a text to index is for MariaDB only
		columns = [re.sub(r"\(.*\)", "", field) for field in fields]
		name, listed = index_name or "_".join([*columns, "index"]), ", ".join(f'"{c}"' for c in columns)
		self.sql_ddl(f'create index if not exists "{name}" on "tab{doctype}" ({listed})')

	def add_unique(self, doctype: str, fields: list[str], constraint_name: str | None = None) -> None:
		name = constraint_name or "_".join(["unique", *fields])
		if not self.has_index(f"tab{doctype}", name):
			self.sql_ddl(f'alter table "tab{doctype}" add constraint {name} unique ({", ".join(fields)})')

	def bulk_insert(
		self, doctype: str, fields, values, ignore_duplicates: bool = False, chunk_size: int = 10000
	) -> None:
		query, rows = frappe.qb.into(doctype).columns(*fields), iter(values)
		query = query.on_conflict().do_nothing() if ignore_duplicates else query
		while chunk := tuple(itertools.islice(rows, chunk_size)):
			query.insert(*chunk).run()
