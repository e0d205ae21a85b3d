"""Names of jobs: JOB-<year>-<number>, from a sequence that no transaction waits for.

One sequence serves all years: the turn of the year changes the prefix and nothing else.
"""

import frappe
from frappe.database.sequence import create_sequence, get_next_val

from dartwing_jobs import clock

DOCTYPE = "Background Job"
SLUG = "_name_seq"


def next_job_name() -> str:
	return f"JOB-{clock.now().year}-{get_next_val(DOCTYPE, slug=SLUG):05d}"


def next_job_names(count: int) -> list[str]:
	"""Many names in one statement."""
	sequence = frappe.scrub(DOCTYPE + SLUG)
	numbers = frappe.db.multisql(
		{
			"mariadb": f"select nextval(`{sequence}`) from seq_1_to_{int(count)}",
			"postgres": f"select nextval('\"{sequence}\"') from generate_series(1, {int(count)})",
		}
	)
	return [f"JOB-{clock.now().year}-{number:05d}" for (number,) in numbers]


def create_job_sequence() -> None:
	"""At install and migrate, never while a job is submitted: it commits on MariaDB."""
	create_sequence(DOCTYPE, slug=SLUG, check_not_exists=True)


def drop_job_sequence() -> None:
	frappe.db.sql_ddl(f"drop sequence if exists {frappe.scrub(DOCTYPE + SLUG)}")
