"""Ends attempts whose process is gone or was killed, on behalf of the worker that can no longer do it."""

from datetime import datetime

from dartwing_jobs import clock
from dartwing_jobs.engine import claim, database, lease, naming, outcomes, runs, states
from dartwing_jobs.engine.attempt import Attempt
from dartwing_jobs.engine.rules import job_types
from dartwing_jobs.errors import WorkerLost

LOST = "The worker was lost"
UNKNOWN = "unknown"


def record_loss(job_name: str, lease_token: str, began: datetime | None = None) -> bool:
	"""The process died: the attempt has failed, and the usual retry policy follows.

	`began` is when the handler was called, if the job is not Running yet.
	"""
	return _record(job_name, lease_token, began, outcomes.failed, WorkerLost(LOST), LOST)


def record_timeout(job_name: str, lease_token: str, began: datetime | None, error: BaseException) -> bool:
	"""The handler did not hear its alarm, so its process was killed."""
	return _record(job_name, lease_token, began, outcomes.timed_out, error, str(error))


def hand_back(job_name: str, lease_token: str) -> bool:
	"""Its process died before it came to this job, which was started: the attempt does not count."""
	return _record(job_name, lease_token, None, outcomes.handed_back, LOST)


def give_back(job_names: list[str], lease_token: str, is_started: bool) -> None:
	"""Jobs that were claimed together, or one that was started, and that have not begun."""
	lease.give_back(job_names, lease_token)
	for name in job_names if is_started else ():
		hand_back(name, lease_token)


def reclaim(job_name: str, lease_token: str) -> bool:
	"""Its lease is over. A Running job was lost; of a Queued one it is not known whether it has begun."""
	if record_loss(job_name, lease_token):
		return True
	return bool(lease.give_back([job_name], lease_token, is_doubtful=True))


@database.own_transaction
def show(job_name: str, lease_token: str, began: datetime, worker: str) -> None:
	"""A job that was claimed with others has begun, and runs for long: people see it run."""
	job = claim.read_held(job_name, lease_token)
	if job and job.status == states.QUEUED:
		_attempt(job, lease_token, began, worker).be_started()


@database.own_transaction
def _record(job_name: str, lease_token: str, began: datetime | None, outcome, *details) -> bool:
	"""False, and nothing written, when the job is no longer held by this lease, or has not begun."""
	job = claim.read_held(job_name, lease_token)
	if job is None or (job.status != states.RUNNING and began is None):
		return False
	outcome(_attempt(job, lease_token, began, UNKNOWN), *details, clock.now())
	return True


def _attempt(job, lease_token: str, began: datetime | None, worker: str) -> Attempt:
	run = runs.running_of(job.name) if job.status == states.RUNNING else None
	attempt = Attempt(job, job_types.read(job.job_type), lease_token, run.worker if run else worker)
	if run:
		attempt.begin_again(run)
	elif job.status == states.RUNNING:  # every attempt has a run, also one whose row is gone
		attempt.begin_again(_new_run(job))
	else:
		attempt.begin_at(began)
	return attempt


def _new_run(job):
	name, now = naming.next_row_name(), clock.now()
	runs.begin(job, name, now, UNKNOWN)
	return runs.running_of(job.name)
