"""How statements that wait are sent to the database: on MariaDB all at once, elsewhere one after the other.

MariaDB gets them as one compound statement, which stops by itself where it must, and has an answer for each
part that asks. How a sequence of statements is sent is worked out once: the engine has some dozens of them.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import frappe

from dartwing_jobs.engine import answers, board, sessions
from dartwing_jobs.engine.handling import session_state

Values = tuple | list
# what is wanted of a statement: that it is done, how many rows it touched, that it touched just one
WRITE, COUNT, GUARD = "write", "count", "guard"
# the rows that it finds; of an insert: that it is done, the rows that it tells
ROWS, INSERT, TELL = "rows", "insert", "tell"
# of an expression: its value; that the server keeps it for statements behind; that the trip ends if it holds
VALUE, KEEP, CONDITION = "value", "keep", "condition"
WRITING = frozenset({WRITE, COUNT, GUARD, INSERT, TELL})
ASKING = frozenset({COUNT, ROWS, TELL, VALUE})

# how a statement stops the trip that it is on: MariaDB's number for signals, and their text
SIGNALED, STOPPED_AT = 1644, "dartwing stopped at "
# what is read by anything but a select, MariaDB locks
HOLDS = "@dartwing_holds"
# sequences that a process remembers
PLANS = 500


class Waiting(NamedTuple):
	"""A statement that travels with others, and what to do with its answer."""

	kind: str
	statement: str
	values: Values = ()
	then: Callable | None = None  # gets the answer; of a condition: called if it holds
	variable: str | None = None  # where the server keeps it
	error: Exception | None = None  # raised if it does not touch one row; nothing behind it is done then
	is_written_out: bool = False  # with its values in it: no two are the same


class Part(NamedTuple):
	"""What the server gets as one statement: each costs it, and the driver, more than what it asks for."""

	kind: str
	alone: str
	on_a_trip: str  # with what is asked along with it
	start: int
	end: int


class Plan(NamedTuple):
	text: str  # of all at once; empty for a single statement
	parts: tuple[Part, ...]
	asking: tuple[Part, ...]


class Stop(NamedTuple):
	"""A condition holds: what is to be done about it, and what has not been sent."""

	then: Callable
	rest: list[Waiting]


def send(statements: list[Waiting]) -> Stop | None:
	board.moved()
	db = frappe.local.db
	db.transaction_writes += sum([one.kind in WRITING for one in statements])
	if len(statements) > 1 and db.db_type == "mariadb":
		return _send_together(statements)
	return _send_in_turn(statements)


def plan_of(statements: list[Waiting]) -> Plan:
	shapes = tuple([(one.kind, one.statement, one.variable) for one in statements])
	is_unique = any(map(attrgetter("is_written_out"), statements))
	return (_plan.__wrapped__ if is_unique else _plan)(shapes)


def values_of(statements: list[Waiting]) -> list:
	return list(chain.from_iterable([one.values for one in statements]))


def cursor():
	db = frappe.local.db
	if not db._conn:
		db.connect()
	return session_state.own_cursor(db)


def _send_in_turn(statements: list[Waiting]) -> Stop | None:
	"""One part after the other, up to the first condition that holds."""
	for part in plan_of(statements).parts:
		members = statements[part.start : part.end]
		result = _ask(part.alone, values_of(members))
		if part.kind == CONDITION:
			if result.rows[0][0]:
				return Stop(members[0].then, statements[part.end :])
		elif part.kind == COUNT:
			members[0].then(result.touched)
		elif part.kind == GUARD and result.touched != 1:
			raise members[0].error
		else:
			_hand_out(members, result)
	return None


def _ask(statement: str, values: list) -> answers.Result:
	if frappe.local.db.db_type == "mariadb":
		return answers.to_one(cursor(), sessions.as_sent(cursor(), statement, values))
	return answers.to_one(cursor(), sessions.dialect(statement), values or None)


def _send_together(statements: list[Waiting]) -> Stop | None:
	"""As one compound statement; the server itself stops in it, because a commit may come later."""
	if any(map(attrgetter("is_written_out"), statements)):
		literals = sessions.literals(cursor())
		statements = [_written_out(one, literals) for one in statements]
	plan, found, stop = plan_of(statements), [], None
	try:
		asking = iter(plan.asking)
		text = sessions.as_sent(cursor(), plan.text, values_of(statements))
		for result in answers.to_several(cursor(), text):
			if result.columns:  # the last one only says that this was all
				found.append((next(asking), result))
	except frappe.local.db.OperationalError as error:
		part = _stopped_at(plan, error)
		first = statements[part.start]
		if part.kind == GUARD:
			raise first.error from error
		stop = Stop(first.then, statements[part.end :])
	for part, result in found:
		_hand_out(statements[part.start : part.end], result)
	return stop


def _stopped_at(plan: Plan, error: Exception) -> Part:
	number, text = error.args[0], str(error.args[-1])
	if number != SIGNALED or not text.startswith(STOPPED_AT):
		raise error
	return plan.parts[int(text.removeprefix(STOPPED_AT))]


def _hand_out(members: list[Waiting], result: answers.Result) -> None:
	first = members[0]
	if first.kind == VALUE:
		for one, value in zip(members, result.rows[0], strict=True):
			one.then(value)
	elif first.kind == COUNT:
		first.then(result.rows[0][0])
	elif first.kind in ASKING:
		first.then([frappe._dict(zip(result.columns, row, strict=True)) for row in result.rows])


def _written_out(one: Waiting, literals: sessions.Literals) -> Waiting:
	if not one.values:
		return one
	text = one.statement % tuple(literals.of(one.values))
	return one._replace(statement=text, values=(), is_written_out=True)


@lru_cache(maxsize=PLANS)
def _plan(shapes: tuple[tuple[str, str, str | None], ...]) -> Plan:
	parts = tuple(
		_part(shapes[start:end], start, place) for place, (start, end) in enumerate(_parts_of(shapes))
	)
	together = "; ".join(part.on_a_trip for part in parts) if len(shapes) > 1 else ""
	text = together and f"begin not atomic {together}; end"
	return Plan(text, parts, tuple(part for part in parts if part.kind in ASKING))


def _parts_of(shapes: tuple) -> Iterator[tuple[int, int]]:
	start = 0
	for end in range(1, len(shapes) + 1):
		if end == len(shapes) or not _belong_together(shapes[end - 1][0], shapes[end][0]):
			yield start, end
			start = end


def _belong_together(kind: str, behind: str) -> bool:
	"""Values are asked for by one statement; what the server keeps, and a condition before it, by another."""
	return kind == behind == VALUE or (behind == KEEP and kind in (KEEP, CONDITION))


def _part(shapes: tuple, start: int, place: int) -> Part:
	(kind, statement, _variable), *_others = shapes
	stop = f"signal sqlstate '45000' set message_text = '{STOPPED_AT}{place}'; end if"
	alone = on_a_trip = statement
	if kind == VALUE:
		alone = on_a_trip = f"select {named([text for _kind, text, _variable in shapes])}"
	elif kind == KEEP:
		alone = on_a_trip = _kept(shapes)
	elif kind == CONDITION:
		alone, on_a_trip = f"select {statement} as holds", f"{_kept(shapes)}; if {HOLDS} then {stop}"
	elif kind == COUNT:
		on_a_trip = f"{statement}; select row_count() as touched"
	elif kind == GUARD:
		on_a_trip = f"{statement}; if row_count() <> 1 then {stop}"
	return Part(kind, alone, on_a_trip, start, start + len(shapes))


def _kept(shapes: tuple) -> str:
	expressions = ", ".join(text for _kind, text, _variable in shapes)
	return f"select {expressions} into {', '.join(variable for _kind, _text, variable in shapes)}"


def named(expressions: Iterable[str]) -> str:
	return ", ".join([f"{expression} as value{number}" for number, expression in enumerate(expressions)])
