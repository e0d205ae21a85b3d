"""Gives jobs that have fallen due their place in the queue: new ones, delayed ones, retries."""

from datetime import datetime

import frappe

from dartwing_jobs.engine import database, log, states, transitions
from dartwing_jobs.engine.order import Tags

BATCH = 200
# what a move needs to know of a job: its state, and what its log row takes over
COLUMNS = ("name", "status", "job_queue", "priority", "attempt", "retry_count", *log.FROM_THE_JOB)


@database.own_transaction
def promote_due(job_queues: list[str], now: datetime | None = None) -> int:
	"""Promotes a batch of due jobs of these queues; returns how many."""
	jobs = _due(job_queues, now or database.utc_now())
	tags = {queue: Tags(queue) for queue in sorted({job.job_queue for job in jobs})}
	for job in jobs:
		_promote(job, tags[job.job_queue].next(job.organization, job.priority))
	return len(jobs)


def _due(job_queues: list[str], now: datetime) -> list:
	job = frappe.qb.DocType("Background Job")
	return (
		frappe.qb.from_(job)
		.select(*(job[column] for column in COLUMNS))
		.where((job.run_at <= now) & job.job_queue.isin(job_queues))
		.orderby(job.run_at, job.name)
		.limit(BATCH)
		.for_update(skip_locked=True)
		.run(as_dict=True)
	)


def _promote(job, claim_key: int) -> None:
	if job.status == states.PENDING:
		transitions.move(job, states.QUEUED, run_at=None, claim_key=claim_key)
		return
	# a retry: it has been Queued since its last attempt failed
	row = frappe.qb.DocType("Background Job")
	frappe.qb.update(row).set(row.run_at, None).set(row.claim_key, claim_key).where(
		row.name == job.name
	).run()
