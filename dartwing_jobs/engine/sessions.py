"""Sessions of the database, and what each of them knows: MariaDB prepares what it is sent again and again.

Inside a trip it gets the name of a statement and its values. PostgreSQL's driver is compiled and quick: it
gets each statement with its values, in its own dialect.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple
from weakref import WeakKeyDictionary, proxy

# what only MariaDB understands, and needs
HINT = re.compile(r" force index \(\w+\)")
# trips that a connection keeps prepared: the engine has some dozens, and inserts differ by their columns
PREPARED_AT_MOST = 200
# values that a connection knows how to write, and those that are worth it
LITERALS, LONGEST_LITERAL = 2000, 200


class Promise(NamedTuple):
	"""A value that the server works out on the way; stands for it in rows that are inserted behind."""

	variable: str


class Literals(dict):
	"""Values as SQL: slow to write in this driver, and most values are the same again and again."""

	def __init__(self, connection):
		super().__init__({None: "null"})
		self.connection = connection

	def of(self, values: Iterable) -> Iterator[str]:
		return map(self.__getitem__, values)

	def __missing__(self, value: object) -> str:
		if type(value) is str:
			literal = f"'{value if _is_plain(value) else _as_text(self.connection.escape_string(value))}'"
		elif type(value) is datetime:
			literal = f"'{value}'"
		elif type(value) is Promise:
			literal = value.variable
		elif type(value) is int:
			literal = str(value)
		else:  # not to be found by an equal whole number: 3.0 is no limit
			return _as_text(self.connection.literal(value))
		# what a backslash means, a session may be told anew
		if len(literal) <= LONGEST_LITERAL and "\\" not in literal:
			self[value] = literal
		return literal


def _is_plain(text: str) -> bool:
	"""Letters, digits and hyphens, as in names, keys and tokens: nothing in it could mean anything else."""
	return text.isascii() and text.replace("-", "").isalnum()


def _as_text(written: str | bytes) -> str:
	"""SQL as drivers write it: PyMySQL as text, mysqlclient as the bytes that it sends."""
	return written if type(written) is str else written.decode()


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


# by connection
_sessions: WeakKeyDictionary = WeakKeyDictionary()


def as_sent(cursor, statement: str, values: list) -> str:
	"""A statement as MariaDB gets it. One that it has seen before brings only new values."""
	if not values:
		return statement
	session = _session(cursor.connection)
	written = session.literals().of(values)
	if name := _prepared(cursor, session, statement, len(values)):
		return f"execute {name} using {', '.join(written)}"
	return statement % tuple(written)


def literals(cursor) -> Literals:
	"""For what is written once: not to be kept in memory."""
	return Literals(cursor.connection)


@lru_cache(maxsize=500)
def dialect(statement: str) -> str:
	"""The same statement as PostgreSQL understands it."""
	statement = HINT.sub("", statement)
	return statement.replace("`", '"').replace("utc_timestamp(6)", "(clock_timestamp() at time zone 'utc')")


def _prepared(cursor, session: Session, statement: str, count: int) -> str | None:
	"""The name by which this session knows a statement with so many values; None when it does not.

	Learning costs a trip: many connections live for one request, and send most statements once.
	"""
	if session.is_worth_learning(statement):
		name = f"dartwing_{len(session.names)}"
		cursor.execute(f"prepare {name} from %s", (statement % (("?",) * count),))
		session.names[statement] = name
	return session.names.get(statement)


def _session(connection) -> Session:
	number = connection.thread_id()  # another one after a reconnect
	session = _sessions.get(connection)
	if not session or session.number != number:
		session = _sessions[connection] = Session(proxy(connection), number)
	return session
