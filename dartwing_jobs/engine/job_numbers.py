"""The numbers in names of jobs: from one sequence, each given once, whatever becomes of the database.

A restored backup brings an older state of the sequence, while files, mails and other systems know the names
that were given since. So a mark, which is part of every backup, says which sequence it belongs to. A restore
makes another one: MariaDB gives it another moment of creation, PostgreSQL another number. Then numbers go on
behind all that may have been given since the mark was written.

A process draws some numbers at once and hands them out one by one. What it does not need is never given.
"""

import os
import time
from collections import deque
from typing import NamedTuple

import frappe
from frappe.database.sequence import create_sequence

from dartwing_jobs.engine import database, statements

DOCTYPE, SLUG = "Background Job", "_name_seq"
SEQUENCE = frappe.scrub(DOCTYPE + SLUG)
# Frappe keeps values of an app there, in every backup; only those of `__global` and of users go to browsers
MARKS, MARK, KEEPER = "DefaultValue", "dartwing_jobs_numbers", "dartwing_jobs"
# no bench submits more, and no two clocks differ by more
MOST_A_SECOND, CLOCKS_DIFFER_SECONDS = 10_000, 10
# a process looks at the mark this often while it submits; a restore takes longer
LOOK_SECONDS = 2
# what a process draws ahead
BLOCK = 20
# where numbers of an earlier installation may be found, if it left no mark
TRACES = {DOCTYPE: "name", "File": "attached_to_name"}

# which sequence this is, as the server tells; a restore makes another one, a new timeline may have lost some
INCARNATION = {
	"mariadb": f"""(select unix_timestamp(create_time) from information_schema.tables
		where table_schema = database() and table_name = '{SEQUENCE}')""",
	"postgres": f"""(select concat(oid, '.', substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))
		from pg_class where relname = '{SEQUENCE}' and relnamespace = current_schema()::regnamespace)""",
}
MARKED = {"mariadb": "substring_index(defvalue, ' ', 1)", "postgres": "split_part(defvalue, ' ', 1)"}
NEXT = {
	"mariadb": f"select nextval(`{SEQUENCE}`) as number from seq_1_to_{{count}} limit {{count}}",
	"postgres": f"select nextval('{SEQUENCE}') as number from generate_series(1, {{count}}) limit {{count}}",
}
LAST = {"mariadb": "next_not_cached_value - 1", "postgres": "last_value"}
SECONDS = {"mariadb": "unix_timestamp()", "postgres": "extract(epoch from clock_timestamp())"}

# by site: what this process has seen last
_looked: dict[str, "Look"] = {}
# by site, process and sequence: what was drawn ahead
_drawn: dict[tuple[str, int, str | None], deque[int]] = {}


class Mark(NamedTuple):
	"""What is known for sure: at this second, this sequence had given no greater number."""

	incarnation: str
	second: int
	number: int


class Look(NamedTuple):
	moment: float
	incarnation: str | None


def take(count: int) -> list[int]:
	"""Numbers that nobody else is given."""
	incarnation = _look()
	return _draw(count) if count > 1 else [_take_one(incarnation)]


def _take_one(incarnation: str | None) -> int:
	drawn = _drawn_ahead(incarnation)
	try:
		return drawn.popleft()  # threads may do so at once
	except IndexError:
		first, *others = _draw(BLOCK)
		drawn.extend(others)
		return first


def _drawn_ahead(incarnation: str | None) -> deque[int]:
	"""A fork must not give what its parent has drawn, and nobody what is of a sequence that was replaced."""
	return _drawn.setdefault((frappe.local.site, os.getpid(), incarnation), deque())


def _draw(count: int) -> list[int]:
	"""As a rule they follow each other: then two numbers tell all. With others in between, once more."""
	numbers = NEXT[frappe.local.db.db_type].format(count=int(count))
	(ends,) = statements.fetch(f"select min(number) as first, max(number) as last from ({numbers}) drawn")
	if ends.last - ends.first == count - 1:
		return list(range(ends.first, ends.last + 1))
	return [row.number for row in statements.fetch(numbers)]


def _look() -> str | None:
	"""Which sequence there is. Goes on behind what a restore has forgotten. Asks every few seconds."""
	site, moment = frappe.local.site, time.monotonic()
	known = _looked.get(site)
	if known and moment - known.moment < LOOK_SECONDS:
		return known.incarnation
	incarnation = _incarnation()
	if _is_marked_as_another(incarnation):
		_keep_beside()
		incarnation = _incarnation()
	_looked[site] = Look(moment, incarnation)
	return incarnation


@database.own_transaction
def keep() -> None:
	"""Every minute, and when the app is installed or migrated: there is a sequence, and a mark for it."""
	mark, incarnation = _mark(), _incarnation()
	if incarnation is None:
		create_sequence(DOCTYPE, slug=SLUG, check_not_exists=True)
	if incarnation is None or (mark and mark.incarnation != incarnation):
		_go_on_behind(_greatest_that_may_be_given(mark))
		_looked.pop(frappe.local.site, None)
	_write(Mark(_incarnation(), _second(), _last_number()), is_new=mark is None)


def _keep_beside() -> None:
	"""On a connection of its own: making a sequence commits, and others must not wait for a submitter."""
	with database.beside():
		keep()


def _greatest_that_may_be_given(mark: Mark | None) -> int:
	if not mark:
		return max(map(_greatest_trace, TRACES))
	seconds = max(0, _second() - mark.second) + CLOCKS_DIFFER_SECONDS
	return max(mark.number, _last_number()) + seconds * MOST_A_SECOND


def _greatest_trace(doctype: str) -> int:
	if not frappe.db.table_exists(doctype):
		return 0
	column = TRACES[doctype]
	found = statements.fetch(
		f"""select substr({column}, 10) as number from `tab{doctype}` where {column} like %s
		order by length({column}) desc, substr({column}, 10) desc limit 1""",
		("JOB-____-_____%",),
	)
	return int(found[0].number) if found and found[0].number.isdecimal() else 0


def _go_on_behind(number: int) -> None:
	"""Never backwards: MariaDB refuses that itself, elsewhere the mark's lock lets one do this at a time."""
	if number > _last_number():
		statements.value(f"setval({_quoted()}, {int(number)})")


def _mark() -> Mark | None:
	"""Locked until the transaction ends."""
	found = statements.fetch(f"select defvalue from `tab{MARKS}` where name = %s for update", (MARK,))
	if not found:
		return None
	incarnation, second, number = found[0].defvalue.split()
	return Mark(incarnation, int(second), int(number))


def _write(mark: Mark, is_new: bool) -> None:
	value = " ".join(map(str, mark))
	if is_new:
		row = {"name": MARK, "parent": KEEPER, "parenttype": KEEPER, "parentfield": KEEPER}
		statements.insert(MARKS, [{**row, "defkey": MARK, "defvalue": value}])
	else:
		statements.update(MARKS, MARK, {"defvalue": value})


def _incarnation() -> str | None:
	value = statements.value(INCARNATION[frappe.db.db_type])
	return None if value is None else str(value)


def _is_marked_as_another(incarnation: str | None) -> bool:
	marked = statements.fetch(
		f"select {MARKED[frappe.db.db_type]} as incarnation from `tab{MARKS}` where name = %s", (MARK,)
	)
	return bool(marked) and marked[0].incarnation != (incarnation or "")


def _last_number() -> int:
	"""The greatest that the sequence has given; nothing that is drawn at the same time is less."""
	return int(statements.fetch(f"select {LAST[frappe.db.db_type]} as last from {SEQUENCE}")[0].last)


def _second() -> int:
	return int(statements.value(SECONDS[frappe.db.db_type]))


def _quoted() -> str:
	return f"`{SEQUENCE}`" if frappe.db.db_type == "mariadb" else f"'{SEQUENCE}'"
