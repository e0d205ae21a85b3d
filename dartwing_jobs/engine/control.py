"""What people do to a job: cancel it, run it now, try it again."""

import frappe
from frappe import _

from dartwing_jobs import clock, tenancy
from dartwing_jobs.engine import bell, database, dependents, log, order, states, transitions
from dartwing_jobs.engine.submit import submit
from dartwing_jobs.errors import InvalidJobError

CANCEL_REQUESTED = "job.cancel_requested"


def cancel(job_name: str, reason: str | None = None) -> str:
	"""Cancels a waiting job, or asks a running one to stop at its next checkpoint; says which."""
	job = _job_to_act_on(job_name)
	user = frappe.session.user
	if job.status in states.WAITING:
		columns = {"run_at": None, "unique_key": None, **order.OUT_OF_LINE, **order.NOT_HELD}
		if not transitions.move(job, states.CANCELED, actor=user, message=reason, **columns):
			return cancel(job_name, reason)  # it has just been started or ended: look again
		dependents.settle(job.name, states.CANCELED)
		return states.CANCELED
	if job.status == states.RUNNING:
		return _request_cancel(job, user, reason)
	return frappe.throw(_("Job {0} has ended as {1}.").format(job_name, job.status), InvalidJobError)


def run_now(job_name: str) -> None:
	"""Lets a delayed job, or one that waits for its next attempt, run at once."""
	job = _job_to_act_on(job_name)
	if job.status not in states.WAITING or job.run_at is None:
		frappe.throw(_("Job {0} does not wait for a time.").format(job_name), InvalidJobError)
	row = frappe.qb.DocType("Background Job")
	now = database.utc_now()
	frappe.qb.update(row).set(row.run_at, now).where((row.name == job_name) & (row.run_at > now)).run()
	bell.ring_after_commit(job.job_queue)


def retry(job_name: str):
	"""Submits a dead or canceled job again, as a new one that knows which it is a retry of."""
	job = _job_to_act_on(job_name)
	if job.status not in (states.DEAD_LETTER, states.CANCELED):
		frappe.throw(
			_("Job {0} is {1}; only what has failed can be retried.").format(job_name, job.status),
			InvalidJobError,
		)
	return submit(
		job.job_type,
		job.input_parameters,
		job.organization,
		priority=job.priority,
		timeout_seconds=job.timeout_seconds,
		max_retries=job.max_retries,
		job_queue=job.job_queue,
		project_id=job.project_id,
		correlation_id=job.correlation_id,
		retry_of=job.name,
		must_submit=True,
	)


def _job_to_act_on(job_name: str):
	job = frappe.db.get_value("Background Job", job_name, "*", as_dict=True)
	if job is None or not tenancy.may_act_on(job, frappe.session.user):
		frappe.throw(_("Job {0} was not found.").format(job_name), frappe.DoesNotExistError)
	return job


def _request_cancel(job, user: str, reason: str | None) -> str:
	now = clock.now()
	columns = {"cancel_requested_at": now, "cancel_requested_by": user}
	frappe.db.set_value("Background Job", job.name, columns, update_modified=False)
	log.write(job, CANCEL_REQUESTED, job.status, job.status, now=now, actor=user, message=reason)
	return "Requested"
