"""Duties that repair what was lost: dead leases, lost rings. Bounded, and safe to run twice at once."""

from datetime import datetime

import frappe

from dartwing_jobs import clock
from dartwing_jobs.engine import bell, database, outcomes, runs, states
from dartwing_jobs.engine.attempt import Attempt

BATCH = 100
LOST = "The worker was lost"


class WorkerLost(Exception):
	"""The lease of a running job ran out: its worker died or stopped answering."""


def sweep() -> None:
	"""Every minute, from the scheduler."""
	reap_expired()
	ring_for_waiting()


def reap_expired(now: datetime | None = None) -> int:
	"""Takes jobs back from workers that no longer renew their lease; returns how many."""
	expired = _expired(now or database.utc_now())
	for job in expired:
		database.own_transaction(_reap)(job)
	return len(expired)


def ring_for_waiting(now: datetime | None = None) -> None:
	"""Rings for every queue that has something to do, in case its ring was lost."""
	job = frappe.qb.DocType("Background Job")
	due = (job.run_at <= (now or database.utc_now())) | (job.claim_key > 0)
	for queue in frappe.qb.from_(job).select(job.job_queue).where(due).distinct().run(pluck=True):
		bell.ring(queue)


def _expired(now: datetime) -> list:
	job = frappe.qb.DocType("Background Job")
	return (
		frappe.qb.from_(job)
		.select(job.star)
		.where(job.lease_expires_at < now)
		.orderby(job.lease_expires_at)
		.limit(BATCH)
		.run(as_dict=True)
	)


def _reap(job) -> None:
	if job.status == states.QUEUED:
		_make_claimable_again(job)
		return
	run = frappe.db.get_value(
		"Job Run", {"background_job": job.name, "status": runs.RUNNING}, ["name", "started_at"]
	)
	name, started = run or (None, job.started_at)
	job_type = frappe.get_cached_doc("Job Type", job.job_type)
	attempt = Attempt(job, job_type, job.lease_token, name, started)
	outcomes.failed(attempt, WorkerLost(LOST), LOST, clock.now())


def _make_claimable_again(job) -> None:
	row = frappe.qb.DocType("Background Job")
	(
		frappe.qb.update(row)
		.set(row.run_at, database.utc_now())
		.set(row.lease_token, None)
		.set(row.lease_expires_at, None)
		.where((row.name == job.name) & (row.lease_token == job.lease_token) & (row.status == states.QUEUED))
		.run()
	)
