"""Which RQ queue, and so which workers of the bench, serve which Job Queue."""

import time

import frappe

from dartwing_jobs.engine import database, statements

REMEMBER_SECONDS = 5
_known: dict[str, tuple[float, dict]] = {}


def rq_queue_of(job_queue: str) -> str:
	"""The RQ queue whose workers serve a Job Queue."""
	row = _mapping().get(job_queue)
	return row.rq_queue if row else frappe.db.get_value("Job Queue", job_queue, "rq_queue")


def stored_name(job_queue: str) -> str | None:
	"""The name of a queue as the database has it; None when there is no such queue."""
	return job_queue if job_queue in _mapping() else database.stored_name("Job Queue", job_queue)


def most_waiting(job_queue: str) -> int:
	"""How many jobs may wait in a queue; 0 when it does not matter."""
	row = _mapping().get(job_queue)
	return row.max_waiting if row else 0


def forget() -> None:
	"""A queue was changed here: the next question is answered anew."""
	_known.pop(frappe.local.site, None)


def by_rq_queue() -> dict[str, list[str]]:
	"""The Job Queues that are served now, by the RQ queue that they map to."""
	served: dict[str, list[str]] = {}
	for queue in statements.fetch("select name, rq_queue from `tabJob Queue` where paused = 0 order by name"):
		served.setdefault(queue.rq_queue, []).append(queue.name)
	return served


def _mapping() -> dict:
	"""Remembered for a few seconds: every submit asks, and operators rarely change it."""
	looked_at, mapping = _known.get(frappe.local.site, (0.0, {}))
	if time.monotonic() - looked_at > REMEMBER_SECONDS:
		rows = statements.fetch("select name, rq_queue, max_waiting from `tabJob Queue`")
		mapping = {row.name: row for row in rows}
		_known[frappe.local.site] = time.monotonic(), mapping
	return mapping
