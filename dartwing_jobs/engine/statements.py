"""The engine's own SQL: plain statements through the driver, and several of them in one round trip.

Statements are written as for MariaDB: backticks, and `utc_timestamp(6)` for the database's clock.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

import frappe

from dartwing_jobs.engine import sending, sessions
from dartwing_jobs.engine.sending import Values, Waiting
from dartwing_jobs.engine.sessions import Promise

# a trip is sent when so many rows wait in it: servers refuse packets that are too large
ROWS_AT_ONCE = 1000
# an insert of more rows is written out: a server that has parsed it once will hardly see it again
PREPARED_ROWS = 2
# texts of statements that a process remembers, so that it need not write them again
TEXTS = 500


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
		last = taken[-1] if taken else None
		if promised and last and last.kind == sending.INSERT and not last.is_written_out:
			return [*taken[:-1], _telling(last, promised)]
		return [*taken, *promised]


def execute(statement: str, values: Values = ()) -> int:
	"""Runs a statement now; returns how many rows it touched.

	The driver's cursor takes half the time of `frappe.db.sql`, which also parses, rewrites and traces.
	"""
	touched = []
	_send([*_trip().take_waiting(), Waiting(sending.COUNT, statement, values, touched.append)])
	return touched[0]


def execute_later(statement: str, values: Values = ()) -> None:
	"""Runs a statement: at once, or when the statements of `in_one_go` travel."""
	_send_or_wait(Waiting(sending.WRITE, statement, values))


def fetch(statement: str, values: Values = ()) -> list[frappe._dict]:
	"""The rows that a statement finds."""
	found = []
	_send([*_trip().take_waiting(), Waiting(sending.ROWS, statement, values, found.extend)])
	return found


def fetch_later(statement: str, values: Values, then: Callable[[list], None]) -> None:
	"""`then` gets the rows: at once, or when the statements of `in_one_go` travel."""
	_send_or_wait(Waiting(sending.ROWS, statement, values, then))


def value(expression: str, values: Values = (), given: Given | None = None):
	"""What an expression amounts to; on MariaDB it may name what is `given`, worked out right before it."""
	found = []
	before = [_kept(given.variable, given.expression, given.values)] if given else []
	asked = Waiting(sending.VALUE, expression, values, found.append)
	_send([*_trip().take_waiting(), *before, asked])
	return found[0]


def value_later(expression: str, values: Values, then: Callable[[object], None]) -> None:
	"""`then` gets what an expression amounts to: at once, or when the statements of `in_one_go` travel."""
	_send_or_wait(Waiting(sending.VALUE, expression, values, then))


def if_ever(condition: str, values: Values, then: Callable[[], object]) -> None:
	"""Calls `then` if a condition holds that hardly ever does, before anything behind this is done.

	Who waits for an answer ends the trip. This does not, unless the answer is yes.
	"""
	_send_or_wait(Waiting(sending.CONDITION, condition, values, then, sending.HOLDS))


def promise(name: str, expression: str, values: Values, then: Callable[[object], None]) -> Promise | None:
	"""What an expression amounts to, to be inserted before anybody knows it; `then` gets it when it is known.

	Where statements do not travel together there is nothing to promise: it is a question like any other.
	"""
	trip = _travelling.get()
	if trip is None or frappe.local.db.db_type != "mariadb":
		value_later(expression, values, then)
		return None
	variable = f"@dartwing_{name}"
	trip.waiting.append(_kept(variable, expression, values))
	trip.promised.append(Waiting(sending.VALUE, variable, (), then))
	return Promise(variable)


def insert(doctype: str, rows: list[dict]) -> None:
	"""Writes rows that all have the same columns, in one statement."""
	_send_or_wait(_insert(doctype, rows))


def insert_missing(doctype: str, rows: list[dict]) -> int:
	"""Writes now those rows that no unique index refuses; returns how many. All values must fit."""
	one, touched = _insert(doctype, rows), []
	if frappe.local.db.db_type == "mariadb":
		text = one.statement.replace("insert into", "insert ignore into", 1)
	else:
		text = f"{one.statement} on conflict do nothing"
	missing = one._replace(kind=sending.COUNT, statement=text, then=touched.append)
	_send([*_trip().take_waiting(), missing])
	return touched[0]


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


def update_each(doctype: str, changes: dict[str, dict]) -> None:
	"""Sets columns of many rows by their names, the same columns of all, in one statement."""
	if frappe.local.db.db_type == "mariadb":
		execute(*_update_each_by_place(doctype, changes))
		return
	columns = list(next(iter(changes.values())))
	assignments = ", ".join(f"`{column}` = changed.`{column}`" for column in columns)
	rows = json.dumps([{"name": name, **changed} for name, changed in changes.items()], default=str)
	execute(
		f"""update `tab{doctype}` as target set {assignments}
		from json_populate_recordset(null::`tab{doctype}`, %s) as changed where target.name = changed.name""",
		(rows,),
	)


def _update_each_by_place(doctype: str, changes: dict[str, dict]) -> tuple[str, list]:
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


def update_later(doctype: str, name: str, columns: dict) -> None:
	"""Sets columns of one row: at once, or when the statements of `in_one_go` travel."""
	_send_or_wait(Waiting(sending.WRITE, *_update(doctype, name, columns, {})))


def update_or_raise(doctype: str, name: str, columns: dict, guard: dict, error: Exception) -> None:
	"""As `update_later`, but raises if the row no longer has what `guard` says."""
	_send_or_wait(Waiting(sending.GUARD, *_update(doctype, name, columns, guard), error=error))


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
	if any(one.kind in sending.ASKING for one in trip.waiting):
		_send(trip.take_everything())


def commit() -> None:
	"""The first half of `frappe.db.commit`, with what still waits in the same round trip.

	What is to be done afterwards is for `database.do_what_waits`: an error here says that nothing was kept,
	unless the connection was lost on the way.
	"""
	db = frappe.local.db
	db.before_rollback.reset()
	db.after_rollback.reset()
	db.before_commit.run()
	trip = _trip()
	waiting = trip.take_everything()
	while any(
		[one.kind in sending.ASKING for one in waiting]
	):  # what follows from an answer belongs to this transaction
		_send(waiting)
		waiting = trip.take_everything()
	if db.db_type == "mariadb":
		_send([*waiting, Waiting(sending.WRITE, "commit")])
	else:
		_send(waiting)
		db._conn.commit()
	db.transaction_writes = 0


def packed(columns: tuple[str, ...], **more: str) -> str:
	"""SQL for many columns as one JSON value: the driver describes each column of a result in slow Python.

	`more` are other expressions by their names. For texts and numbers; a moment must be `written`.
	"""
	named = {column: f"`{column}`" for column in columns} | more
	function = "json_object" if frappe.db.db_type == "mariadb" else "json_build_object"
	pairs = ", ".join(f"'{name}', {value}" for name, value in named.items())
	return f"{function}({pairs})"


def written(moment: str) -> str:
	"""SQL for a moment of a `packed` row: with six digits, for Python 3.10 reads no fewer."""
	if frappe.db.db_type == "mariadb":
		return moment
	return f"""to_char({moment}, 'YYYY-MM-DD"T"HH24:MI:SS.US')"""


def unpack(value) -> frappe._dict:
	return frappe._dict(json.loads(value) if isinstance(value, str) else value)


def as_json(value) -> str | None:
	"""A JSON column's value as text, however the database handed it over."""
	return value if value is None or isinstance(value, str) else json.dumps(value, default=str)


def as_text(value):
	"""A value of any column, so that it can be written again: JSON as text, everything else as it is."""
	return json.dumps(value, default=str) if isinstance(value, dict | list) else value


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
	columns = _columns_with_values(rows)
	values_of = itemgetter(*columns)
	if frappe.local.db.db_type == "mariadb" and len(rows) > PREPARED_ROWS:
		literals = sessions.literals(sending.cursor())
		written = ", ".join(f"({', '.join(literals.of(values_of(row)))})" for row in rows)
		return Waiting(sending.INSERT, _insert_start(doctype, columns) + written, is_written_out=True)
	values = [value for row in rows for value in values_of(row)]
	promised = ()
	if Promise in map(type, values):
		promised = tuple((place, value) for place, value in enumerate(values) if type(value) is Promise)
		values = [value for value in values if type(value) is not Promise]
	return Waiting(sending.INSERT, _insert_text(doctype, columns, len(rows), promised), values)


def _columns_with_values(rows: list[dict]) -> tuple[str, ...]:
	first, *others = rows
	if not others:
		return tuple([column for column, value in first.items() if value is not None])
	return tuple(
		[
			column
			for column, value in first.items()
			if value is not None or any(row[column] is not None for row in others)
		]
	)


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


def _telling(insert: Waiting, promised: list[Waiting]) -> Waiting:
	"""An insert that also tells what was promised: that takes no statement of its own."""

	def hand_out(rows: list) -> None:
		for one, found in zip(promised, rows[0].values(), strict=True):
			one.then(found)

	text = _telling_text(insert.statement, tuple([one.statement for one in promised]))
	return Waiting(sending.TELL, text, insert.values, hand_out)


@lru_cache(maxsize=TEXTS)
def _telling_text(statement: str, variables: tuple[str, ...]) -> str:
	return f"{statement} returning {sending.named(variables)}"


def _kept(variable: str, expression: str, values: Values) -> Waiting:
	return Waiting(sending.KEEP, expression, values, None, variable)


def _trip() -> Trip:
	return _travelling.get() or Trip()


def _send_or_wait(one: Waiting) -> None:
	if trip := _travelling.get():
		trip.waiting.append(one)
	else:
		_send([one])


def _send(waiting: list[Waiting]) -> None:
	while stop := sending.send(waiting):
		with in_one_go():  # what else waits may need what is behind
			stop.then()
		waiting = stop.rest
