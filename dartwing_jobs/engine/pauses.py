"""The gate: stops and starts the engine, a queue, a job type or an organization. Running work finishes."""

import frappe
from frappe import _

from dartwing_jobs import settings
from dartwing_jobs.engine import bell
from dartwing_jobs.engine.facts import Facts
from dartwing_jobs.engine.limits import brakes, holds
from dartwing_jobs.engine.observing import reports
from dartwing_jobs.engine.rules import routes
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.messages import throw

ENGINE, QUEUE, JOB_TYPE, ORGANIZATION = "engine", "queue", "job_type", "organization"
DOCTYPES = {QUEUE: "Job Queue", JOB_TYPE: "Job Type", ORGANIZATION: "Job Organization Policy"}


def pause(what: str, name: str | None = None, reason: str | None = None) -> None:
	"""Stops new starts. It holds from the commit on; what waits is marked with the reason by `mark_held`."""
	_set(what, name, True, reason)


def resume(what: str, name: str | None = None) -> None:
	_set(what, name, False, None)
	ring_after_commit()


def ring_after_commit() -> None:
	"""Something may run again."""
	frappe.db.after_commit.add(_ring_for_all)


def ring_if_it_held(before) -> None:
	"""Rings when what was changed may have held somebody, as it was before."""
	is_disabled = before and before.get("is_enabled") == 0
	if before and (is_disabled or before.paused or before.max_running or before.get("rate_limit")):
		ring_after_commit()


def mark_after_commit(what: str, name: str) -> None:
	"""By a worker of the bench: there may be a hundred thousand jobs to mark."""
	arguments = {"what": what, "name_of_it": name, "queue": "short", "enqueue_after_commit": True}
	frappe.enqueue("dartwing_jobs.engine.pauses.mark_held", **arguments)


@reports.masked
def mark_held(what: str, name_of_it: str) -> None:
	"""Takes what waits out of its line, a batch at a time: workers would do so only when they get there."""
	facts = Facts()
	pause_of = brakes.pause_of_type if what == JOB_TYPE else brakes.pause_of_organization
	pause = pause_of(name_of_it, facts)
	for queue in [queue for queues in routes.by_rq_queue().values() for queue in queues]:
		place = holds.HEAD_OF_LINE
		while pause and place is not None:
			place = holds.hold_paused(queue, pause, place)


def why_it_waits(job) -> str | None:
	"""Why a job that is due does not start: what holds it, its queue's pause, or the whole engine's."""
	if job.held_reason or not job.get("line"):
		return job.held_reason
	if not settings.is_online():
		return _with_reason(_("The engine is offline"), settings.offline_reason())
	queue = frappe.db.get_value("Job Queue", job.job_queue, ["paused", "pause_reason"], as_dict=True)
	if queue and queue.paused:
		return _with_reason(_("Queue {0} is paused").format(job.job_queue), queue.pause_reason)
	pause = brakes.pause_on(job, Facts())  # it may not have been marked yet
	return pause.reason if pause else None


def _set(what: str, name: str | None, paused: bool, reason: str | None) -> None:
	if what == ENGINE:
		row = frappe.get_doc(settings.DOCTYPE)
		row.online, row.offline_reason = int(not paused), reason
		row.save()
		return
	row = _row(what, name)
	row.paused, row.pause_reason = int(paused), reason
	row.save() if row.name and not row.is_new() else row.insert()


def _row(what: str, name: str | None):
	"""The document that keeps the pause; an organization gets one when it is paused for the first time."""
	doctype = DOCTYPES.get(what)
	if not doctype or not name:
		known = ", ".join([ENGINE, *DOCTYPES])
		throw(_("Say what to pause: one of {0}, and its name.").format(known), InvalidJobError)
	if what != ORGANIZATION:
		return frappe.get_doc(doctype, name)
	# an organization may have another name than when its policy was made
	policy = frappe.db.get_value(doctype, {"organization": name}, "name")
	return frappe.get_doc(doctype, policy) if policy else frappe.new_doc(doctype, organization=name)


def _ring_for_all() -> None:
	for rq_queue in routes.by_rq_queue():
		bell.ring(rq_queue)


def _with_reason(text: str, reason: str | None) -> str:
	return f"{text}: {reason}" if reason else text
