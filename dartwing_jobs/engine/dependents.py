"""Children: released when their parent completes, settled when it ends otherwise. Nothing polls."""

import frappe

from dartwing_jobs.engine import bell, database, states, transitions
from dartwing_jobs.engine.promote import COLUMNS

RUN_ANYWAY = "Run Anyway"


def release(parent: str) -> None:
	"""The parent has completed: its children may run."""
	for child in _waiting_children(parent):
		_make_due(child)


def settle(parent: str, parent_status: str) -> None:
	"""The parent has ended otherwise: each child follows its own policy, and so do its children."""
	for child in _waiting_children(parent):
		if child.on_parent_failure == RUN_ANYWAY:
			_make_due(child)
		elif transitions.move(
			child, states.CANCELED, message=f"{parent} ended as {parent_status}", unique_key=None
		):
			settle(child.name, states.CANCELED)


def _waiting_children(parent: str) -> list:
	job = frappe.qb.DocType("Background Job")
	return (
		frappe.qb.from_(job)
		.select(*(job[column] for column in (*COLUMNS, "scheduled_for", "on_parent_failure")))
		.where((job.depends_on == parent) & (job.status == states.PENDING) & job.run_at.isnull())
		.orderby(job.creation, job.name)
		.run(as_dict=True)
	)


def _make_due(child) -> None:
	due = database.due_moment(child.scheduled_for)
	frappe.db.set_value("Background Job", child.name, "run_at", due, update_modified=False)
	bell.ring_after_commit(child.job_queue)
