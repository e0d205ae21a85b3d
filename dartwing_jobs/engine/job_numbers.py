"""The numbers in names of jobs: from one sequence, each given once, whatever becomes of the database.

A restored backup brings an older state of the sequence, while files, mails and other systems know the names
that were given since. So a mark, which is part of every backup, says which sequence it belongs to. A restore
makes another one: MariaDB gives it another moment of creation, PostgreSQL another number. Then numbers go on
behind all that may have been given since the mark was written.
"""

import time
from functools import lru_cache
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
LAST = {"mariadb": "next_not_cached_value - 1", "postgres": "last_value"}
SECONDS = {"mariadb": "unix_timestamp()", "postgres": "extract(epoch from clock_timestamp())"}

# by site: when this process looked last
_looked: dict[str, float] = {}


class Mark(NamedTuple):
	"""What is known for sure: at this second, this sequence had given no greater number."""

	incarnation: str
	second: int
	number: int


def next_number(db_type: str) -> str:
	return f"nextval(`{SEQUENCE}`)" if db_type == "mariadb" else f"nextval('{SEQUENCE}')"


def look() -> None:
	"""Before numbers are drawn: goes on behind those that a restore has forgotten. Asks every few seconds."""
	site, moment = frappe.local.site, time.monotonic()
	if moment - _looked.get(site, -LOOK_SECONDS) >= LOOK_SECONDS:
		_looked[site] = moment
		statements.if_ever(_is_another(frappe.local.db.db_type), (), _keep_beside)
		if frappe.local.db.db_type == "mariadb":
			# a name that is promised right behind a condition would be drawn along with it, before the answer
			statements.execute_later("do 0")


@database.own_transaction
def keep() -> None:
	"""Every minute, and when the app is installed or migrated: there is a sequence, and a mark for it."""
	mark, incarnation = _mark(), _incarnation()
	if incarnation is None:
		create_sequence(DOCTYPE, slug=SLUG, check_not_exists=True)
	if incarnation is None or (mark and mark.incarnation != incarnation):
		_go_on_behind(_greatest_that_may_be_given(mark))
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


@lru_cache
def _is_another(db_type: str) -> str:
	return f"""exists(select name from `tab{MARKS}` where name = '{MARK}'
		and {MARKED[db_type]} <> coalesce({INCARNATION[db_type]}, ''))"""


def _last_number() -> int:
	"""The greatest that the sequence has given; nothing that is drawn at the same time is less."""
	return int(statements.fetch(f"select {LAST[frappe.db.db_type]} as last from {SEQUENCE}")[0].last)


def _second() -> int:
	return int(statements.value(SECONDS[frappe.db.db_type]))


def _quoted() -> str:
	return f"`{SEQUENCE}`" if frappe.db.db_type == "mariadb" else f"'{SEQUENCE}'"
