"""Names of jobs: JOB-<year>-<number>, from a sequence that no transaction waits for.

One sequence serves all years: the turn of the year changes the prefix and nothing else.
"""

import random
from collections.abc import Callable
from datetime import datetime, timezone
from functools import lru_cache

import frappe

from dartwing_jobs import clock
from dartwing_jobs.engine import job_numbers, statements


def next_job_name() -> str:
	return next_job_names(1)[0]


def next_job_names(count: int) -> list[str]:
	names: list[str] = []
	draw_job_names(count, names.extend)
	statements.arrive()
	return names


def draw_job_names(count: int, then: Callable[[list[str]], object]) -> None:
	"""Many names in one statement; `then` gets them, perhaps later (see `statements.in_one_go`)."""
	prefix, is_mariadb = _prefix(), frappe.db.db_type == "mariadb"
	job_numbers.look()
	series = f"seq_1_to_{int(count)}" if is_mariadb else f"generate_series(1, {int(count)})"
	statements.fetch_later(
		f"select {job_numbers.next_number(frappe.db.db_type)} as number from {series}",
		(),
		lambda rows: then([f"{prefix}{row.number:05d}" for row in rows]),
	)


def promise_job_name(then: Callable[[str], None]) -> statements.Promise | None:
	"""One name, which may be written before it is known (`statements.promise`); `then` gets it."""
	job_numbers.look()
	return statements.promise("name", _next_name(_prefix(), frappe.local.db.db_type), (), then)


@lru_cache
def _next_name(prefix: str, database: str) -> str:
	number = job_numbers.next_number(database)
	if database == "mariadb":
		# a table of its own, to name the number, would cost as much as an insert
		return f"concat('{prefix}', substr('0000', length({number})), {number.replace('next', 'last', 1)})"
	return f"(select '{prefix}' || to_char({number}, 'FM99999999999999900000'))"


def _prefix() -> str:
	return f"JOB-{clock.now().year}-"


def next_row_name() -> str:
	"""For rows that nobody names: in the order of time, so that each lands beside the last one."""
	return f"{clock.microseconds():014x}{random.getrandbits(32):08x}"


def first_row_name_of_the_last(seconds: float) -> str:
	"""Rows that were named within the last seconds have greater names than this."""
	return f"{clock.microseconds() - int(seconds * 1_000_000):014x}"


def moment_of_row(name: str) -> datetime:
	"""When a row was named, in UTC."""
	return datetime.fromtimestamp(int(name[:14], 16) / 1_000_000, timezone.utc).replace(tzinfo=None)
