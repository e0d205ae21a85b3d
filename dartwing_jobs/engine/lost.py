"""Ends attempts whose process is gone or was killed, on behalf of the worker that can no longer do it."""

import frappe

from dartwing_jobs import clock
from dartwing_jobs.engine import claim, database, outcomes, runs, statements, states
from dartwing_jobs.engine.attempt import Attempt
from dartwing_jobs.engine.rules import job_types
from dartwing_jobs.errors import WorkerLost

LOST = "The worker was lost"
UNKNOWN = "unknown"


def record_loss(job_name: str, lease_token: str) -> bool:
	"""The process died: the attempt has failed, and the usual retry policy follows."""
	return _record(job_name, lease_token, outcomes.failed, WorkerLost(LOST), LOST)


def record_timeout(job_name: str, lease_token: str, error: BaseException) -> bool:
	"""The handler did not hear its alarm, so its process was killed."""
	return _record(job_name, lease_token, outcomes.timed_out, error, str(error))


def give_back(job_name: str, lease_token: str) -> bool:
	"""Its process died before it came to this job, which was started: the attempt does not count."""
	return _record(job_name, lease_token, outcomes.handed_back, LOST)


@database.own_transaction
def _record(job_name: str, lease_token: str, outcome, *details) -> bool:
	"""False, and nothing written, when the job is no longer held by this lease."""
	job = claim.read_held(job_name, lease_token)
	if job is None or job.status != states.RUNNING:
		return False
	run = _running_run(job)
	attempt = Attempt(job, job_types.read(job.job_type), lease_token, run.name, run.started_at, run.worker)
	outcome(attempt, *details, clock.now())
	return True


def _running_run(job):
	"""The run of the attempt that was lost; a new row when it is gone, for every attempt has one."""
	found = statements.fetch(
		"""select name, started_at, worker from `tabJob Run`
		where background_job = %s and status = 'Running' order by attempt desc limit 1""",
		(job.name,),
	)
	if found:
		return found[0]
	now = clock.now()
	return frappe._dict(name=runs.begin(job, now, UNKNOWN), started_at=now, worker=UNKNOWN)
