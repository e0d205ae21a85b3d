"""Gives jobs that have fallen due their place in the queue: delayed ones, retries, released children."""

from datetime import datetime

import frappe

from dartwing_jobs.engine import bell, database, log, statements, states, transitions, troubles
from dartwing_jobs.engine.limits import brakes, holds
from dartwing_jobs.engine.order import NOT_HELD, OUT_OF_LINE, REASON_LENGTH, Places
from dartwing_jobs.engine.rules import job_types

BATCH = 200
# what a move needs to know of a job: its state, and what its log row takes over
COLUMNS = ("name", "status", "job_queue", "priority", "attempt", "retry_count", "idempotency_key", "moves")
COLUMNS += log.FROM_THE_JOB
# putting a job in line
PROMOTE = "promote"
NOT_SET_ASIDE = troubles.NOT_SET_ASIDE.format(duty=PROMOTE, column="`tabBackground Job`.name")


def promote_due(job_queues: list[str]) -> int:
	"""Promotes what is due in these queues, a batch of each; returns how many jobs that were."""
	now = database.utc_now()
	earliest = earliest_due(job_queues).items()
	return sum(_promote_batch_or_each(queue, due, now) for queue, due in earliest if due <= now)


def earliest_due(job_queues: list[str]) -> dict[str, datetime]:
	"""For each queue in which something waits for a moment: the first one, in UTC."""
	if not job_queues:
		return {}
	# without "is not null", which no minimum needs: MariaDB would read all that waits instead of the first
	minimum = "(select min(run_at) from `tabBackground Job` where job_queue = %s)"
	columns = ", ".join(f"{minimum} as due{number}" for number in range(len(job_queues)))
	(row,) = statements.fetch(f"select {columns}", job_queues)
	return {queue: due for queue, due in zip(job_queues, row.values(), strict=True) if due}


def _promote_batch_or_each(job_queue: str, earliest: datetime, now: datetime) -> int:
	"""If a job of the batch cannot be promoted, the others must not wait for it."""
	try:
		return _promote_all(job_queue, earliest, now)
	except Exception as error:
		if database.is_lost_connection(error) or database.is_conflict(error):
			raise
	names = [job.name for job in _due(job_queue, earliest, now)]
	frappe.db.rollback()

	def promote_one(name: str) -> int:
		return _promote_all(job_queue, earliest, now, name)

	return sum(filter(None, troubles.each(PROMOTE, names, promote_one)))


@database.own_transaction
def _promote_all(job_queue: str, earliest: datetime, now: datetime, name: str | None = None) -> int:
	jobs = _due(job_queue, earliest, now, name)
	disabled = job_types.disabled_among({job.job_type for job in jobs if job.status == states.PENDING})
	places = Places(job_queue)
	for job in jobs:
		if job.status == states.PENDING and job.job_type in disabled:
			holds.hold_pending(job.name, brakes.disabled(job.job_type))
		else:
			_promote(job, places.next(job.organization, job.priority))
	return len(jobs)


def _due(job_queue: str, earliest: datetime, now: datetime, name: str | None = None) -> list:
	"""A batch, or one job; locked.

	From the earliest on: who locks walks slowly over those who were here before (`engine/claim.py`).
	"""
	which, values = ("and name = %s", [name]) if name else ("", [])
	return statements.fetch(
		f"""select {", ".join(f"`{column}`" for column in COLUMNS)} from `tabBackground Job`
		where job_queue = %s and run_at >= %s and run_at <= %s {which} and {NOT_SET_ASIDE}
		order by run_at, name limit {BATCH} for update skip locked""",
		[job_queue, earliest, now, *values],
	)


def _promote(job, place: dict) -> None:
	columns = {
		"run_at": None,
		"held_reason": None,
		**(place if job.status in states.WAITING else OUT_OF_LINE),
	}
	if job.status == states.PENDING:
		transitions.apply(job, states.QUEUED, **columns)
	else:
		# a retry: it has been Queued since its last attempt failed
		statements.update("Background Job", job.name, columns)


@database.own_transaction
def postpone(job_name: str, due: datetime, reason: str) -> None:
	"""Takes a job out of its line until a moment (UTC), and says why."""
	columns = {**OUT_OF_LINE, **NOT_HELD, "held_reason": reason[:REASON_LENGTH], "run_at": due}
	statements.update("Background Job", job_name, columns)


def replace(job_name: str) -> None:
	"""Puts a waiting job where its priority and its moment, just edited, belong; the editor commits."""
	(job,) = statements.fetch(
		"""select status, organization, job_queue, priority, scheduled_utc, claim_key, held_by, run_at,
		next_retry_at, lease_token from `tabBackground Job` where name = %s for update""",
		(job_name,),
	)
	is_in_line = job.claim_key and job.status == states.QUEUED
	if job.lease_token or not (is_in_line or job.held_by or job.run_at):
		return  # it waits for its parent, does not wait, or is about to begin
	now = database.utc_now()
	due = job.scheduled_utc or now
	if due > now:
		columns = {**OUT_OF_LINE, **NOT_HELD, "run_at": due}
	elif is_in_line:
		place = Places(job.job_queue).next(job.organization, job.priority)
		columns = {**place, **NOT_HELD, "run_at": None}
	else:
		# a retry keeps its own moment
		columns = {**NOT_HELD, "run_at": job.run_at if job.run_at and job.next_retry_at else due}
	statements.update("Background Job", job_name, columns)
	bell.ring_after_commit(job.job_queue)
