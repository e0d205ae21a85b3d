"""The only writer of a job's status: a guarded update and its log row, both or neither."""

from contextlib import contextmanager
from datetime import datetime

import frappe

from dartwing_jobs import clock
from dartwing_jobs.engine import log, states

# the moment that entering a status stamps on the job
STAMPS = {
	states.RUNNING: "started_at",
	states.COMPLETED: "completed_at",
	states.DEAD_LETTER: "completed_at",
	states.CANCELED: "canceled_at",
}


def move(
	job,
	to_status: str,
	*,
	actor: str | None = None,
	message: str | None = None,
	now: datetime | None = None,
	lease: str | None = None,
	**changes,
) -> bool:
	"""Moves a job and writes its story; False, and nothing written, when it is no longer as `job` says.

	`job` is a document or a row of its fields; `changes` are other columns, set in the same statement. With a
	`lease`, the job must also still be held by it: a worker that lost its job changes nothing.
	"""
	from_status = job.status
	row = states.transition(from_status, to_status)
	now = now or clock.now()
	columns = _columns(to_status, now, actor) | changes
	with both_or_neither():
		if not _update_if_still(job.name, from_status, lease, columns):
			return False
		log.write(
			job, row.event, from_status, to_status, actor=actor, message=message, now=now, changes=columns
		)
	job.update(columns)
	return True


@contextmanager
def both_or_neither():
	"""Undoes every statement inside when one of them fails, and nothing before them."""
	savepoint = "dartwing_move"
	frappe.db.savepoint(savepoint)
	try:
		yield
	except frappe.QueryDeadlockError:
		raise  # the server has already rolled the whole transaction back: there is no savepoint left
	except Exception:
		frappe.db.rollback(save_point=savepoint)
		raise
	frappe.db.release_savepoint(savepoint)


def _columns(to_status: str, now: datetime, actor: str | None) -> dict:
	columns = {"status": to_status, "modified": now, "modified_by": actor or frappe.session.user}
	if to_status in STAMPS:
		columns[STAMPS[to_status]] = now
	if to_status == states.CANCELED:
		columns["canceled_by"] = actor
	return columns


def _update_if_still(job_name: str, status: str, lease: str | None, columns: dict) -> bool:
	job = frappe.qb.DocType("Background Job")
	update = frappe.qb.update(job).where((job.name == job_name) & (job.status == status))
	if lease:
		update = update.where(job.lease_token == lease)
	for column, value in columns.items():
		update = update.set(job[column], value)
	update.run()
	# the new status differs from the guarded one, so a match is a change on either database
	return frappe.db._cursor.rowcount == 1
