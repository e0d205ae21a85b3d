"""Children: released when their parent completes, settled when it ends otherwise. Nothing polls.

The transaction that ends a parent sees to its children, to so many at most. Who stands further behind follows
after the commit, in short transactions; should the process die in between, a sweep goes on.
"""

from itertools import groupby

import frappe

from dartwing_jobs import clock
from dartwing_jobs.engine import bell, database, statements, states, successors, transitions
from dartwing_jobs.engine.groups import memberships
from dartwing_jobs.engine.order import Places
from dartwing_jobs.engine.promote import COLUMNS

RUN_ANYWAY = "Run Anyway"
WAITING = "status = 'Pending' and run_at is null"
# nobody comes back to these: they have ended, or a successor stands for them
NO_LONGER_ACTIVE = "('Completed', 'Dead Letter', 'Canceled', 'Failed', 'Timed Out')"
LEFT_BEHIND = f"""select child.depends_on from `tabBackground Job` child
	join `tabBackground Job` parent on parent.name = child.depends_on
	where child.status = 'Pending' and child.run_at is null and child.depends_on is not null
	and parent.status in {NO_LONGER_ACTIVE} limit 100"""
BATCH = 200
# how long the end of a parent may take, from its look at its children to its commit
ENDING_SECONDS = 1
# what a child is asked for: how a move goes on, its policy, its group
OF_CHILD = (*COLUMNS, "on_parent_failure", "depends_on", "job_group", "position")
BEHIND_MEMBER = f"""force index (idx_job_group) where job_group = %s and position > %s and {WAITING}
	and depends_on is not null and on_parent_failure = 'Cancel' order by position limit {BATCH}"""


def parent_ended(parent, parent_status: str) -> None:
	"""In the transaction that ends a job: its children may run, or follow their own policy.

	Most jobs have none, so that is asked first, by the smallest question. `parent.released` says afterwards
	whether somebody stands in line because of it.
	"""
	statements.if_ever(
		f"exists (select 1 from `tabBackground Job` where depends_on = %s and {WAITING})",
		(parent.name,),
		lambda: _follow_here(parent, parent_status),
	)


def follow(parent: str) -> None:
	"""For a child that may have been submitted while its parent was ending, each unseen by the other.

	Whoever is just ending it has its row until the commit, a moment later: then it is seen to have ended. Who
	takes longer is left to the next sweep.
	"""
	_wait_while_it_ends(parent)
	follow_all([parent])


def follow_all(parents: list[str]) -> None:
	"""Sees to all who wait behind these jobs, however many and however deep, in short transactions."""
	while parents:
		parents = _follow_some(parents)


def follow_left_behind() -> None:
	"""Repairs what a crash left: between a child's commit and its look at the parent, or half-way down."""
	follow_all(sorted({row.depends_on for row in statements.fetch(LEFT_BEHIND)}))


def _follow_here(parent, parent_status: str) -> None:
	"""The children, and no further: whoever ends a job must not wait for the end of a long line."""
	children = _children_of({parent.name: parent_status})
	parents = [*_see_to(children), *([parent.name] if len(children) == BATCH else ())]
	parent.released = any(child.status == states.QUEUED for child in children)
	if parents:
		frappe.db.after_commit.add(lambda: follow_all(parents))


def _wait_while_it_ends(parent: str) -> None:
	earlier = database.waiting_for_commit()
	try:
		database.lock_row("Background Job", parent, ENDING_SECONDS)
	except Exception as error:
		if not database.is_conflict(error):
			raise
	finally:
		database.rollback_all_but(earlier)


@database.own_transaction
def _follow_some(parents: list[str]) -> list[str]:
	"""Sees to about a batch of those who wait behind these jobs; returns behind whom some may still wait."""
	seen_to = 0
	while parents and seen_to < BATCH:
		some, parents = parents[:BATCH], parents[BATCH:]
		ended, successors_of_failed = _how_they_ended(some)
		children = _children_of(ended)
		behind = _members_behind(children)
		following = _see_to([*children, *behind])
		again = some if len(children) == BATCH else []
		parents = [*again, *parents, *successors_of_failed, *following]
		seen_to += len(children) + len(behind)
	return parents


def _how_they_ended(parents: list[str]) -> tuple[dict[str, str], list[str]]:
	"""By name, those that have ended; and who stands for those that were tried again as new jobs."""
	rows = statements.fetch(
		f"""select name, status from `tabBackground Job`
		where name in ({_places(parents)}) and status in {NO_LONGER_ACTIVE}""",
		parents,
	)
	ended = {row.name: row.status for row in rows if row.status in states.TERMINAL}
	handed_over = [_hand_over(row.name) for row in rows if row.name not in ended]
	return ended, [successor for successor in handed_over if successor]


def _hand_over(failed: str) -> str | None:
	"""Who waits for a job that has failed waits for the one that stands for it now; None if none does."""
	successor = successors.latest(failed)
	if successor == failed:
		return None
	statements.execute(
		f"update `tabBackground Job` set depends_on = %s where depends_on = %s and {WAITING}",
		(successor, failed),
	)
	return successor


def _children_of(ended: dict[str, str]) -> list:
	"""Those who wait for these, in the order of their submits; a batch at most."""
	if not ended:
		return []
	which = f"where depends_on in ({_places(ended)}) and {WAITING} limit {BATCH}"
	return [frappe._dict(child, parent_status=ended[child.depends_on]) for child in _read(which, list(ended))]


def _members_behind(children: list) -> list:
	"""Who stands behind members of sequential groups that must not run: all at once, not one by one."""
	behind = []
	for child in children:
		if child.job_group and _must_not_run(child) and _is_sequential(child.job_group):
			found = _read(BEHIND_MEMBER, (child.job_group, child.position))
			behind += [frappe._dict(one, parent_status=states.CANCELED) for one in found]
	seen = {child.name for child in children}
	return [one for one in {one.name: one for one in behind}.values() if one.name not in seen]


def _read(which: str, values) -> list:
	columns = f"{statements.packed(OF_CHILD)} as packed, scheduled_for, creation"
	rows = statements.fetch(f"select {columns} from `tabBackground Job` {which}", values)
	# the database would sort even where there is nothing to sort
	rows.sort(key=lambda row: row.creation)
	return [frappe._dict(statements.unpack(row.packed), scheduled_for=row.scheduled_for) for row in rows]


def _is_sequential(group: str) -> bool:
	rows = statements.fetch("select mode from `tabJob Group` where name = %s", (group,))
	return bool(rows) and rows[0].mode == memberships.SEQUENTIAL


def _must_not_run(child) -> bool:
	return child.parent_status != states.COMPLETED and child.on_parent_failure != RUN_ANYWAY


def _see_to(children: list) -> list[str]:
	"""Lets each run, or cancels it; returns the names of those that were canceled."""
	_make_due([child for child in children if not (_must_not_run(child) or _moves_up(child))])
	canceled = _still_waiting([child for child in children if _must_not_run(child)])
	if canceled:
		messages = [f"{child.depends_on} ended as {child.parent_status}" for child in canceled]
		told = {"messages": messages, "now": clock.now()}
		transitions.apply_to_all(canceled, states.CANCELED, unique_key=None, **told)
	return [child.name for child in canceled]


def _moves_up(child) -> bool:
	"""Behind a member that was canceled while it waited: waits for whoever that one waited for."""
	if child.parent_status != states.CANCELED or not child.job_group:
		return False
	rows = statements.fetch(
		"""select one_before.name from `tabBackground Job` canceled
		join `tabBackground Job` one_before on one_before.name = canceled.depends_on
		where canceled.name = %s and one_before.status not in ('Completed', 'Dead Letter', 'Canceled')""",
		(child.depends_on,),
	)
	if not rows or not _is_sequential(child.job_group):
		return False
	before = rows[0].name
	statements.update("Background Job", child.name, {"depends_on": before}, {"status": states.PENDING})
	frappe.db.after_commit.add(lambda: follow(before))
	return True


def _still_waiting(children: list) -> list:
	"""Locked. By name: to lock by parent would be to wait for those who are submitting more children."""
	if not children:
		return []
	names = [child.name for child in children]
	locked = statements.fetch(
		f"select name from `tabBackground Job` where name in ({_places(names)}) and {WAITING} for update",
		names,
	)
	found = {row.name for row in locked}
	return [child for child in children if child.name in found]


def _make_due(children: list) -> None:
	if len(children) == 1 and not children[0].scheduled_for:
		_put_in_line(children[0])
		return
	for scheduled_for, some in groupby(children, key=lambda child: child.scheduled_for):
		names = [child.name for child in some]
		statements.execute(
			f"update `tabBackground Job` set run_at = %s where name in ({_places(names)}) and {WAITING}",
			[database.due_moment(scheduled_for), *names],
		)
	for job_queue in {child.job_queue for child in children}:
		bell.ring_after_commit(job_queue)


def _put_in_line(child) -> None:
	"""At once: in a long line of jobs each would otherwise wait for a worker to look around."""
	place = Places(child.job_queue).next(child.organization, child.priority)
	transitions.apply(child, states.QUEUED, run_at=None, **place)
	bell.ring_after_commit(child.job_queue)


def _places(values) -> str:
	return ", ".join(["%s"] * len(values))
