"""Leases: who holds a job, and until when. Only the holder may start and finish it."""

from datetime import datetime, timedelta

import frappe

from dartwing_jobs.engine import database, order, states
from dartwing_jobs.engine.promote import COLUMNS

LEASE_SECONDS = 30
CLAIMED_COLUMNS = (*COLUMNS, "claim_key")


@database.own_transaction
def claim(job_queues: list[str], limit: int, now: datetime | None = None) -> list:
	"""Takes the first jobs in order; each row carries its new `lease_token`."""
	jobs = sorted(_first(job_queues, limit), key=lambda job: job.claim_key)[:limit]
	if not jobs:
		return []
	until = (now or database.utc_now()) + timedelta(seconds=LEASE_SECONDS)
	for job in jobs:
		job.lease_token = frappe.generate_hash(length=32)
		_set(job.name, claim_key=0, lease_token=job.lease_token, lease_expires_at=until)
	_advance_virtual_time(jobs)
	return jobs


@database.own_transaction
def renew(lease_token: str, now: datetime | None = None) -> bool:
	"""Another lease time; False when the lease is gone."""
	until = (now or database.utc_now()) + timedelta(seconds=LEASE_SECONDS)
	job = frappe.qb.DocType("Background Job")
	frappe.qb.update(job).set(job.lease_expires_at, until).where(job.lease_token == lease_token).run()
	return frappe.db._cursor.rowcount == 1


@database.own_transaction
def give_back(jobs: list) -> None:
	"""Returns claimed jobs that were never started to their place in the queue."""
	for job in jobs:
		row = frappe.qb.DocType("Background Job")
		(
			frappe.qb.update(row)
			.set(row.claim_key, job.claim_key)
			.set(row.lease_token, None)
			.set(row.lease_expires_at, None)
			.where(
				(row.name == job.name) & (row.lease_token == job.lease_token) & (row.status == states.QUEUED)
			)
			.run()
		)


def _first(job_queues: list[str], limit: int) -> list:
	return [job for queue in job_queues for job in _first_of(queue, limit)]


def _first_of(job_queue: str, limit: int) -> list:
	job = frappe.qb.DocType("Background Job")
	return (
		frappe.qb.from_(job)
		.select(*(job[column] for column in CLAIMED_COLUMNS))
		.where((job.job_queue == job_queue) & (job.claim_key > 0))
		.orderby(job.claim_key)
		.limit(limit)
		.for_update(skip_locked=True)
		.run(as_dict=True)
	)


def _advance_virtual_time(jobs: list) -> None:
	for queue in sorted({job.job_queue for job in jobs}):
		latest = max(order.tag(job.claim_key, job.priority) for job in jobs if job.job_queue == queue)
		row = frappe.qb.DocType("Job Queue")
		frappe.qb.update(row).set(row.virtual_time, latest).where(
			(row.name == queue) & (row.virtual_time < latest)
		).run()


def _set(job_name: str, **columns) -> None:
	job = frappe.qb.DocType("Background Job")
	update = frappe.qb.update(job).where(job.name == job_name)
	for column, value in columns.items():
		update = update.set(job[column], value)
	update.run()
