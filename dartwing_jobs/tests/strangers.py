"""What fault tests do in other processes, each with a connection of its own."""

import time

import frappe

from dartwing_jobs.engine import attempt as attempts
from dartwing_jobs.engine import claim, database
from dartwing_jobs.engine.facts import Facts
from dartwing_jobs.engine.submit import submit

PATIENCE_SECONDS = 30


def race(site: str, queues: list[str], barrier, won) -> None:
	"""Takes the one job of each queue, at the same moment as another process; then runs what it won."""
	_connect(site)
	database.read_committed()
	started = []
	for queue in queues:
		barrier.wait(PATIENCE_SECONDS)
		if attempt := _start_first_of(queue):
			started.append(attempt)
	for attempt in started:
		attempts.run(attempt)
	won.put(len(started))


@database.own_transaction
def _start_first_of(queue: str) -> attempts.Attempt | None:
	job = claim.Turns([queue]).take_next()
	return job and attempts.start(job, 600, Facts())


def submit_with_redis_at(
	url: str, site: str, job_type: str, organization: str, queues: list[str]
) -> tuple[list[str], float]:
	"""Submits as a web process whose queue Redis is at that address; the names, and the seconds it took."""
	_connect(site)
	submit(job_type, None, organization)
	frappe.db.rollback()  # what a process loads once is loaded now
	frappe.conf.redis_queue = url
	begun = time.monotonic()
	names = [submit(job_type, None, organization, job_queue=queue).name for queue in queues]
	frappe.db.commit()
	return names, time.monotonic() - begun


def _connect(site: str) -> None:
	frappe.init(site)
	frappe.connect()
