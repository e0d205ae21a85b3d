"""What people do to a job: cancel it, run it now, try it again."""

import json

import frappe
from frappe import _

from dartwing_jobs import clock, differences, tenancy
from dartwing_jobs.engine import (
	bell,
	burials,
	database,
	dependents,
	log,
	order,
	statements,
	states,
	submission,
	transitions,
)
from dartwing_jobs.engine.intake import keys
from dartwing_jobs.engine.rules import queue_rules
from dartwing_jobs.engine.submit import submit
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.parameters import load

CANCEL_REQUESTED = "job.cancel_requested"
REPLAYED = "job.replayed"


def cancel(job_name: str, reason: str | None = None) -> str:
	"""Cancels a waiting job, or asks a running one to stop at its next checkpoint; says which."""
	job = job_to_act_on(job_name)
	user = frappe.session.user
	if job.status in states.WAITING:
		columns = {"run_at": None, "unique_key": None, **order.OUT_OF_LINE, **order.NOT_HELD}
		if not transitions.move(job, states.CANCELED, actor=user, message=reason, **columns):
			return cancel(job_name, reason)  # it has just been started or ended: look again
		dependents.parent_ended(job, states.CANCELED)
		return states.CANCELED
	if job.status == states.RUNNING:
		return _request_cancel(job, user, reason)
	return frappe.throw(_("Job {0} has ended as {1}.").format(job_name, job.status), InvalidJobError)


def run_now(job_name: str) -> None:
	"""Lets a delayed job, or one that waits for its next attempt, run at once."""
	job = job_to_act_on(job_name)
	if job.status not in states.WAITING or job.run_at is None:
		frappe.throw(_("Job {0} does not wait for a time.").format(job_name), InvalidJobError)
	row = frappe.qb.DocType("Background Job")
	now = database.utc_now()
	frappe.qb.update(row).set(row.run_at, now).where((row.name == job_name) & (row.run_at > now)).run()
	bell.ring_after_commit(job.job_queue)


def retry(job_name: str):
	"""Submits a dead or canceled job again, as a new one that knows which it is a retry of."""
	job = job_to_act_on(job_name)
	if job.status not in (states.DEAD_LETTER, states.CANCELED):
		frappe.throw(
			_("Job {0} is {1}; only what has failed can be retried.").format(job_name, job.status),
			InvalidJobError,
		)
	with transitions.both_or_neither():
		return submit_again(job, frappe.session.user)


def submit_again(job, owner_user: str, parameters: dict | str | None = None, reason: str | None = None):
	"""A new job like an old one, or with other parameters; the logs of both say so. Returns the new one."""
	given = job.input_parameters if parameters is None else parameters
	new = submit(
		job.job_type,
		given,
		job.organization,
		priority=job.priority,
		timeout_seconds=job.timeout_seconds,
		max_retries=job.max_retries,
		owner_user=owner_user,
		job_queue=_queue_that_is_still_open(job),
		project_id=job.project_id,
		correlation_id=job.correlation_id,
		# who submits the same again is to be answered with what came out of this one
		idempotency_key=job.idempotency_key if keys.is_given(job) else None,
		retry_of=job.name,
		job_group=_group_that_is_still_there(job),
		if_duplicate=keys.REFUSE,
		must_submit=True,
	)
	_tell_of_replay(job, new, reason)
	return new


def _queue_that_is_still_open(job) -> str | None:
	"""Where it waited before; None, and so its type's, when the rules have changed since."""
	queue = burials.origin_of(job)
	return queue if queue_rules.is_open(queue, submission.type_named(job.job_type)) else None


def _group_that_is_still_there(job) -> str | None:
	"""The new job stands in for the old one, at its place."""
	return frappe.db.exists("Job Group", job.job_group) if job.job_group else None


def _tell_of_replay(old, new, reason: str | None) -> None:
	"""Who did it, and what they changed: on the old job's log, and on the first row of the new one's."""
	user, now = frappe.session.user, clock.now()
	changed = differences.between(load(old.input_parameters), load(new.input_parameters))
	told = {"by": user, "reason": reason, "difference": changed}
	first = json.dumps({"retry_of": old.name, **told})
	values = (first, f"Replay of {old.name}", new.name, states.CREATION.event)
	statements.execute(
		"""update `tabJob Execution Log` set details = %s, message = %s
		where background_job = %s and event = %s""",
		values,
	)
	details = {"replayed_as": new.name, **told}
	log.write(old, REPLAYED, old.status, old.status, now=now, actor=user, message=reason, details=details)


def job_to_act_on(job_name: str):
	"""A job that is there for this user; the same words for one that is not, whether it exists or not."""
	job = frappe.db.get_value("Background Job", job_name, "*", as_dict=True)
	if job is None or not tenancy.may_act_on(job, frappe.session.user):
		refuse_missing(job_name)
	return job


def refuse_missing(job_name: str) -> None:
	frappe.throw(_("Job {0} was not found.").format(job_name), frappe.DoesNotExistError)


def _request_cancel(job, user: str, reason: str | None) -> str:
	now = clock.now()
	columns = {"cancel_requested_at": now, "cancel_requested_by": user}
	frappe.db.set_value("Background Job", job.name, columns, update_modified=False)
	log.write(job, CANCEL_REQUESTED, job.status, job.status, now=now, actor=user, message=reason)
	return "Requested"
