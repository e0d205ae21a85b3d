"""What a database answers to the engine's own statements, which are many and short.

PyMySQL describes each column of each answer anew, in objects of Python: that was half of what a worker's
statements cost it. Here a description is looked up by its bytes, and read by the driver when they are new.
Other drivers are compiled and quick: they read their answers themselves.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

COM_QUERY = 3
# the first byte of a packet, and of a text in it
ERROR, END, OKAY = 0xFF, 0xFE, 0x00
NULL = 0xFB
LENGTHS = {0xFC: 2, 0xFD: 3, 0xFE: 8}  # how many bytes tell the length of what follows
LARGEST_PACKET = 0xFFFFFF
MORE_FOLLOWS = 0x0008
LOST = 2013
HEADER, STATUS = Struct("<I"), Struct("<H")
BINARY = 63  # a character set
COLUMNS_KNOWN = 1000


class Result(NamedTuple):
	columns: tuple[str, ...]
	rows: list[tuple]
	touched: int


def to_one(cursor, statement: str, values: tuple | list | None = None) -> Result:
	"""The answer to a single statement; `values` for drivers that put them in by themselves."""
	if values is None and _is_pymysql(cursor):
		(result,) = PyMySQL(cursor.connection).ask(statement)
		return result
	cursor.execute(statement, values)
	return _of_driver(cursor)


def to_several(cursor, statement: str) -> Iterator[Result]:
	"""The answers to a compound statement, one after the other; raises where the server stopped."""
	if _is_pymysql(cursor):
		yield from PyMySQL(cursor.connection).ask(statement)
		return
	cursor.execute(statement)
	yield _of_driver(cursor)
	while cursor.nextset():
		yield _of_driver(cursor)


def _is_pymysql(cursor) -> bool:
	return hasattr(cursor.connection, "_rfile")


def _of_driver(cursor) -> Result:
	columns = tuple(column[0] for column in cursor.description or ())
	return Result(columns, list(cursor.fetchall()) if columns else [], cursor.rowcount)


class PyMySQL:
	"""Reads the packets of one connection, and leaves it as the driver would."""

	def __init__(self, connection):
		self.connection, self.file = connection, connection._rfile
		self.number = 0

	def ask(self, text: str) -> Iterator[Result]:
		self.connection._execute_command(COM_QUERY, text)
		self.connection._sock.settimeout(self.connection._read_timeout)
		while True:
			result, status = self._result()
			self.connection.server_status = status
			yield result
			if not status & MORE_FOLLOWS:
				return

	def _result(self) -> tuple[Result, int]:
		first = self._packet()
		if first[0] == OKAY:
			touched, at = _number(first, 1)
			_insert_id, at = _number(first, at)
			return Result((), [], touched), STATUS.unpack_from(first, at)[0]
		count, _at = _number(first, 0)
		columns = [self._column(self._packet()) for _ in range(count)]
		self._packet()  # the end of them
		rows = []
		while not _is_end(packet := self._packet()):
			rows.append(_row(packet, columns))
		names = tuple(name for name, _encoding, _converter in columns)
		return Result(names, rows, len(rows)), STATUS.unpack_from(packet, 3)[0]

	def _column(self, description: bytes) -> tuple:
		"""Its name, and how its values are read."""
		known = self.connection.__dict__.setdefault("dartwing_columns", {})
		if description not in known:
			if len(known) == COLUMNS_KNOWN:
				known.clear()
			known[description] = _described(self.connection, description)
		return known[description]

	def _packet(self) -> bytes:
		whole = b""
		while True:
			head = HEADER.unpack(self._read(4))[0]
			length, self.number = head & LARGEST_PACKET, (self.number + 1) % 256
			if head >> 24 != self.number:
				self._lose("an answer out of turn")  # as a server that shuts down says so
			part = self._read(length)
			whole = whole + part if whole else part
			if length < LARGEST_PACKET:
				break
		if whole[0] == ERROR:
			_raise(whole)
		return whole

	def _read(self, count: int) -> bytes:
		try:
			data = self.file.read(count)
		except OSError as error:
			self._lose(str(error))
		except BaseException:  # an alarm: half an answer is left unread
			self.connection._force_close()
			raise
		if len(data) < count:
			self._lose("it ended in the middle")
		return data

	def _lose(self, why: str) -> None:
		from pymysql.err import OperationalError

		self.connection._force_close()
		raise OperationalError(LOST, f"Lost connection to MySQL server during query ({why})")


def _raise(packet: bytes) -> None:
	from pymysql.err import raise_mysql_exception

	raise_mysql_exception(packet)


def _described(connection, description: bytes) -> tuple:
	from pymysql.connections import TEXT_TYPES
	from pymysql.constants import FIELD_TYPE
	from pymysql.converters import through
	from pymysql.protocol import FieldDescriptorPacket

	field = FieldDescriptorPacket(description, connection.encoding)
	encoding = "ascii"
	if field.type_code == FIELD_TYPE.JSON:
		encoding = connection.encoding
	elif field.type_code in TEXT_TYPES:
		encoding = None if field.charsetnr == BINARY else connection.encoding
	converter = connection.decoders.get(field.type_code)
	return field.name, encoding, None if converter is through else converter


def _is_end(packet: bytes) -> bool:
	return packet[0] == END and len(packet) < 9


def _row(packet: bytes, columns: list[tuple]) -> tuple:
	row, at = [], 0
	for _name, encoding, converter in columns:
		if packet[at] == NULL:
			row.append(None)
			at += 1
			continue
		length, start = _number(packet, at)
		at = start + length
		value = packet[start:at]
		if encoding:
			value = value.decode(encoding)
		row.append(converter(value) if converter else value)
	return tuple(row)


def _number(packet: bytes, at: int) -> tuple[int, int]:
	"""A number that says how long it is, and where it ends."""
	first = packet[at]
	if first < NULL:
		return first, at + 1
	end = at + 1 + LENGTHS[first]
	return int.from_bytes(packet[at + 1 : end], "little"), end
