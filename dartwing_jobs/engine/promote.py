"""Gives jobs that have fallen due their place in the queue: delayed ones, retries, released children."""

from datetime import datetime

from dartwing_jobs.engine import bell, database, log, statements, states, transitions
from dartwing_jobs.engine.order import NOT_HELD, OUT_OF_LINE, Places

BATCH = 200
# what a move needs to know of a job: its state, and what its log row takes over
COLUMNS = ("name", "status", "job_queue", "priority", "attempt", "retry_count", "idempotency_key")
COLUMNS += log.FROM_THE_JOB


def promote_due(job_queues: list[str]) -> int:
	"""Promotes what is due in these queues, a batch of each; returns how many jobs that were."""
	now = database.utc_now()
	earliest = earliest_due(job_queues).items()
	return sum(_promote_queue(queue, due, now) for queue, due in earliest if due <= now)


def earliest_due(job_queues: list[str]) -> dict[str, datetime]:
	"""For each queue in which something waits for a moment: the first one, in UTC."""
	if not job_queues:
		return {}
	# without "is not null", which no minimum needs: MariaDB would read all that waits instead of the first
	minimum = "(select min(run_at) from `tabBackground Job` where job_queue = %s)"
	columns = ", ".join(f"{minimum} as due{number}" for number in range(len(job_queues)))
	(row,) = statements.fetch(f"select {columns}", job_queues)
	return {queue: due for queue, due in zip(job_queues, row.values(), strict=True) if due}


@database.own_transaction
def _promote_queue(job_queue: str, earliest: datetime, now: datetime) -> int:
	jobs = _due(job_queue, earliest, now)
	places = Places(job_queue)
	for job in jobs:
		_promote(job, places.next(job.organization, job.priority))
	return len(jobs)


def _due(job_queue: str, earliest: datetime, now: datetime) -> list:
	"""From the earliest on: who locks walks slowly over those who were here before (`engine/claim.py`)."""
	return statements.fetch(
		f"""select {", ".join(f"`{column}`" for column in COLUMNS)} from `tabBackground Job`
		where job_queue = %s and run_at >= %s and run_at <= %s
		order by run_at, name limit {BATCH} for update skip locked""",
		(job_queue, earliest, now),
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


def replace(job_name: str) -> None:
	"""Puts a waiting job where its priority and its moment, just edited, belong; the editor commits."""
	(job,) = statements.fetch(
		"""select organization, job_queue, priority, scheduled_for, claim_key, held_key, run_at, next_retry_at
		from `tabBackground Job` where name = %s""",
		(job_name,),
	)
	is_in_line = job.claim_key or job.held_key
	if not is_in_line and not job.run_at:
		return  # it waits for its parent, or does not wait
	due = database.due_moment(job.scheduled_for)
	if job.scheduled_for and due > database.utc_now():
		columns = {**OUT_OF_LINE, **NOT_HELD, "run_at": due}
	elif is_in_line:
		place = Places(job.job_queue).next(job.organization, job.priority)
		columns = {**place, **NOT_HELD, "run_at": None}
	else:
		# a retry keeps its own moment
		columns = {"run_at": job.run_at if job.next_retry_at else due}
	statements.update("Background Job", job_name, columns)
	bell.ring_after_commit(job.job_queue)
