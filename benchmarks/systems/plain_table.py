"""One plain table in the site's own database, into which the jobs of every system insert a row.

Jobs of the peers reach it by the driver that Frappe uses, over one connection per process that is kept.
"""

import functools
import json
import os
from collections.abc import Callable

DATABASE = "BENCHMARK_DATABASE"  # how the peers find the site's database: its configuration, as JSON
NAME = "benchmark_row"
INSERT = f"insert into {NAME} (number) values (%s)"
MAKE = {
	"mariadb": f"create table {NAME} (id bigint auto_increment primary key, number bigint not null)",
	"postgres": f"create table {NAME} (id bigserial primary key, number bigint not null)",
}


class PlainTable:
	def __init__(self, sql: Callable, commit: Callable[[], None]):
		self.sql = sql
		self.commit = commit

	def insert(self, number: int) -> None:
		self.sql(INSERT, (number,))
		self.commit()

	def count(self) -> int:
		self.commit()  # what was read before is older than what workers have written since
		found = self.sql(f"select count(*) from {NAME}")[0][0]
		self.commit()
		return found

	def clear(self) -> None:
		self.sql(f"delete from {NAME}")
		self.commit()


def in_this_process() -> PlainTable:
	"""Connected when it is first used: a connection must not be shared with processes that were forked."""
	return _connected(os.getpid())


@functools.cache
def _connected(_pid: int) -> PlainTable:
	connection = _connect(json.loads(os.environ[DATABASE]))

	def sql(statement: str, values: tuple = ()) -> tuple:
		with connection.cursor() as cursor:
			cursor.execute(statement, values)
			return cursor.fetchall() if cursor.description else ()

	return PlainTable(sql, connection.commit)


def _connect(config: dict):
	who = {"host": config["host"], "port": config["port"], "user": config["user"]}
	if config["kind"] == "postgres":
		import psycopg2  # only one of the two drivers need be there

		return psycopg2.connect(**who, password=config["password"], dbname=config["name"])
	import pymysql

	return pymysql.connect(**who, password=config["password"], database=config["name"])
