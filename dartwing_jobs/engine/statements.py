"""The engine's own SQL: plain statements through the driver, and several of them in one round trip.

Statements are written as for MariaDB: backticks, and `utc_timestamp(6)` for the database's clock.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import NamedTuple
from weakref import WeakKeyDictionary, proxy

import frappe

from dartwing_jobs.engine import answers

Values = tuple | list
# what only MariaDB understands, and needs
HINT = re.compile(r" force index \(\w+\)")
# how a statement stops the trip that it is on: MariaDB's number for signals, and their text
SIGNALED, STOPPED_AT = 1644, "dartwing stopped at "
STOP = f"signal sqlstate '45000' set message_text = '{STOPPED_AT}{{place}}'; end if"
# what is read by anything but a select, MariaDB locks
HOLDS = "@dartwing_holds"
STOP_IF = f"if {HOLDS} then {STOP}"
STOP_IF_UNTOUCHED = f"{{text}}; if row_count() <> 1 then {STOP}"
COUNT = "{text}; select row_count() as touched"
# a trip is sent when so many rows wait in it: servers refuse packets that are too large
ROWS_AT_ONCE = 1000
# an insert of more rows is written out: a server that has parsed it once will hardly see it again
PREPARED_ROWS = 2
# trips that a connection keeps prepared: the engine has some dozens, and inserts differ by their columns
PREPARED_AT_MOST = 200
# texts of statements that a process remembers, so that it need not write them again
TEXTS = 500
# values that a connection knows how to write, and those that are worth it
LITERALS, LONGEST_LITERAL = 2000, 200


class Waiting(NamedTuple):
	"""A statement that travels with others, and what to do with its answer."""

	statement: str
	values: Values
	then: Callable | None = None
	is_read: bool = False
	is_value: bool = False  # an expression; those that follow each other are asked for by one statement
	or_raise: Exception | None = None  # if it does not touch a row; nothing behind it is done then
	is_written_out: bool = False  # with its values in it: no two are the same
	if_so: Callable | None = None  # of a condition: called if it holds, before anything behind it is done
	into: str | None = None  # an expression that the server keeps for itself, in this variable
	is_insert: bool = False

	@property
	def has_rows(self) -> bool:
		"""Whether its answer is rows, and not how many it touched."""
		return self.is_read or (self.is_insert and self.then is not None)


class Promise(NamedTuple):
	"""A value that the server works out on the way; stands for it in rows that are inserted behind."""

	variable: str


class Given(NamedTuple):
	"""What the server keeps in a variable for the statement behind."""

	variable: str
	expression: str
	values: Values


# what is under way in this context; nothing, where each statement is sent at once
_travelling: ContextVar["Trip | None"] = ContextVar("dartwing_trip", default=None)


@dataclass
class Trip:
	"""What waits to be sent together."""

	waiting: list[Waiting] = field(default_factory=list)
	rows: dict[str, list[dict]] = field(default_factory=dict)
	promised: list[Waiting] = field(default_factory=list)

	def take_waiting(self) -> list[Waiting]:
		taken, self.waiting = self.waiting, []
		return taken

	def take_everything(self) -> list[Waiting]:
		rows, self.rows = self.rows, {}
		promised, self.promised = self.promised, []
		taken = [*self.take_waiting(), *(_insert(doctype, rows[doctype]) for doctype in rows)]
		if promised and taken and taken[-1].is_insert:
			return [*taken[:-1], _telling(taken[-1], promised)]
		return [*taken, *promised]


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


def value(expression: str, values: Values = (), given: Given | None = None):
	"""What an expression amounts to; on MariaDB it may name what is `given`, worked out right before it."""
	found = []
	before = [Waiting(given.expression, given.values, is_read=True, into=given.variable)] if given else []
	asked = Waiting(expression, values, found.append, is_read=True, is_value=True)
	_send([*_trip().take_waiting(), *before, asked])
	return found[0]


def value_later(expression: str, values: Values, then: Callable[[object], None]) -> None:
	"""`then` gets what an expression amounts to: at once, or when the statements of `in_one_go` travel."""
	_send_or_wait(Waiting(expression, values, then, is_read=True, is_value=True))


def if_ever(condition: str, values: Values, then: Callable[[], object]) -> None:
	"""Calls `then` if a condition holds that hardly ever does, before anything behind this is done.

	Who waits for an answer ends the trip. This does not, unless the answer is yes.
	"""
	_send_or_wait(Waiting(condition, values, is_read=True, if_so=then, into=HOLDS))


def promise(name: str, expression: str, values: Values, then: Callable[[object], None]) -> Promise | None:
	"""What an expression amounts to, to be inserted before anybody knows it; `then` gets it when it is known.

	Where statements do not travel together there is nothing to promise: it is a question like any other.
	"""
	trip = _travelling.get()
	if trip is None or frappe.db.db_type != "mariadb":
		value_later(expression, values, then)
		return None
	variable = f"@dartwing_{name}"
	trip.waiting.append(Waiting(expression, values, is_read=True, into=variable))
	trip.promised.append(Waiting(variable, (), then, is_read=True, is_value=True))
	return Promise(variable)


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
	trip = _travelling.get()
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
	trip = Trip()
	before = _travelling.set(trip)
	try:
		yield
		while waiting := trip.take_everything():  # answers may lead to more
			_send(waiting)
	finally:
		_travelling.reset(before)


@contextmanager
def apart() -> Iterator[None]:
	"""Inside, nothing waits, and nothing that waits is sent: for questions to another connection."""
	before = _travelling.set(None)
	try:
		yield
	finally:
		_travelling.reset(before)


def arrive() -> None:
	"""Sends everything that waits now, for those who need an answer to go on."""
	_send(_trip().take_everything())


def arrive_if_asked() -> None:
	"""Sends everything that waits if somebody has asked something: the answer may forbid what follows."""
	trip = _trip()
	if any(one.then for one in trip.waiting):
		_send(trip.take_everything())


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
	with apart():  # what others do afterwards is no part of it
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
	values = [*columns.values(), name, *guard.values()]
	return _update_text(doctype, tuple(columns), tuple(guard)), values


@lru_cache(maxsize=TEXTS)
def _update_text(doctype: str, columns: tuple[str, ...], guard: tuple[str, ...]) -> str:
	assignments = ", ".join(f"`{column}` = %s" for column in columns)
	conditions = "".join(f" and `{column}` = %s" for column in guard)
	return f"update `tab{doctype}` set {assignments} where name = %s{conditions}"


def _insert(doctype: str, rows: list[dict]) -> Waiting:
	"""Columns that no row has a value for are left to their default, which is none too."""
	first, *others = rows
	columns = tuple(
		[
			column
			for column, value in first.items()
			if value is not None or any(row[column] is not None for row in others)
		]
	)
	values_of = itemgetter(*columns)
	if frappe.db.db_type == "mariadb" and len(rows) > PREPARED_ROWS:
		literals = Literals(_cursor().connection)
		written = ", ".join(f"({', '.join(literals.of(values_of(row)))})" for row in rows)
		text = _insert_start(doctype, columns) + written
		return Waiting(text, (), is_written_out=True, is_insert=True)
	values = [value for row in rows for value in values_of(row)]
	promised = ()
	if Promise in map(type, values):
		promised = tuple((place, value) for place, value in enumerate(values) if type(value) is Promise)
		values = [value for value in values if type(value) is not Promise]
	return Waiting(_insert_text(doctype, columns, len(rows), promised), values, is_insert=True)


@lru_cache(maxsize=TEXTS)
def _insert_text(doctype: str, columns: tuple[str, ...], count: int, promised: tuple) -> str:
	width = len(columns)
	places = ["%s"] * (width * count)
	for place, promise in promised:
		places[place] = promise.variable
	rows = [f"({', '.join(places[start : start + width])})" for start in range(0, len(places), width)]
	return _insert_start(doctype, columns) + ", ".join(rows)


def _insert_start(doctype: str, columns: tuple[str, ...]) -> str:
	return f"insert into `tab{doctype}` ({', '.join(f'`{column}`' for column in columns)}) values "


class Literals(dict):
	"""Values as SQL: slow to write in this driver, and most values are the same again and again."""

	def __init__(self, connection):
		super().__init__({None: "null"})
		self.connection = connection

	def of(self, values: Iterable) -> Iterator[str]:
		return map(self.__getitem__, values)

	def __missing__(self, value: object) -> str:
		if type(value) is str:
			literal = f"'{value if _is_plain(value) else self.connection.escape_string(value)}'"
		elif type(value) is datetime:
			literal = f"'{value}'"
		elif type(value) is Promise:
			literal = value.variable
		elif type(value) is int:
			literal = str(value)
		else:  # not to be found by an equal whole number: 3.0 is no limit
			return self.connection.literal(value)
		# what a backslash means, a session may be told anew
		if len(literal) <= LONGEST_LITERAL and "\\" not in literal:
			self[value] = literal
		return literal


def _is_plain(text: str) -> bool:
	"""Letters, digits and hyphens, as in names, keys and tokens: nothing in it could mean anything else."""
	return text.isascii() and text.replace("-", "").isalnum()


def _trip() -> Trip:
	return _travelling.get() or Trip()


def _send_or_wait(one: Waiting) -> None:
	if trip := _travelling.get():
		trip.waiting.append(one)
	else:
		_send([one])


def _send(statements: list[Waiting]) -> None:
	db = frappe.local.db
	db.transaction_writes += sum(not one.is_read for one in statements)
	if any(one.is_value for one in statements):
		statements = list(_with_values_joined(statements))
	is_together = len(statements) > 1 and db.db_type == "mariadb"
	place = (_send_together if is_together else _send_in_turn)(statements)
	if place is not None:
		with in_one_go():  # what else waits may need what is behind
			statements[place].if_so()
		_send(statements[place + 1 :])


def _send_in_turn(statements: list[Waiting]) -> int | None:
	"""One by one, up to the first condition that holds; returns its place."""
	for place, one in enumerate(statements):
		if not one.if_so:
			_send_one(one)
		elif _holds(one):
			return place
	return None


def _holds(condition: Waiting) -> bool:
	found = []
	_send_one(Waiting(f"select {condition.statement} as holds", condition.values, found.extend, is_read=True))
	return bool(found[0].holds)


def _with_values_joined(statements: list[Waiting]) -> Iterator[Waiting]:
	"""Each statement costs the server and the driver more than what it asks for."""
	for is_value, group in groupby(statements, attrgetter("is_value")):
		if is_value:
			yield _joined(list(group))
		else:
			yield from group


def _joined(asked: list[Waiting]) -> Waiting:
	text = f"select {_columns_of(tuple([one.statement for one in asked]))}"
	return Waiting(text, [v for one in asked for v in one.values], _handing_out(asked), is_read=True)


def _telling(insert: Waiting, promised: list[Waiting]) -> Waiting:
	"""An insert that also tells what was promised: that takes no statement of its own."""
	columns = _columns_of(tuple([one.statement for one in promised]))
	return insert._replace(statement=f"{insert.statement} returning {columns}", then=_handing_out(promised))


def _handing_out(asked: list[Waiting]) -> Callable[[list], None]:
	def hand_out(rows: list) -> None:
		for one, found in zip(asked, rows[0].values(), strict=True):
			one.then(found)

	return hand_out


@lru_cache(maxsize=TEXTS)
def _columns_of(expressions: tuple[str, ...]) -> str:
	return ", ".join([f"{expression} as value{number}" for number, expression in enumerate(expressions)])


def _join_what_is_kept(statements: list[Waiting]) -> None:
	"""What the server keeps behind another is kept by the same statement; a condition begins a new one."""
	for place in range(len(statements) - 1, 0, -1):
		before, one = statements[place - 1], statements[place]
		if one.into and before.into and not one.if_so:
			columns, variables = f"{before.statement}, {one.statement}", f"{before.into}, {one.into}"
			values = [*before.values, *one.values]
			statements[place - 1 : place + 1] = [
				before._replace(statement=columns, values=values, into=variables)
			]


def _send_one(one: Waiting) -> None:
	cursor = _cursor()
	if frappe.db.db_type == "mariadb":
		result = answers.to_one(cursor, _known_or_written_out(cursor, one.statement, one.values))
	else:
		result = answers.to_one(cursor, _dialect(one.statement, frappe.db.db_type), one.values or None)
	if one.or_raise and result.touched != 1:
		raise one.or_raise
	if one.then:
		one.then(_rows(result) if one.has_rows else result.touched)


def _send_together(statements: list[Waiting]) -> int | None:
	"""As one compound statement, which answers with one result for each statement that is to be answered.

	The server stops at the first condition that holds; returns its place.
	"""
	cursor, found, place = _cursor(), [], None
	_join_what_is_kept(statements)
	try:
		asked = iter([one for one in statements if one.then])
		for result in answers.to_several(cursor, _compound(cursor, statements)):
			if result.columns:  # the last one only says that this was all
				one = next(asked)
				found.append((one.then, _rows(result) if one.has_rows else result.rows[0][0]))
	except frappe.db.OperationalError as error:
		if error.args[0] != SIGNALED or not error.args[1].startswith(STOPPED_AT):
			raise
		place = int(error.args[1].removeprefix(STOPPED_AT))
		if statements[place].or_raise:
			raise statements[place].or_raise from error
	for then, answer in found:
		then(answer)
	return place


def _compound(cursor, statements: list[Waiting]) -> str:
	checks = tuple(_check_behind(one) for one in statements)
	if any(one.is_written_out for one in statements):
		literals = Literals(cursor.connection)
		return _in_order([_written_out(one, literals) for one in statements], checks)
	values = [value for one in statements for value in one.values]
	text = _compound_text(tuple(one.statement for one in statements), checks)
	return _known_or_written_out(cursor, text, values)


def _known_or_written_out(cursor, statement: str, values: Values) -> str:
	"""A statement as it is sent. One that the server has seen before brings only new values."""
	if not values:
		return statement
	session = _session(cursor.connection)
	literals = session.literals()
	if name := _prepared(cursor, session, statement, len(values)):
		return f"execute {name} using {', '.join(literals.of(values))}"
	return statement % tuple(literals.of(values))


@lru_cache(maxsize=TEXTS)
def _compound_text(texts: tuple[str, ...], checks: tuple[str, ...]) -> str:
	return _in_order(texts, checks)


def _in_order(texts: Iterable[str], checks: tuple[str, ...]) -> str:
	parts = [
		check.format(text=text, place=place)
		for place, (text, check) in enumerate(zip(texts, checks, strict=True))
	]
	return f"begin not atomic {'; '.join(parts)}; end"


def _check_behind(one: Waiting) -> str:
	"""A statement and what is asked along with it. The server itself must stop: a commit may come later."""
	if one.into:
		kept = f"select {{text}} into {one.into}"
		return f"{kept}; {STOP_IF}" if one.if_so else kept
	if one.or_raise:
		return STOP_IF_UNTOUCHED
	return COUNT if one.then and not one.has_rows else "{text}"


def _written_out(one: Waiting, literals: Literals) -> str:
	return one.statement % tuple(literals.of(one.values)) if one.values else one.statement


def _prepared(cursor, session: "Session", statement: str, count: int) -> str | None:
	"""The name by which this session knows a statement with so many values; None when it does not.

	Learning costs a trip: many connections live for one request, and send most statements once.
	"""
	if session.is_worth_learning(statement):
		name = f"dartwing_{len(session.names)}"
		cursor.execute(f"prepare {name} from %s", (statement % (("?",) * count),))
		session.names[statement] = name
	return session.names.get(statement)


class Session:
	"""What is known of one session of the server: the statements that it has prepared, by name, those that it
	has seen once, and how values are written for it."""

	def __init__(self, connection, number: int):
		self.connection, self.number = connection, number
		self.names: dict[str, str] = {}
		self.seen: set[str] = set()
		self.written = Literals(connection)

	def is_worth_learning(self, statement: str) -> bool:
		if statement in self.names or len(self.names) == PREPARED_AT_MOST:
			return False
		if statement in self.seen:
			return True
		if len(self.seen) == PREPARED_AT_MOST:
			self.seen.clear()
		self.seen.add(statement)
		return False

	def literals(self) -> Literals:
		if len(self.written) > LITERALS:
			self.written = Literals(self.connection)
		return self.written


def _session(connection) -> Session:
	number = connection.thread_id()  # another one after a reconnect
	session = _sessions.get(connection)
	if not session or session.number != number:
		session = _sessions[connection] = Session(proxy(connection), number)
	return session


# by connection
_sessions: WeakKeyDictionary = WeakKeyDictionary()


def _cursor():
	db = frappe.local.db
	if not db._conn:
		db.connect()
	return db._cursor


def _rows(result: answers.Result) -> list[frappe._dict]:
	return [frappe._dict(zip(result.columns, row, strict=True)) for row in result.rows]


@lru_cache(maxsize=500)
def _dialect(statement: str, database: str) -> str:
	if database == "mariadb":
		return statement
	statement = HINT.sub("", statement)
	return statement.replace("`", '"').replace("utc_timestamp(6)", "(clock_timestamp() at time zone 'utc')")
