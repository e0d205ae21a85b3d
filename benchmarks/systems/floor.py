"""What no job system on this database can exceed: one row changed and durably committed, and nothing else."""

import multiprocessing
import time

import frappe

from dartwing_jobs.engine import rows, statements
from dartwing_jobs.tests.processes import connect_anew

TABLE = "Job Turnstile"
UPDATE = f"update `tab{TABLE}` set idx = %s where name = %s"


def commits_a_second(processes: int, count: int) -> float:
	"""By so many processes at once, each with a row of its own, by the driver alone."""
	fork = multiprocessing.get_context("fork")
	told = fork.SimpleQueue()
	others = [
		fork.Process(target=_commit_often, args=(frappe.local.site, count, told)) for _ in range(processes)
	]
	for process in others:
		process.start()
	spans = [told.get() for _ in others]
	for process in others:
		process.join()
	return processes * count / (max(end for _, end in spans) - min(start for start, _ in spans))


def _commit_often(site: str, count: int, told: multiprocessing.SimpleQueue) -> None:
	connect_anew(site)
	row = rows.new("Administrator", frappe.utils.now_datetime())
	statements.insert(TABLE, [row])
	frappe.db.commit()
	connection, cursor, statement = frappe.db._conn, frappe.db._cursor, UPDATE
	if frappe.db.db_type != "mariadb":
		statement = statements.dialect(UPDATE)
	started = time.monotonic()
	for number in range(count):
		cursor.execute(statement, (number + 1, row["name"]))
		connection.commit()
	ended = time.monotonic()
	frappe.db.delete(TABLE, {"name": row["name"]})
	frappe.db.commit()
	told.put((started, ended))
