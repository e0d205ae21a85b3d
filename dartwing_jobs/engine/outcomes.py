"""How an attempt ends: one small function per outcome, each naming the columns it sets.

All leave the commit to their caller and return whether the job was still ours; if not, nothing was written.
"""

import json
from datetime import datetime, timedelta

from dartwing_jobs.engine import classification, database, dependents, runs, states, transitions
from dartwing_jobs.engine.backoff import Backoff
from dartwing_jobs.engine.categories import CATEGORIES, GENERAL

TRANSIENT = "Transient"
PERMANENT = "Permanent"
EXHAUSTED = "JOB_EXHAUSTED_RETRIES"
# a second move in the same transaction happens after the first: the story is read in the order of its moments
TICK = timedelta(microseconds=1)
RELEASED = {"lease_token": None, "lease_expires_at": None}
ENDED = {**RELEASED, "unique_key": None, "next_retry_at": None}


def completed(attempt, result, now: datetime) -> bool:
	context = attempt.context
	moved = attempt.move(
		states.COMPLETED,
		now,
		progress=100,
		output_reference=context.output_reference,
		error_message=None,
		error_type=None,
		**attempt.cost(),
		**ENDED,
	)
	if moved:
		output = (
			json.dumps(context.output or result, default=str)
			if (context.output or result is not None)
			else None
		)
		attempt.end_run(runs.COMPLETED, now, output=output, output_reference=context.output_reference)
		dependents.release(attempt.job.name)
	return moved


def failed(attempt, error: BaseException, traceback: str, now: datetime) -> bool:
	"""An exception: tried again, or a dead letter."""
	if classification.is_transient(error):
		return _retry_or_bury(attempt, states.FAILED, error, traceback, now)
	if not attempt.move(
		states.DEAD_LETTER, now, str(error), **_error(error, PERMANENT), **attempt.cost(), **ENDED
	):
		return False
	attempt.end_run(runs.FAILED, now, **runs.error_columns(error, PERMANENT, traceback))
	dependents.settle(attempt.job.name, states.DEAD_LETTER)
	return True


def timed_out(attempt, error: BaseException, traceback: str, now: datetime) -> bool:
	return _retry_or_bury(attempt, states.TIMED_OUT, error, traceback, now)


def canceled(attempt, now: datetime) -> bool:
	job = attempt.job
	if not attempt.move(states.CANCELED, now, actor=job.cancel_requested_by, **attempt.cost(), **ENDED):
		return False
	attempt.end_run(runs.FAILED, now, error_message="Canceled")
	dependents.settle(job.name, states.CANCELED)
	return True


def snoozed(attempt, seconds: float, now: datetime) -> bool:
	"""Asked for by the handler: back to waiting, and this attempt does not count."""
	return _hand_back(attempt, seconds, f"Snoozed for {seconds:g} seconds", now, runs.COMPLETED)


def handed_back(attempt, reason: str, now: datetime) -> bool:
	"""Not the job's fault: the worker stops or the job was taken from it. The attempt does not count."""
	return _hand_back(attempt, 0, reason, now, runs.FAILED)


def skipped(attempt, reason: str, now: datetime) -> bool:
	"""What the job needs is gone (organization, user, type, permission): it never runs."""
	columns = {"error_message": reason, "error_type": PERMANENT}
	if not attempt.move(states.DEAD_LETTER, now, reason, **columns, **ENDED):
		return False
	attempt.end_run(runs.SKIPPED, now, error_message=reason, error_type=PERMANENT)
	dependents.settle(attempt.job.name, states.DEAD_LETTER)
	return True


def _retry_or_bury(attempt, status: str, error: BaseException, traceback: str, now: datetime) -> bool:
	job = attempt.job
	if not attempt.move(status, now, str(error), **_error(error, TRANSIENT), **attempt.cost(), **RELEASED):
		return False
	attempt.end_run(runs.FAILED, now, **runs.error_columns(error, TRANSIENT, traceback))
	if job.retry_count < job.max_retries:
		_retry(attempt, error, now)
	else:
		transitions.move(job, states.DEAD_LETTER, message=EXHAUSTED, now=now + TICK, **ENDED)
		dependents.settle(job.name, states.DEAD_LETTER)
	return True


def _retry(attempt, error: BaseException, now: datetime) -> None:
	job, retry = attempt.job, attempt.job.retry_count + 1
	asked = classification.retry_after(error)
	seconds = backoff_of(attempt.job_type).delay(retry) if asked is None else asked
	due = database.utc_now() + timedelta(seconds=seconds)
	transitions.move(
		job,
		states.QUEUED,
		now=now + TICK,
		retry_count=retry,
		run_at=due,
		next_retry_at=database.as_site_time(due),
	)


def _hand_back(attempt, seconds: float, reason: str, now: datetime, run_status: str) -> bool:
	job = attempt.job
	if not attempt.move(states.FAILED, now, reason, attempt=job.attempt - 1, **attempt.cost(), **RELEASED):
		return False
	attempt.end_run(run_status, now, error_message=reason)
	due = database.utc_now() + timedelta(seconds=seconds)
	transitions.move(job, states.QUEUED, now=now + TICK, message=reason, run_at=due)
	return True


def backoff_of(job_type) -> Backoff:
	category = CATEGORIES[(job_type and job_type.category) or GENERAL]
	base = (job_type and job_type.backoff_base_seconds) or category.backoff_base_seconds
	return Backoff(base, (job_type and job_type.backoff_cap_seconds) or category.backoff_cap_seconds)


def _error(error: BaseException, error_type: str) -> dict:
	return {"error_message": str(error)[:2000], "error_type": error_type}
