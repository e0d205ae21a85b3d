"""Which tables a piece of SQL writes. Pure text work for both databases, rather too careful than too bold.

What is not known to read, to control the transaction or to write the tables it names, is not understood.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

INSERT, UPDATE, DELETE = "insert", "update", "delete"
WRITES = {INSERT: INSERT, "replace": INSERT, UPDATE: UPDATE, DELETE: DELETE}
READS = frozenset({"select", "show", "describe", "desc", "explain", "values", "with"})
TRANSACTION = re.compile(
	r"""(?: commit | end | begin ) (?: \s (?: work | transaction ) )? | start \s transaction (?: \s .* )?
	| rollback (?: \s .* )? | savepoint \s .* | release \s .*
	| set \s (?: session | local | transaction | names ) \s .*""",
	re.VERBOSE,
)
# between a verb and its table
MODIFIERS = frozenset({"low_priority", "delayed", "high_priority", "quick", "ignore", "into", "from", "only"})
END_OF_TABLES = frozenset({"set", "where", "order", "limit", "returning"})
BEFORE_TABLE = frozenset({",", "join", "straight_join", "using"})
# for update, on duplicate key update, on conflict do update, table.update: no statement begins there
BEFORE_NO_VERB = frozenset({"for", "key", "do", "."})

COMMON = r"""
	(?P<space> \s+ | /\*(?! ! | M! ) (?: (?! /\* ) . )*? \*/ | {comment} )
	| (?P<literal> {literal} | %\(\w+\)s | %s )
	| (?P<name> {name} )
	| (?P<word> [^\W\d]\w* )
	| (?P<other> \d[\w.]* | (?! /\* ) [^\s\w`"'$\\] | \$(?=\d) )"""
# a double quote begins a text on MariaDB; on PostgreSQL a name, and Frappe turns backticks into double quotes
TOKENS = {
	"mariadb": COMMON.format(
		comment=r"--(?= \s | \Z )[^\n]* | \#[^\n]*",
		literal=r"""'(?: [^'\\] | \\. | '' )*' | "(?: [^"\\] | \\. | "" )*" """,
		name=r"`[^`]+`",
	),
	"postgres": COMMON.format(
		comment=r"--[^\n]*",
		literal=r"(?<! \b[eE] ) '(?: [^'] | '' )*' | (?<= \b[eE] ) '(?: [^'\\] | \\. | '' )*'",
		name=r'`[^`]+` | "[^"]+"',
	),
}
FLAGS = re.VERBOSE | re.DOTALL | re.IGNORECASE
PATTERNS = {database: re.compile(tokens, FLAGS) for database, tokens in TOKENS.items()}


class NotUnderstood(Exception):
	"""This SQL may write anything."""


class Write(NamedTuple):
	how: str
	table: str


class Token(NamedTuple):
	kind: str
	written: str
	text: str  # a word in small letters; empty for names and literals, which are nothing else

	def is_name(self) -> bool:
		return self.kind in ("name", "word") and self.text not in MODIFIERS


NOTHING = Token("other", "", "")


def writes_of(query: str, database: str) -> tuple[Write, ...]:
	"""What a query writes, statement by statement; raises NotUnderstood when that cannot be told."""
	statements = _statements(list(_tokens(query, database)))
	return tuple(write for statement in statements for write in _writes(statement))


def _tokens(query: str, database: str) -> Iterator[Token]:
	position, pattern = 0, PATTERNS[database]
	while position < len(query):
		match = pattern.match(query, position)
		if match is None:
			raise NotUnderstood(query[position : position + 20])
		position, kind = match.end(), match.lastgroup
		if kind in ("word", "other"):
			yield Token(kind, match[0], match[0].lower())
		elif kind != "space":
			yield Token(kind, match[0][1:-1], "")


def _statements(tokens: list[Token]) -> Iterator[list[Token]]:
	statement = []
	for token in [*tokens, Token("other", ";", ";")]:
		if token.text != ";":
			statement.append(token)
		elif statement:
			yield statement
			statement = []


def _writes(statement: list[Token]) -> Iterator[Write]:
	if TRANSACTION.fullmatch(" ".join(token.text for token in statement)):
		return
	first = next((token.text for token in statement if token.text != "("), "")
	if first not in READS and first not in WRITES:
		raise NotUnderstood(first)
	verbs = [place for place in range(len(statement)) if _is_verb(statement, place)]
	inserts = [place for place in verbs if WRITES[statement[place].text] == INSERT]
	if sum(token.text == "into" for token in statement) > len(inserts):
		raise NotUnderstood("into")  # a file, a variable, or a table that is made
	for place in verbs:
		yield from _written_by(statement, place)


def _is_verb(statement: list[Token], place: int) -> bool:
	"""Whether a statement that writes begins here, perhaps inside another: `with … as (delete …)`."""
	text = statement[place].text
	if text not in WRITES or _at(statement, place - 1).text in BEFORE_NO_VERB:
		return False
	is_function = WRITES[text] == INSERT and _at(statement, place + 1).text == "("
	return not is_function


def _written_by(statement: list[Token], verb: int) -> Iterator[Write]:
	how, start = WRITES[statement[verb].text], verb + 1
	if how == DELETE:
		# delete a, b from …: these are names for the tables behind `from`
		places = range(start, len(statement))
		start = next((place for place in places if statement[place].text == "from"), len(statement))
	tables = _tables(statement, start)
	if (first := next(tables, None)) is None:
		raise NotUnderstood(f"{how} without a table")
	yield Write(how, first)
	if how != INSERT:
		# of joined tables all count, for only the server knows which of them are just read
		yield from (Write(how, table) for table in tables)


def _tables(statement: list[Token], place: int) -> Iterator[str]:
	is_table_next = True
	while (token := _at(statement, place)) != NOTHING and token.text not in END_OF_TABLES | {")"}:
		if is_table_next and token.is_name():
			if _at(statement, place + 1).text == ".":
				raise NotUnderstood("a table of another database")
			yield token.written
			is_table_next = False
		elif token.text == "(":
			if is_table_next and _at(statement, place + 1).text not in ("select", "with"):
				yield from _tables(statement, place + 1)
			place, is_table_next = _closing(statement, place), False
		elif token.text in BEFORE_TABLE:
			# join … using (column) names no table
			is_table_next = not (token.text == "using" and _at(statement, place + 1).text == "(")
		place += 1


def _closing(statement: list[Token], place: int) -> int:
	depth = 0
	for number in range(place, len(statement)):
		depth += (statement[number].text == "(") - (statement[number].text == ")")
		if depth == 0:
			return number
	raise NotUnderstood("a bracket is not closed")


def _at(statement: list[Token], place: int) -> Token:
	return statement[place] if 0 <= place < len(statement) else NOTHING
