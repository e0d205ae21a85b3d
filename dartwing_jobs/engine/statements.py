"""The engine's own SQL: plain statements through the driver, and several of them in one round trip.

Statements are written as for MariaDB: backticks, and `utc_timestamp(6)` for the database's clock.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple
from weakref import WeakKeyDictionary

import frappe

Values = tuple | list
# what only MariaDB understands, and needs
HINT = re.compile(r" force index \(\w+\)")
# how a statement that touched no row ends the trip: MariaDB's number for signals, and their text
SIGNALED, UNTOUCHED = 1644, "dartwing untouched "
# a trip is sent when so many rows wait in it: servers refuse packets that are too large
ROWS_AT_ONCE = 1000
# an insert of more rows is written out: a server that has parsed it once will hardly see it again
PREPARED_ROWS = 2
# trips that a connection keeps prepared: the engine has some dozens, and inserts differ by their columns
PREPARED_AT_MOST = 200


class Waiting(NamedTuple):
	"""A statement that travels with others, and what to do with its answer."""

	statement: str
	values: Values
	then: Callable | None = None
	is_read: bool = False
	is_value: bool = False  # an expression; those that follow each other are asked for by one statement
	or_raise: Exception | None = None  # if it does not touch a row; nothing behind it is done then
	is_written_out: bool = False  # with its values in it: no two are the same


@dataclass
class Trip:
	"""What waits to be sent together."""

	waiting: list[Waiting] = field(default_factory=list)
	rows: dict[str, list[dict]] = field(default_factory=dict)

	def take_waiting(self) -> list[Waiting]:
		taken, self.waiting = self.waiting, []
		return taken

	def take_everything(self) -> list[Waiting]:
		rows, self.rows = self.rows, {}
		return [*self.take_waiting(), *(_insert(doctype, rows[doctype]) for doctype in rows)]


def execute(statement: str, values: Values = ()) -> int:
	"""Runs a statement now; returns how many rows it touched.

	The driver's cursor takes half the time of `frappe.db.sql`, which also parses, rewrites and traces.
	"""
	touched = []
	_send([*_trip().take_waiting(), Waiting(statement, values, touched.append)])
	return touched[0]


def execute_later(statement: str, values: Values = ()) -> None:
	"""Runs a statement: at once, or when the statements of `in_one_go` travel."""
	_send_or_wait(Waiting(statement, values))


def fetch(statement: str, values: Values = ()) -> list[frappe._dict]:
	"""The rows that a statement finds."""
	found = []
	_send([*_trip().take_waiting(), Waiting(statement, values, found.extend, is_read=True)])
	return found


def fetch_later(statement: str, values: Values, then: Callable[[list], None]) -> None:
	"""`then` gets the rows: at once, or when the statements of `in_one_go` travel."""
	_send_or_wait(Waiting(statement, values, then, is_read=True))


def value(expression: str, values: Values = ()):
	"""What an expression amounts to."""
	found = []
	_send([*_trip().take_waiting(), Waiting(expression, values, found.append, is_read=True, is_value=True)])
	return found[0]


def value_later(expression: str, values: Values, then: Callable[[object], None]) -> None:
	"""`then` gets what an expression amounts to: at once, or when the statements of `in_one_go` travel."""
	_send_or_wait(Waiting(expression, values, then, is_read=True, is_value=True))


def insert(doctype: str, rows: list[dict]) -> None:
	"""Writes rows that all have the same columns, in one statement."""
	_send_or_wait(_insert(doctype, rows))


def insert_missing(doctype: str, rows: list[dict]) -> int:
	"""Writes now those rows that no unique index refuses; returns how many. All values must fit."""
	one = _insert(doctype, rows)
	if frappe.db.db_type == "mariadb":
		return execute(one.statement.replace("insert into", "insert ignore into", 1), one.values)
	return execute(f"{one.statement} on conflict do nothing", one.values)


def insert_last(doctype: str, rows: list[dict]) -> None:
	"""As `insert`, but inside `in_one_go` such rows of a table are written at its end, in one statement."""
	trip = _current()
	if trip is None:
		insert(doctype, rows)
		return
	trip.rows.setdefault(doctype, []).extend(rows)
	if sum(map(len, trip.rows.values())) >= ROWS_AT_ONCE:
		arrive()


def update(doctype: str, name: str, columns: dict, guard: dict | None = None) -> bool:
	"""Sets columns of one row now, if it still has what `guard` says; whether it had.

	MariaDB counts the rows that were changed, not those that were found: set something that differs.
	"""
	return execute(*_update(doctype, name, columns, guard or {})) == 1


def update_later(doctype: str, name: str, columns: dict) -> None:
	"""Sets columns of one row: at once, or when the statements of `in_one_go` travel."""
	_send_or_wait(Waiting(*_update(doctype, name, columns, {})))


def update_or_raise(doctype: str, name: str, columns: dict, guard: dict, error: Exception) -> None:
	"""As `update_later`, but raises if the row no longer has what `guard` says."""
	_send_or_wait(Waiting(*_update(doctype, name, columns, guard), or_raise=error))


@contextmanager
def in_one_go() -> Iterator[None]:
	"""Inside, writes wait until something is read, or until the end: round trips cost more than statements.

	Only for code whose every statement goes through this module: others would not see what still waits.
	"""
	with _going(Trip()) as trip:
		yield
		while waiting := trip.take_everything():  # answers may lead to more
			_send(waiting)


@contextmanager
def apart() -> Iterator[None]:
	"""Inside, nothing waits, and nothing that waits is sent: for questions to another connection."""
	with _going(None):
		yield


def arrive() -> None:
	"""Sends everything that waits now, for those who need an answer to go on."""
	_send(_trip().take_everything())


def commit() -> None:
	"""`frappe.db.commit`, with what still waits in the same round trip."""
	db = frappe.db
	db.before_rollback.reset()
	db.after_rollback.reset()
	db.before_commit.run()
	trip = _trip()
	waiting = trip.take_everything()
	while any(one.then for one in waiting):  # what follows from an answer belongs to this transaction
		_send(waiting)
		waiting = trip.take_everything()
	if db.db_type == "mariadb":
		_send([*waiting, Waiting("commit", ())])
	else:
		_send(waiting)
		db._conn.commit()
	db.transaction_writes = 0
	with _going(None):  # what others do afterwards is no part of it
		db.after_commit.run()


def packed(columns: tuple[str, ...], **more: str) -> str:
	"""SQL for many columns as one JSON value: the driver describes each column of a result in slow Python.

	`more` are other expressions by their names. For texts and numbers; moments would come back as texts.
	"""
	named = {column: f"`{column}`" for column in columns} | more
	function = "json_object" if frappe.db.db_type == "mariadb" else "json_build_object"
	pairs = ", ".join(f"'{name}', {value}" for name, value in named.items())
	return f"{function}({pairs})"


def unpack(value) -> frappe._dict:
	return frappe._dict(json.loads(value) if isinstance(value, str) else value)


def as_json(value) -> str | None:
	"""A JSON column's value as text, however the database handed it over."""
	return value if value is None or isinstance(value, str) else json.dumps(value, default=str)


def _update(doctype: str, name: str, columns: dict, guard: dict) -> tuple[str, list]:
	assignments = ", ".join(f"`{column}` = %s" for column in columns)
	conditions = "".join(f" and `{column}` = %s" for column in guard)
	values = [*columns.values(), name, *guard.values()]
	return f"update `tab{doctype}` set {assignments} where name = %s{conditions}", values


def _insert(doctype: str, rows: list[dict]) -> Waiting:
	"""Columns that no row has a value for are left to their default, which is none too."""
	empty = [column for column, value in rows[0].items() if value is None]
	empty = set(empty) - {column for row in rows for column in empty if row[column] is not None}
	columns = [column for column in rows[0] if column not in empty]
	start = f"insert into `tab{doctype}` ({', '.join(f'`{column}`' for column in columns)}) values "
	values_of = itemgetter(*columns)
	if frappe.db.db_type == "mariadb" and len(rows) > PREPARED_ROWS:
		literals = Literals(_cursor().connection)
		written = ", ".join(f"({', '.join(literals.of(values_of(row)))})" for row in rows)
		return Waiting(start + written, (), is_written_out=True)
	places = ", ".join([f"({', '.join(['%s'] * len(columns))})"] * len(rows))
	return Waiting(start + places, [value for row in rows for value in values_of(row)])


class Literals(dict):
	"""Values as SQL: slow to write in this driver, and most values of a trip are the same."""

	def __init__(self, connection):
		super().__init__({None: "null"})
		self.connection = connection

	def of(self, values: Iterable) -> Iterator[str]:
		return map(self.__getitem__, values)

	def __missing__(self, value: object) -> str:
		if type(value) is str:
			literal = f"'{self.connection.escape_string(value)}'"
		elif type(value) is datetime:
			literal = f"'{value}'"
		else:
			literal = self.connection.literal(value)
		self[value] = literal
		return literal


def _current() -> Trip | None:
	return getattr(frappe.local, "dartwing_trip", None)


def _trip() -> Trip:
	return _current() or Trip()


@contextmanager
def _going(trip: Trip | None) -> Iterator[Trip | None]:
	before = _current()
	frappe.local.dartwing_trip = trip
	try:
		yield trip
	finally:
		frappe.local.dartwing_trip = before


def _send_or_wait(one: Waiting) -> None:
	if trip := _current():
		trip.waiting.append(one)
	else:
		_send([one])


def _send(statements: list[Waiting]) -> None:
	frappe.db.transaction_writes += sum(not one.is_read for one in statements)
	statements = list(_with_values_joined(statements))
	if len(statements) > 1 and frappe.db.db_type == "mariadb":
		_send_together(statements)
		return
	for one in statements:
		_send_one(one)


def _with_values_joined(statements: list[Waiting]) -> Iterator[Waiting]:
	"""Each statement costs the server and the driver more than what it asks for."""
	for is_value, group in groupby(statements, lambda one: one.is_value):
		if is_value:
			yield _joined(list(group))
		else:
			yield from group


def _joined(asked: list[Waiting]) -> Waiting:
	columns = ", ".join(f"{one.statement} as value{number}" for number, one in enumerate(asked))

	def hand_out(rows: list) -> None:
		for one, found in zip(asked, rows[0].values(), strict=True):
			one.then(found)

	return Waiting(f"select {columns}", [v for one in asked for v in one.values], hand_out, is_read=True)


def _send_one(one: Waiting) -> None:
	cursor = _cursor()
	if frappe.db.db_type == "mariadb" and one.values:
		cursor.execute(_known_or_written_out(cursor, one.statement, one.values))
	else:
		cursor.execute(_dialect(one.statement, frappe.db.db_type), one.values or None)
	if one.or_raise and cursor.rowcount != 1:
		raise one.or_raise
	if one.then:
		one.then(_rows(cursor) if one.is_read else cursor.rowcount)


def _send_together(statements: list[Waiting]) -> None:
	"""As one compound statement, which answers with one result for each statement that is to be answered."""
	cursor = _cursor()
	try:
		cursor.execute(_compound(cursor, statements))
		answers = _answers(cursor, statements)
	except frappe.db.OperationalError as error:
		if error.args[0] == SIGNALED and error.args[1].startswith(UNTOUCHED):
			raise statements[int(error.args[1].removeprefix(UNTOUCHED))].or_raise from error
		raise
	for then, answer in answers:
		then(answer)


def _compound(cursor, statements: list[Waiting]) -> str:
	if any(one.is_written_out for one in statements):
		literals = Literals(cursor.connection)
		return _in_order(statements, [_written_out(one, literals) for one in statements])
	values = [value for one in statements for value in one.values]
	return _known_or_written_out(cursor, _in_order(statements, [one.statement for one in statements]), values)


def _known_or_written_out(cursor, statement: str, values: Values) -> str:
	"""A statement as it is sent. One that the server has seen before brings only new values."""
	literals = Literals(cursor.connection)
	if values and (name := _prepared(cursor, statement, len(values))):
		return f"execute {name} using {', '.join(literals.of(values))}"
	return statement % tuple(literals.of(values)) if values else statement


def _in_order(statements: list[Waiting], texts: list[str]) -> str:
	checked = enumerate(zip(statements, texts, strict=True))
	parts = [part for number, (one, text) in checked for part in (text, *_checks(number, one))]
	return f"begin not atomic {'; '.join(parts)}; end"


def _checks(number: int, one: Waiting) -> Iterator[str]:
	"""What is asked right behind a statement: whether it has touched a row."""
	if one.or_raise:
		# the server itself must stop there: a commit may be on the same trip
		signal = f"signal sqlstate '45000' set message_text = '{UNTOUCHED}{number}'"
		yield f"if row_count() <> 1 then {signal}; end if"
	elif one.then and not one.is_read:
		yield "select row_count() as touched"


def _written_out(one: Waiting, literals: Literals) -> str:
	return one.statement % tuple(literals.of(one.values)) if one.values else one.statement


def _prepared(cursor, statement: str, count: int) -> str | None:
	"""The name by which this connection knows a statement with so many values; None when it does not.

	Learning costs a trip: many connections live for one request, and send most statements once.
	"""
	connection = cursor.connection
	session = connection.thread_id()  # another one after a reconnect
	learnt = _learnt.setdefault(connection, {}).setdefault(session, Learnt())
	if learnt.is_worth_learning(statement):
		cursor.execute(f"prepare {learnt.name(statement)} from %s", (statement % (("?",) * count),))
	return learnt.names.get(statement)


class Learnt:
	"""The statements that a session of the server has prepared, by name, and those that it has seen once."""

	def __init__(self):
		self.names: dict[str, str] = {}
		self.seen: set[str] = set()

	def is_worth_learning(self, statement: str) -> bool:
		if statement in self.names or len(self.names) == PREPARED_AT_MOST:
			return False
		if statement in self.seen:
			return True
		if len(self.seen) == PREPARED_AT_MOST:
			self.seen.clear()
		self.seen.add(statement)
		return False

	def name(self, statement: str) -> str:
		self.names[statement] = f"dartwing_{len(self.names)}"
		return self.names[statement]


# by connection, and by the server's number for its session
_learnt: WeakKeyDictionary = WeakKeyDictionary()


def _answers(cursor, statements: list[Waiting]) -> list[tuple[Callable, object]]:
	answers = []
	for one in statements:
		if one.then:
			answers.append((one.then, _rows(cursor) if one.is_read else cursor.fetchall()[0][0]))
			cursor.nextset()
	return answers


def _cursor():
	if not frappe.db._conn:
		frappe.db.connect()
	return frappe.db._cursor


def _rows(cursor) -> list[frappe._dict]:
	columns = [column[0] for column in cursor.description]
	return [frappe._dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


@lru_cache(maxsize=500)
def _dialect(statement: str, database: str) -> str:
	if database == "mariadb":
		return statement
	statement = HINT.sub("", statement)
	return statement.replace("`", '"').replace("utc_timestamp(6)", "(clock_timestamp() at time zone 'utc')")
