"""How an attempt ends: one small function per outcome, each naming the columns it sets.

All leave the commit to their caller. Is the job no longer ours, they raise LeaseLost: the caller rolls back.
"""

import json
from datetime import datetime, timedelta

from dartwing_jobs.engine import bell, burials, database, dependents, runs, states, successors, transitions
from dartwing_jobs.engine.rules import classification, job_types

TRANSIENT = "Transient"
PERMANENT = "Permanent"
EXHAUSTED = "JOB_EXHAUSTED_RETRIES"
# moves from Running to Failed that are nobody's failure
SNOOZED, INTERRUPTED = "job.snoozed", "job.interrupted"
# a second move in the same transaction happens after the first: the story is read in the order of its moments
TICK = timedelta(microseconds=1)
RELEASED = {"lease_token": None, "lease_expires_at": None}
ENDED = {**RELEASED, "unique_key": None, "next_retry_at": None}


def completed(attempt, result, now: datetime) -> None:
	context = attempt.context
	columns = {"error_message": None, "error_type": None, "output_reference": context.output_reference}
	columns |= {**attempt.last_report(), "progress": 100, **attempt.cost(), **ENDED}
	attempt.move(states.COMPLETED, now, **columns)
	output = {"output": _output(context.output, result), "output_reference": context.output_reference}
	attempt.end_run(runs.COMPLETED, now, **output)
	dependents.parent_ended(attempt.job, states.COMPLETED)


def failed(attempt, error: BaseException, traceback: str, now: datetime) -> None:
	"""An exception: tried again, or a dead letter."""
	if classification.is_transient(error):
		_retry_or_bury(attempt, states.FAILED, error, traceback, now)
		return
	told = runs.message_of(error)
	columns = {"error_message": told, "error_type": PERMANENT, **attempt.last_report(), **attempt.cost()}
	_bury(attempt, now, told, error, **columns)
	attempt.end_run(runs.FAILED, now, **runs.error_columns(error, PERMANENT, traceback))


def timed_out(attempt, error: BaseException, traceback: str, now: datetime) -> None:
	_retry_or_bury(attempt, states.TIMED_OUT, error, traceback, now)


def canceled(attempt, requested_by: str | None, now: datetime) -> None:
	columns = {**attempt.last_report(), **attempt.cost(), **ENDED}
	attempt.move(states.CANCELED, now, actor=requested_by, **columns)
	attempt.end_run(runs.FAILED, now, error_message="Canceled")
	dependents.parent_ended(attempt.job, states.CANCELED)


def snoozed(attempt, seconds: float, now: datetime) -> None:
	"""Asked for by the handler: back to waiting, and this attempt does not count."""
	_hand_back(attempt, seconds, f"Snoozed for {seconds:g} seconds", now, SNOOZED, runs.COMPLETED)


def handed_back(attempt, reason: str, now: datetime) -> None:
	"""Not the job's fault: the worker stops or the job was taken from it. The attempt does not count."""
	_hand_back(attempt, 0, reason, now, INTERRUPTED, runs.FAILED)


def skipped(attempt, reason: str, now: datetime) -> None:
	"""What the job needs is gone (organization, user, type, permission): it never runs."""
	columns = {"error_message": reason, "error_type": PERMANENT}
	_bury(attempt, now, reason, None, **columns)
	attempt.end_run(runs.SKIPPED, now, **columns)


def _bury(attempt, now: datetime, told: str, error: BaseException | None, **columns) -> None:
	"""An error that will not go away."""
	details = burials.context(attempt, told, error and runs.class_of(error))
	place = burials.resting_place(attempt.job)
	attempt.move(states.DEAD_LETTER, now, told, error, details=details, **place, **columns, **ENDED)
	_follow_up_burial(attempt.job)


def _retry_or_bury(attempt, status: str, error: BaseException, traceback: str, now: datetime) -> None:
	job, told = attempt.job, runs.message_of(error)
	columns = {"error_message": told, "error_type": TRANSIENT, **attempt.last_report(), **attempt.cost()}
	attempt.move(status, now, told, error, **columns, **RELEASED)
	attempt.end_run(runs.FAILED, now, **runs.error_columns(error, TRANSIENT, traceback))
	if job.retry_count < job.max_retries:
		_retry(attempt, error, now + TICK)
	else:
		_bury_exhausted(attempt, told, error, now + TICK)


def _bury_exhausted(attempt, told: str, error: BaseException, now: datetime) -> None:
	"""The last of its attempts has just failed."""
	job, error_class = attempt.job, runs.class_of(error)
	log = {"error_class": error_class, "details": burials.context(attempt, told, error_class)}
	columns = {**burials.resting_place(job), **ENDED}
	transitions.apply(job, states.DEAD_LETTER, message=EXHAUSTED, told=log, now=now, **columns)
	_follow_up_burial(job)


def _follow_up_burial(job) -> None:
	dependents.parent_ended(job, states.DEAD_LETTER)
	burials.alert_after_commit(job)


def _retry(attempt, error: BaseException, now: datetime) -> None:
	job, retry = attempt.job, attempt.job.retry_count + 1
	asked = classification.retry_after(error)
	seconds = job_types.backoff_of(attempt.job_type).delay(retry) if asked is None else asked
	due = database.utc_now() + timedelta(seconds=seconds)
	if job_types.retries_as_new_job(attempt.job_type):
		successors.take_over(job, due, now)
	else:
		_wait_until(job, due, now, retry_count=retry, next_retry_at=database.as_site_time(due))


def _hand_back(attempt, seconds: float, reason: str, now: datetime, event: str, run_status: str) -> None:
	job = attempt.job
	columns = {"attempt": job.attempt - 1, **attempt.last_report(), **attempt.cost(), **RELEASED}
	attempt.move(states.FAILED, now, reason, event=event, **columns)
	attempt.end_run(run_status, now, error_message=reason, uncounted=1)
	_wait_until(job, database.utc_now() + timedelta(seconds=seconds), now + TICK, message=reason)


def _wait_until(job, due: datetime, now: datetime, **details) -> None:
	transitions.apply(job, states.QUEUED, now=now, run_at=due, **details)
	bell.ring_when_due_after_commit(job.job_queue, due)


def _output(said: dict, returned) -> str | None:
	"""What the handler put into its context, or what it returned."""
	value = said or returned
	return None if value is None else json.dumps(value, default=str)
