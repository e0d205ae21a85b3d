"""Names of jobs: JOB-<year>-<number>, from a sequence that no transaction waits for.

One sequence serves all years: the turn of the year changes the prefix and nothing else.
"""

import random
import time
from collections.abc import Callable
from datetime import datetime, timezone

import frappe
from frappe.database.sequence import create_sequence

from dartwing_jobs import clock
from dartwing_jobs.engine import statements

DOCTYPE = "Background Job"
SLUG = "_name_seq"


def next_job_name() -> str:
	return next_job_names(1)[0]


def next_job_names(count: int) -> list[str]:
	names: list[str] = []
	draw_job_names(count, names.extend)
	statements.arrive()
	return names


def draw_job_names(count: int, then: Callable[[list[str]], object]) -> None:
	"""Many names in one statement; `then` gets them, perhaps later (see `statements.in_one_go`)."""
	sequence, year = frappe.scrub(DOCTYPE + SLUG), clock.now().year
	is_mariadb = frappe.db.db_type == "mariadb"
	drawn = f"nextval(`{sequence}`)" if is_mariadb else f"nextval('{sequence}')"

	def name(numbers: list[int]) -> None:
		then([f"JOB-{year}-{number:05d}" for number in numbers])

	if count == 1:
		statements.value_later(drawn, (), lambda number: name([number]))
		return
	series = f"seq_1_to_{int(count)}" if is_mariadb else f"generate_series(1, {int(count)})"
	statement = f"select {drawn} as number from {series}"
	statements.fetch_later(statement, (), lambda rows: name([row.number for row in rows]))


def next_row_name() -> str:
	"""For rows that nobody names: in the order of time, so that each lands beside the last one."""
	return f"{time.time_ns() // 1000:014x}{random.getrandbits(32):08x}"


def first_row_name_of_the_last(seconds: float) -> str:
	"""Rows that were named within the last seconds have greater names than this."""
	return f"{time.time_ns() // 1000 - int(seconds * 1_000_000):014x}"


def moment_of_row(name: str) -> datetime:
	"""When a row was named, in UTC."""
	return datetime.fromtimestamp(int(name[:14], 16) / 1_000_000, timezone.utc).replace(tzinfo=None)


def create_job_sequence() -> None:
	"""At install and migrate, never while a job is submitted: it commits on MariaDB."""
	create_sequence(DOCTYPE, slug=SLUG, check_not_exists=True)


def drop_job_sequence() -> None:
	frappe.db.sql_ddl(f"drop sequence if exists {frappe.scrub(DOCTYPE + SLUG)}")
