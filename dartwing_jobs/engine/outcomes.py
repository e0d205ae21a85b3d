"""How an attempt ends: one small function per outcome, each naming the columns it sets.

All leave the commit to their caller. Is the job no longer ours, they raise LeaseLost: the caller rolls back.
"""

from datetime import datetime, timedelta

from dartwing_jobs import settings
from dartwing_jobs.engine import (
	bell,
	burials,
	database,
	dependents,
	order,
	runs,
	sanitize,
	statements,
	states,
	successors,
	transitions,
)
from dartwing_jobs.engine.completions import Completion
from dartwing_jobs.engine.handling import outputs
from dartwing_jobs.engine.rules import classification, job_types, snoozes
from dartwing_jobs.engine.rules.classification import PERMANENT, TRANSIENT, UNKNOWN
from dartwing_jobs.errors import JobTimeout, PermanentError, TransientError

EXHAUSTED = "JOB_EXHAUSTED_RETRIES"
# moves from Running to Failed that are nobody's failure
SNOOZED, INTERRUPTED = "job.snoozed", "job.interrupted"
# what follows them: a move from Failed to Queued that is no retry
REQUEUED = "job.requeued"
# a second move in the same transaction happens after the first: the story is read in the order of its moments
TICK = timedelta(microseconds=1)
UNSTORED = "What went wrong could not be stored; the Error Log says why."
PLAIN_LENGTH = 140
RELEASED = {"lease_token": None, "lease_expires_at": None}
ENDED = {**RELEASED, "unique_key": None, "next_retry_at": None}
NO_ERROR = {"error_message": None, "error_type": None, "error_class": None}


def completion(attempt, result, now: datetime) -> Completion:
	"""What is to be recorded of a handler that has ended well."""
	context, job = attempt.context, attempt.job
	# what the handler put into its context, or what it returned
	came_out = {"output": outputs.stored(context.output or result)}
	came_out["output_reference"] = context.output_reference
	path, moments = attempt.path_to(states.COMPLETED, now)
	columns = {
		**transitions.columns_of(path, moments, job.owner_user, job.moves),
		**order.OUT_OF_LINE,
		**attempt.columns_while_running(),
		"started_at": attempt.started,
		**NO_ERROR,
		**came_out,
		**attempt.last_report(),
		"progress": 100,
		**attempt.cost(),
		**ENDED,
	}
	events = [*attempt.events_of(path, moments, columns), *context.rows_of_notes()]
	events.append(events.pop(len(path) - 1))  # the end behind the notes
	return Completion(
		dict(job), attempt.lease_token, attempt.is_started, columns, attempt.run_row(now, came_out), events
	)


def failed(attempt, error: BaseException, traceback: str, now: datetime) -> None:
	"""An exception: tried again, or a dead letter."""
	kind = classification.kind_of(error)
	mode = job_types.retries_of_unknown_errors(attempt.job_type) if kind == UNKNOWN else None
	if kind == TRANSIENT or mode == job_types.AS_TRANSIENT:
		_retry_or_bury(attempt, states.FAILED, error, traceback, now)
	elif mode == job_types.ONCE and _unknown_errors_of(attempt.job) == 0:
		_retry_or_bury(attempt, states.FAILED, error, traceback, now, unknown_errors=1)
	else:
		why = {"not_retried": f"Retry Unknown Errors is {mode}"} if mode else {}
		_bury_failed(attempt, error, traceback, now, why)


def _unknown_errors_of(job) -> int:
	"""Asked for where it matters: few jobs fail, and fewer in a way that nothing explains."""
	return statements.value("(select unknown_errors from `tabBackground Job` where name = %s)", (job.name,))


def _bury_failed(attempt, error: BaseException, traceback: str, now: datetime, why: dict) -> None:
	told = runs.message_of(error)
	columns = {**_error(error, told, PERMANENT), **attempt.last_report(), **attempt.cost()}
	_bury(attempt, now, told, error, why, **columns)
	attempt.end_run(runs.FAILED, now, **runs.error_columns(error, PERMANENT, traceback))


def _error(error: BaseException, told: str, error_type: str) -> dict:
	return {"error_message": told, "error_type": error_type, "error_class": runs.class_of(error)}


def timed_out(attempt, error: BaseException, traceback: str, now: datetime) -> None:
	_retry_or_bury(attempt, states.TIMED_OUT, error, traceback, now)


def canceled(attempt, requested_by: str | None, now: datetime, **run_columns) -> None:
	"""At a checkpoint, or in place of another attempt; then the run says how this one ended."""
	columns = {**attempt.last_report(), **attempt.cost(), **ENDED}
	attempt.move(states.CANCELED, now, run_columns.get("error_message"), actor=requested_by, **columns)
	attempt.end_run(runs.FAILED, now, **(run_columns or {"error_message": "Canceled"}))
	dependents.parent_ended(attempt.job, states.CANCELED)


def snoozed(attempt, seconds: float, now: datetime) -> None:
	"""Asked for by the handler: back to waiting, and the attempt does not count. Raises if it is too much."""
	before = attempt.job.snooze_count
	snoozes.check_number(before, attempt.job_type)
	seconds = snoozes.wait(snoozes.checked(seconds), before)
	reason = f"Snoozed for {seconds:g} seconds"
	_hand_back(attempt, seconds, reason, now, SNOOZED, runs.COMPLETED, snooze_count=before + 1)


def handed_back(attempt, reason: str, now: datetime) -> None:
	"""Not the job's fault: the worker stops or the job was taken from it. The attempt does not count."""
	_hand_back(attempt, 0, reason, now, INTERRUPTED, runs.FAILED)


def skipped(attempt, reason: str, now: datetime) -> None:
	"""What the job needs is gone (organization, user, type, permission): it never runs."""
	columns = {"error_message": reason, "error_type": PERMANENT, "error_class": None}
	_bury(attempt, now, reason, None, {}, **columns)
	attempt.end_run(runs.SKIPPED, now, **columns)


def plainly(detail: BaseException | str | None) -> BaseException | str | None:
	"""What an outcome gets, without anything that a handler has written."""
	if isinstance(detail, JobTimeout):
		return JobTimeout(UNSTORED)
	if isinstance(detail, BaseException):
		return _plain_error(detail)
	return detail and sanitize.beginning(str(detail), PLAIN_LENGTH)


def _plain_error(error: BaseException) -> Exception:
	"""One that is retried in the same way."""
	kind = classification.kind_of(error)
	if kind == TRANSIENT:
		return TransientError(UNSTORED, retry_after=classification.retry_after(error))
	return PermanentError(UNSTORED) if kind == PERMANENT else RuntimeError(UNSTORED)


def _bury(attempt, now: datetime, told: str, error: BaseException | None, why: dict, **columns) -> None:
	"""An error that will not go away; `why` is what else the log is to say of it."""
	details = burials.context(attempt, told, error and runs.class_of(error)) | why
	place = burials.resting_place(attempt.job)
	attempt.move(states.DEAD_LETTER, now, told, error, details=details, **place, **columns, **ENDED)
	_follow_up_burial(attempt.job)


def _retry_or_bury(
	attempt, status: str, error: BaseException, traceback: str, now: datetime, **columns
) -> None:
	job, told = attempt.job, runs.message_of(error)
	failure = runs.error_columns(error, TRANSIENT, traceback)
	if request := _cancel_request(attempt):
		canceled(attempt, request.cancel_requested_by, now, **failure)
		return
	columns |= {**_error(error, told, TRANSIENT), **attempt.last_report(), **attempt.cost()}
	attempt.move(status, now, told, error, **columns, **RELEASED)
	attempt.end_run(runs.FAILED, now, **failure)
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
	usual = job_types.backoff_of(attempt.job_type).delay(retry)
	seconds = usual if asked is None else min(asked, settings.max_retry_after_seconds())
	due = database.utc_now() + timedelta(seconds=seconds)
	if job_types.retries_as_new_job(attempt.job_type):
		successors.take_over(job, due, now)
	else:
		columns = {"retry_count": retry, "next_retry_at": database.as_site_time(due)}
		_wait_until(job, due, now, **columns, snooze_count=0, uncounted_runs=0)


def _hand_back(
	attempt, seconds: float, reason: str, now: datetime, event: str, run_status: str, **columns
) -> None:
	job = attempt.job
	if request := _cancel_request(attempt):
		canceled(attempt, request.cancel_requested_by, now, error_message=reason)
		return
	columns |= {"attempt": job.attempt - 1, "uncounted_runs": job.uncounted_runs + 1}
	columns |= {**attempt.last_report(), **attempt.cost(), **RELEASED}
	attempt.move(states.FAILED, now, reason, event=event, **columns)
	attempt.end_run(run_status, now, error_message=reason, uncounted=1)
	due = database.utc_now() + timedelta(seconds=seconds)
	_wait_until(job, due, now + TICK, message=reason, event=REQUEUED)


def _cancel_request(attempt):
	"""Who asked for a cancel while the attempt ran; None when there is no request.

	The row is locked by that: a cancel that comes from now on waits for the end, and finds a job that waits.
	"""
	(row,) = statements.fetch(
		"select cancel_requested_at, cancel_requested_by from `tabBackground Job` where name = %s for update",
		(attempt.job.name,),
	) or [None]
	return row if row and row.cancel_requested_at else None


def _wait_until(job, due: datetime, now: datetime, **details) -> None:
	transitions.apply(job, states.QUEUED, now=now, run_at=due, **details)
	bell.ring_when_due_after_commit(job.job_queue, due)
