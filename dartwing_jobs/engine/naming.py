"""Names of jobs: JOB-<year>-<number>, from a sequence that no transaction waits for.

One sequence serves all years: the turn of the year changes the prefix and nothing else.
"""

import secrets
import time
from collections.abc import Callable

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
	sequence = frappe.scrub(DOCTYPE + SLUG)
	if frappe.db.db_type == "mariadb":
		statement = f"select nextval(`{sequence}`) as number from seq_1_to_{int(count)}"
	else:
		statement = f"select nextval('{sequence}') as number from generate_series(1, {int(count)})"
	year = clock.now().year
	statements.fetch_later(statement, (), lambda rows: then([f"JOB-{year}-{row.number:05d}" for row in rows]))


def next_row_name() -> str:
	"""For rows that nobody names: in the order of time, so that each lands beside the last one."""
	return f"{time.time_ns() // 1000:014x}{secrets.token_hex(4)}"


def create_job_sequence() -> None:
	"""At install and migrate, never while a job is submitted: it commits on MariaDB."""
	create_sequence(DOCTYPE, slug=SLUG, check_not_exists=True)


def drop_job_sequence() -> None:
	frappe.db.sql_ddl(f"drop sequence if exists {frappe.scrub(DOCTYPE + SLUG)}")
