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
	outcomes,
	statements,
	states,
	submission,
	successors,
	transitions,
)
from dartwing_jobs.engine.intake import bounds, foreign, keys
from dartwing_jobs.engine.rules import queue_rules
from dartwing_jobs.engine.submit import submit
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.messages import throw
from dartwing_jobs.parameters import load

CANCEL_REQUESTED = "job.cancel_requested"
REPLAYED = "job.replayed"


def cancel(job_name: str, reason: str | None = None) -> str:
	"""Cancels a waiting job, or asks a running one to stop at its next checkpoint; says which.

	Of a chain of retries the last job is meant. Its row is locked: it may be about to start or to end.
	"""
	job_name = job_to_act_on(job_name).name
	with foreign.conflicts_named(_("The cancel met another transaction. Roll back and try again.")):
		job = successors.latest_locked(job_name, foreign.WAIT_SECONDS)
		if job is None:
			refuse_missing(job_name)
		if job.status in states.WAITING:
			return _cancel_waiting(job, frappe.session.user, reason)
		if job.status == states.RUNNING:
			return _request_cancel(job, frappe.session.user, reason)
	return throw(_("Job {0} has ended as {1}.").format(job.name, job.status), InvalidJobError)


def run_now(job_name: str) -> None:
	"""Lets a delayed job, or one that waits for its next attempt, run at once."""
	job = latest_to_act_on(job_name)
	if job.status not in states.WAITING or job.run_at is None:
		throw(_("Job {0} does not wait for a time.").format(job.name), InvalidJobError)
	row = frappe.qb.DocType("Background Job")
	now = database.utc_now()
	frappe.qb.update(row).set(row.run_at, now).where((row.name == job.name) & (row.run_at > now)).run()
	bell.ring_after_commit(job.job_queue)


def retry(job_name: str, again: bool = False):
	"""Submits a dead or canceled job again, as a new one that knows which it is a retry of.

	What was discarded, retried or replayed already is not retried, unless `again` says so.
	"""
	job = latest_to_act_on(job_name)
	if job.status not in (states.DEAD_LETTER, states.CANCELED):
		throw(
			_("Job {0} is {1}; only what has failed can be retried.").format(job.name, job.status),
			InvalidJobError,
		)
	if not again:
		check_nothing_was_decided(job)
	with transitions.both_or_neither():
		decide(job)
		return submit_again(job, frappe.session.user)


def check_nothing_was_decided(job) -> None:
	"""Raises when a job that has ended badly was discarded, or submitted again."""
	if job.discarded_at:
		refuse_discarded(job)
	if successor := frappe.db.get_value("Background Job", {"retry_of": job.name}, "name"):
		message = _("Job {0} was replayed already, as {1}.")
		throw(message.format(job.name, successor), InvalidJobError)


def refuse_discarded(job) -> None:
	message = _("Job {0} was discarded by {1}: {2}")
	told = (job.name, job.discarded_by, job.discard_reason)
	throw(message.format(*told), InvalidJobError)


def decide(job, **columns) -> None:
	"""Of two decisions about the same job at once, the second one has to look again."""
	columns |= {"modified": clock.now(), "modified_by": frappe.session.user}
	if not statements.update("Background Job", job.name, columns, {"modified": job.modified}):
		message = _("Somebody else has just decided about job {0}: look again.")
		throw(message.format(job.name), InvalidJobError)


def submit_again(job, owner_user: str, parameters: dict | str | None = None, reason: str | None = None):
	"""A new job like an old one, or with other parameters; the logs of both say so. Returns the new one."""
	given = job.input_parameters if parameters is None else parameters
	with bounds.lifted():
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


def latest_to_act_on(job_name: str):
	"""The job that now stands for this one: itself, or the last of its retries as new jobs."""
	job = job_to_act_on(job_name)
	latest = successors.latest(job.name) if job.status in states.REPLACEABLE else job.name
	return job if latest == job.name else job_to_act_on(latest)


def refuse_missing(job_name: str) -> None:
	throw(_("Job {0} was not found.").format(job_name), frappe.DoesNotExistError)


def _cancel_waiting(job, user: str, reason: str | None) -> str:
	columns = {"run_at": None, "unique_key": None, **outcomes.RELEASED, **order.OUT_OF_LINE, **order.NOT_HELD}
	transitions.move(job, states.CANCELED, actor=user, message=reason, **columns)
	dependents.parent_ended(job, states.CANCELED)
	return states.CANCELED


def _request_cancel(job, user: str, reason: str | None) -> str:
	now = clock.now()
	columns = {"cancel_requested_at": now, "cancel_requested_by": user}
	frappe.db.set_value("Background Job", job.name, columns, update_modified=False)
	log.write(job, CANCEL_REQUESTED, job.status, job.status, now=now, actor=user, message=reason)
	return "Requested"
