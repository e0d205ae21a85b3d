"""Children: released when their parent completes, settled when it ends otherwise. Nothing polls.

The transaction that ends a parent sees to its children, to so many at most. Who stands further behind follows
after the commit, in short transactions; should the process die in between, a sweep goes on.
"""

from itertools import groupby

import frappe

from dartwing_jobs import clock
from dartwing_jobs.engine import bell, database, memberships, statements, states, successors, transitions
from dartwing_jobs.engine.promote import COLUMNS

RUN_ANYWAY = "Run Anyway"
REPLACEABLE = frozenset({states.FAILED, states.TIMED_OUT})
WAITING = "where depends_on = %s and status = 'Pending' and run_at is null"
# parents that have ended, or that a successor stands for
LEFT_BEHIND = """select child.name, child.depends_on, parent.status as parent_status
	from `tabBackground Job` child join `tabBackground Job` parent on parent.name = child.depends_on
	where child.status = 'Pending' and child.run_at is null and child.depends_on {which}
	and (parent.status in ('Completed', 'Dead Letter', 'Canceled')
	or (parent.status in ('Failed', 'Timed Out') and exists (
	select 1 from `tabBackground Job` again where again.retry_of = parent.name))) limit {most}"""
BEHIND = """select name from `tabBackground Job` force index (idx_job_group)
	where job_group = %s and position > %s and status = 'Pending' and run_at is null
	and depends_on is not null and on_parent_failure = 'Cancel' order by position limit {most}"""
BATCH = 200
REPAIRED_AT_ONCE = 100


def parent_ended(parent: str) -> None:
	"""In the transaction that ends it: its children may run, or follow their own policy. Most jobs have none,
	so that is asked first, by the smallest question."""
	statements.value_later(
		f"exists (select 1 from `tabBackground Job` {WAITING})",
		(parent,),
		lambda is_any: is_any and _follow_here(parent),
	)


def follow(parent: str) -> None:
	"""For a child that may have been submitted while its parent was ending, each unseen by the other."""
	follow_all([parent])


def follow_all(parents: list[str]) -> None:
	"""Sees to all who wait behind these jobs, however many and however deep, in short transactions."""
	while parents:
		parents = _follow_some(parents)


def follow_left_behind() -> None:
	"""Repairs what a crash left: between a child's commit and its look at the parent, or half-way down."""
	found = statements.fetch(LEFT_BEHIND.format(which="is not null", most=REPAIRED_AT_ONCE))
	follow_all(sorted({row.depends_on for row in found}))


def _follow_here(parent: str) -> None:
	"""The children, and no further."""
	children = _waiting_children([parent])
	parents = _see_to(children) + ([parent] if len(children) == BATCH else [])
	if parents:
		frappe.db.after_commit.add(lambda: follow_all(parents))


@database.own_transaction
def _follow_some(parents: list[str]) -> list[str]:
	"""About a batch of those who wait behind these jobs; returns behind whom somebody may still wait."""
	seen_to = 0
	while parents and seen_to < BATCH:
		some, parents = parents[:BATCH], parents[BATCH:]
		children = _waiting_children(some)
		behind = _members_behind(children)
		parents = [*(some if len(children) == BATCH else ()), *parents, *_see_to([*children, *behind])]
		seen_to += len(children) + len(behind)
	return parents


def _see_to(children: list) -> list[str]:
	"""Lets each run, cancels it, or has it wait for a successor; returns whose children are next."""
	replaced = sorted({child.depends_on for child in children if child.parent_status in REPLACEABLE})
	ended = [child for child in children if child.parent_status not in REPLACEABLE]
	canceled = [child for child in ended if _must_not_run(child)]
	_cancel(canceled)
	_make_due([child for child in ended if not _must_not_run(child)])
	return [*(child.name for child in canceled), *map(_hand_over, replaced)]


def _must_not_run(child) -> bool:
	ended_badly = child.parent_status in (states.DEAD_LETTER, states.CANCELED)
	return ended_badly and child.on_parent_failure != RUN_ANYWAY


def _waiting_children(parents: list[str]) -> list:
	"""Those who wait for jobs that have ended, locked, in the order of their submits; a batch at most."""
	which = f"in ({', '.join(['%s'] * len(parents))})"
	return _locked(statements.fetch(LEFT_BEHIND.format(which=which, most=BATCH), parents))


def _members_behind(children: list) -> list:
	"""Who stands behind members of sequential groups that must not run: all at once, not one by one."""
	behind = []
	for child in children:
		if child.job_group and _must_not_run(child) and _is_sequential(child.job_group):
			found = statements.fetch(BEHIND.format(most=BATCH), (child.job_group, child.position))
			behind += _locked([frappe._dict(row, parent_status=states.CANCELED) for row in found])
	return behind


def _is_sequential(group: str) -> bool:
	rows = statements.fetch("select mode from `tabJob Group` where name = %s", (group,))
	return bool(rows) and rows[0].mode == memberships.SEQUENTIAL


def _locked(found: list) -> list:
	"""Those of them that still wait. By name, in one order: two who lock them wait once."""
	if not found:
		return []
	status_of_parent = {row.name: row.parent_status for row in found}
	columns = statements.packed((*COLUMNS, "on_parent_failure", "depends_on", "job_group", "position"))
	rows = statements.fetch(
		f"""select {columns} as packed, scheduled_for, creation from `tabBackground Job`
		where name in ({", ".join(["%s"] * len(found))}) and status = 'Pending' and run_at is null
		order by name for update""",
		list(status_of_parent),
	)
	rows.sort(key=lambda row: row.creation)
	children = [frappe._dict(statements.unpack(row.packed), scheduled_for=row.scheduled_for) for row in rows]
	return [frappe._dict(child, parent_status=status_of_parent[child.name]) for child in children]


def _cancel(children: list) -> None:
	if children:
		messages = [f"{child.depends_on} ended as {child.parent_status}" for child in children]
		details = {"messages": messages, "now": clock.now(), "unique_key": None}
		transitions.apply_to_all(children, states.CANCELED, **details)


def _make_due(children: list) -> None:
	for scheduled_for, some in groupby(children, key=lambda child: child.scheduled_for):
		alike = list(some)
		names = ", ".join(["%s"] * len(alike))
		statements.execute(
			f"update `tabBackground Job` set run_at = %s where name in ({names})",
			[database.due_moment(scheduled_for), *(child.name for child in alike)],
		)
	for job_queue in {child.job_queue for child in children}:
		bell.ring_after_commit(job_queue)


def _hand_over(failed: str) -> str:
	"""Who waits for a job that has failed waits for the one that stands for it now."""
	successor = successors.latest(failed)
	statements.execute(f"update `tabBackground Job` set depends_on = %s {WAITING}", (successor, failed))
	return successor
