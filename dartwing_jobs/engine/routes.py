"""Which RQ queue, and so which workers of the bench, serve which Job Queue."""

import time

import frappe

from dartwing_jobs.engine import statements

REMEMBER_SECONDS = 5
_known: dict[str, tuple[float, dict[str, str]]] = {}


def rq_queue_of(job_queue: str) -> str:
	"""The RQ queue whose workers serve a Job Queue."""
	return _mapping().get(job_queue) or frappe.db.get_value("Job Queue", job_queue, "rq_queue")


def by_rq_queue() -> dict[str, list[str]]:
	"""The Job Queues that are served now, by the RQ queue that they map to."""
	served: dict[str, list[str]] = {}
	for queue in statements.fetch("select name, rq_queue from `tabJob Queue` where paused = 0 order by name"):
		served.setdefault(queue.rq_queue, []).append(queue.name)
	return served


def _mapping() -> dict[str, str]:
	"""Remembered for a few seconds: every submit asks, and operators rarely change it."""
	looked_at, mapping = _known.get(frappe.local.site, (0.0, {}))
	if time.monotonic() - looked_at > REMEMBER_SECONDS:
		mapping = {
			row.name: row.rq_queue for row in statements.fetch("select name, rq_queue from `tabJob Queue`")
		}
		_known[frappe.local.site] = time.monotonic(), mapping
	return mapping
