"""The engine's own SQL: plain statements by the driver's cursor, and several writes in one round trip.

Statements are written as for MariaDB: backticks, and `utc_timestamp(6)` for the database's clock. How the two
databases differ stands at the end of this file, and which drivers there are: PyMySQL, mysqlclient, psycopg2.
"""

import json
import re
from collections.abc import Iterable
from itertools import chain, repeat
from operator import is_
from typing import NamedTuple

import frappe

from dartwing_jobs.engine import board
from dartwing_jobs.engine.handling import session_state

Values = tuple | list


def execute(statement: str, values: Values = ()) -> int:
	"""Runs a statement; returns how many rows it touched.

	The driver's cursor takes half the time of `frappe.db.sql`, which also parses, rewrites and traces.
	"""
	frappe.local.db.transaction_writes += 1
	return _send(statement, values).rowcount


def fetch(statement: str, values: Values = ()) -> list[frappe._dict]:
	"""The rows that a statement finds."""
	cursor = _send(statement, values)
	if not cursor.description:
		return []
	columns = [column[0] for column in cursor.description]
	return [frappe._dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def value(expression: str, values: Values = ()):
	"""What an expression amounts to."""
	return _send(f"select {expression} as value", values).fetchall()[0][0]


def insert(doctype: str, rows: list[dict]) -> None:
	"""Writes rows that all have the same columns, in one statement."""
	execute(*_insert(doctype, rows))


def insert_missing(doctype: str, rows: list[dict]) -> int:
	"""Writes those rows that no unique index refuses; returns how many. All values must fit."""
	statement, values = _insert(doctype, rows)
	return execute(_leaving_out_duplicates(statement), values)


def update(doctype: str, name: str, columns: dict, guard: dict | None = None) -> bool:
	"""Sets columns of one row, if it still has what `guard` says; whether it had.

	MariaDB counts the rows that were changed, not those that were found: set something that differs.
	"""
	return execute(*_update(doctype, name, columns, guard or {})) == 1


def update_each(doctype: str, changes: dict[str, dict]) -> None:
	"""Sets columns of many rows by their names, the same columns of all, in one statement."""
	execute(*_update_each(doctype, changes))


def commit() -> None:
	"""The first half of `frappe.db.commit`.

	What is to be done afterwards is for `database.do_what_waits`: an error here says that nothing was kept,
	unless the connection was lost on the way.
	"""
	Trip().commit()


class Write(NamedTuple):
	statement: str
	values: Values = ()
	error: Exception | None = None  # raised if it does not touch one row; nothing behind it is done then


class Trip:
	"""Writes that are sent together: on MariaDB in one round trip, elsewhere one after the other."""

	def __init__(self):
		self.writes: list[Write] = []

	def execute(self, statement: str, values: Values = ()) -> None:
		self.writes.append(Write(statement, values))

	def insert(self, doctype: str, rows: list[dict]) -> None:
		self.execute(*_insert(doctype, rows))

	def update(self, doctype: str, name: str, columns: dict) -> None:
		self.execute(*_update(doctype, name, columns, {}))

	def update_or_raise(self, doctype: str, name: str, columns: dict, guard: dict, error: Exception) -> None:
		"""Raises when it is sent, if the row no longer has what `guard` says; nothing behind it is done."""
		self.writes.append(Write(*_update(doctype, name, columns, guard), error))

	def execute_or_raise(self, statement: str, values: Values, error: Exception) -> None:
		"""Raises when it is sent, if it does not touch just one row."""
		self.writes.append(Write(statement, values, error))

	def update_each(self, doctype: str, changes: dict[str, dict]) -> None:
		self.execute(*_update_each(doctype, changes))

	def send(self) -> None:
		"""Also what is sent with an error is gone from here."""
		writes, self.writes = self.writes, []
		frappe.local.db.transaction_writes += len(writes)
		if len(writes) > 1 and _is_mariadb():
			_send_as_one(writes)
		else:
			_send_in_turn(writes)

	def commit(self) -> None:
		"""As `commit`, with what waits here as the last of the transaction."""
		db = frappe.local.db
		db.before_rollback.reset()
		db.after_rollback.reset()
		db.before_commit.run()
		if _is_mariadb():
			self.execute("commit")
			self.send()
		else:
			self.send()
			_cursor().connection.commit()
		db.transaction_writes = 0


def unpack(value) -> frappe._dict:
	"""A row that was `packed`."""
	return frappe._dict(json.loads(value) if isinstance(value, str) else value)


def as_json(value) -> str | None:
	"""A JSON column's value as text, however the database handed it over."""
	return value if value is None or isinstance(value, str) else json.dumps(value, default=str)


def as_text(value):
	"""A value of any column, so that it can be written again: JSON as text, everything else as it is."""
	return json.dumps(value, default=str) if isinstance(value, dict | list) else value


def _send(statement: str, values: Values):
	"""The one way to the database. Returns the cursor, which has the answer."""
	board.moved()
	cursor = _cursor()
	cursor.execute(statement if _is_mariadb() else dialect(statement), values or None)
	return cursor


def _cursor():
	"""The one place that knows where Frappe keeps the driver's cursor. Its statements are not watched."""
	db = frappe.local.db
	if not db._conn:
		db.connect()
	return session_state.own_cursor(db)


def _send_in_turn(writes: list[Write]) -> None:
	for write in writes:
		touched = _send(write.statement, write.values).rowcount
		if write.error and touched != 1:
			raise write.error


def _update(doctype: str, name: str, columns: dict, guard: dict) -> tuple[str, list]:
	assignments = ", ".join([f"`{column}` = %s" for column in columns])
	conditions = "".join([f" and `{column}` = %s" for column in guard])
	statement = f"update `tab{doctype}` set {assignments} where name = %s{conditions}"
	return statement, [*columns.values(), name, *guard.values()]


def _insert(doctype: str, rows: list[dict]) -> tuple[str, list]:
	"""Columns that no row has a value for are left to their default, which is none too."""
	values = {column: [row[column] for row in rows] for column in rows[0]}
	values = {column: many for column, many in values.items() if not _are_all(many, None)}
	if len(rows) >= MANY_ROWS and _is_mariadb():
		return _insert_what_differs(doctype, values)
	return f"insert into `tab{doctype}` ({_named(values)}) values {_places(values)}", _in_rows(values)


def _are_all(many: list, one: object) -> bool:
	"""The same object, that is: 3 equals 3.0, and is something else."""
	return all(map(is_, many, repeat(one)))


def _named(columns: Iterable[str]) -> str:
	return ", ".join([f"`{column}`" for column in columns])


def _places(values: dict[str, list]) -> str:
	row = f"({', '.join(['%s'] * len(values))})"
	return ", ".join([row] * len(next(iter(values.values()))))


def _in_rows(values: dict[str, list]) -> list:
	return list(chain.from_iterable(zip(*values.values(), strict=True)))


# how the two databases differ

# what only MariaDB understands, and needs
HINT = re.compile(r" force index \(\w+\)")
# from so many rows on, MariaDB is told once what all of them have in common
MANY_ROWS = 4
# how MariaDB says that a write has stopped the trip that it is on: its number for signals, and their text
SIGNALED, STOPPED_AT = 1644, "dartwing stopped at "


def dialect(statement: str) -> str:
	"""The same statement as PostgreSQL understands it."""
	statement = HINT.sub("", statement)
	return statement.replace("`", '"').replace("utc_timestamp(6)", "(clock_timestamp() at time zone 'utc')")


def packed(columns: tuple[str, ...], **more: str) -> str:
	"""SQL for many columns as one JSON value: the driver describes each column of a result in slow Python.

	`more` are other expressions by their names. For texts and numbers; a moment must be `written`.
	"""
	named = {column: f"`{column}`" for column in columns} | more
	function = "json_object" if _is_mariadb() else "json_build_object"
	pairs = ", ".join(f"'{name}', {value}" for name, value in named.items())
	return f"{function}({pairs})"


def written(moment: str) -> str:
	"""SQL for a moment of a `packed` row: with six digits, for Python 3.10 reads no fewer."""
	return moment if _is_mariadb() else f"""to_char({moment}, 'YYYY-MM-DD"T"HH24:MI:SS.US')"""


def _is_mariadb() -> bool:
	return frappe.local.db.db_type == "mariadb"


def _leaving_out_duplicates(insert: str) -> str:
	if _is_mariadb():
		return insert.replace("insert into", "insert ignore into", 1)
	return f"{insert} on conflict do nothing"


def _insert_what_differs(doctype: str, values: dict[str, list]) -> tuple[str, list]:
	"""Most columns are the same in all rows: writing them out for each takes longer than all the rest."""
	same = {column: many[0] for column, many in values.items() if _are_all(many, many[0])}
	different = {column: many for column, many in values.items() if column not in same}
	statement = f"""insert into `tab{doctype}` ({_named([*different, *same])})
		with new_rows ({_named(different)}) as (values {_places(different)})
		select {", ".join([_named(different), *["%s"] * len(same)])} from new_rows"""
	return statement, [*_in_rows(different), *same.values()]


def _update_each(doctype: str, changes: dict[str, dict]) -> tuple[str, list]:
	return (_update_by_place if _is_mariadb() else _update_by_record)(doctype, changes)


def _update_by_place(doctype: str, changes: dict[str, dict]) -> tuple[str, list]:
	"""MariaDB finds the value of a row by the place of its name. What all rows get is said once."""
	names, rows = list(changes), list(changes.values())
	places = ", ".join(["%s"] * len(names))
	assignments, values = [], []
	for column, first in rows[0].items():
		each = [row[column] for row in rows]
		if all(value == first for value in each):
			assignments.append(f"`{column}` = %s")
			values.append(first)
		else:
			assignments.append(f"`{column}` = elt(field(name, {places}), {places})")
			values += [*names, *each]
	statement = f"update `tab{doctype}` set {', '.join(assignments)} where name in ({places})"
	return statement, [*values, *names]


def _update_by_record(doctype: str, changes: dict[str, dict]) -> tuple[str, list]:
	"""PostgreSQL reads records of the table's own types from JSON."""
	columns = next(iter(changes.values()))
	assignments = ", ".join([f"`{column}` = changed.`{column}`" for column in columns])
	statement = f"""update `tab{doctype}` as target set {assignments}
		from json_populate_recordset(null::`tab{doctype}`, %s) as changed where target.name = changed.name"""
	return statement, [json.dumps([{"name": name, **row} for name, row in changes.items()], default=str)]


def _send_as_one(writes: list[Write]) -> None:
	"""As one compound statement of MariaDB. The server itself stops in it: a commit may come behind."""
	values = [value for write in writes for value in write.values]
	parts = "; ".join([_part(write, place, bool(values)) for place, write in enumerate(writes)])
	try:
		_send(f"begin not atomic {parts}; end", values)
	except Exception as error:
		text = str(error.args[-1]) if error.args[:1] == (SIGNALED,) else ""
		if not text.startswith(STOPPED_AT):
			raise
		raise writes[int(text.removeprefix(STOPPED_AT))].error from error


def _part(write: Write, place: int, has_company: bool) -> str:
	"""Beside statements with values the driver reads each percent sign as the place of one."""
	is_plain = has_company and not write.values
	statement = write.statement.replace("%", "%%") if is_plain else write.statement
	if not write.error:
		return statement
	stop = f"signal sqlstate '45000' set message_text = '{STOPPED_AT}{place}'"
	return f"{statement}; if row_count() <> 1 then {stop}; end if"
