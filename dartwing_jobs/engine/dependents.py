"""Children: released when their parent completes, settled when it ends otherwise. Nothing polls."""

from collections.abc import Callable

import frappe

from dartwing_jobs.engine import bell, database, statements, states, transitions
from dartwing_jobs.engine.promote import COLUMNS

RUN_ANYWAY = "Run Anyway"
ENDED_BADLY = (states.DEAD_LETTER, states.CANCELED)
WAITING = "where depends_on = %s and status = 'Pending' and run_at is null"
LEFT_BEHIND = """select child.depends_on from `tabBackground Job` child
	join `tabBackground Job` parent on parent.name = child.depends_on
	where child.status = 'Pending' and child.run_at is null and child.depends_on is not null
	and parent.status in ('Completed', 'Dead Letter', 'Canceled') limit 100"""


def release(parent: str) -> None:
	"""The parent has completed: its children may run."""
	_for_waiting_children(parent, lambda children: [_make_due(child) for child in children])


def settle(parent: str, parent_status: str) -> None:
	"""The parent has ended otherwise: each child follows its own policy, and so do its children."""
	reason = f"{parent} ended as {parent_status}"
	_for_waiting_children(parent, lambda children: [_settle(child, reason) for child in children])


def _settle(child, reason: str) -> None:
	if child.on_parent_failure == RUN_ANYWAY:
		_make_due(child)
	elif transitions.apply(child, states.CANCELED, message=reason, unique_key=None):
		settle(child.name, states.CANCELED)


@database.own_transaction
def follow(parent: str) -> None:
	"""For a child that may have been submitted while its parent was ending, each unseen by the other."""
	(row,) = statements.fetch("select status from `tabBackground Job` where name = %s", (parent,)) or [None]
	if row is None:
		return
	if row.status == states.COMPLETED:
		release(parent)
	elif row.status in ENDED_BADLY:
		settle(parent, row.status)


def follow_left_behind() -> None:
	"""Repairs what a crash left between a child's commit and its own look at the parent."""
	for parent in {row.depends_on for row in statements.fetch(LEFT_BEHIND)}:
		follow(parent)


def _for_waiting_children(parent: str, then: Callable[[list], object]) -> None:
	"""Most jobs have no children, so that is asked first, by the smallest question."""
	statements.value_later(
		f"exists (select 1 from `tabBackground Job` {WAITING})",
		(parent,),
		lambda is_any: is_any and then(_waiting_children(parent)),
	)


def _waiting_children(parent: str) -> list:
	columns = statements.packed((*COLUMNS, "on_parent_failure"))
	rows = statements.fetch(
		f"select {columns} as packed, scheduled_for, creation from `tabBackground Job` {WAITING}", (parent,)
	)
	# in the order of their submits; the database would sort even where there is nothing to sort
	rows.sort(key=lambda row: row.creation)
	return [frappe._dict(statements.unpack(row.packed), scheduled_for=row.scheduled_for) for row in rows]


def _make_due(child) -> None:
	due = database.due_moment(child.scheduled_for)
	statements.update("Background Job", child.name, {"run_at": due})
	bell.ring_after_commit(child.job_queue)
