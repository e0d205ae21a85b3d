"""Children: released when their parent completes, settled when it ends otherwise. Nothing polls.

The transaction that ends a parent sees to its children, to so many at most. Who stands further behind follows
after the commit, in short transactions; should the process die in between, a sweep goes on.
"""

from itertools import groupby

import frappe

from dartwing_jobs import clock
from dartwing_jobs.engine import (
	afterwards,
	bell,
	database,
	statements,
	states,
	successors,
	transitions,
	troubles,
)
from dartwing_jobs.engine.groups import memberships
from dartwing_jobs.engine.observing import reports
from dartwing_jobs.engine.order import Places
from dartwing_jobs.engine.promote import COLUMNS
from dartwing_jobs.engine.rules import job_types

RUN_ANYWAY = "Run Anyway"
# for their parent: one that is due, or held, has none to wait for any more
WAITING = "status = 'Pending' and run_at is null and held_by is null"
# what becomes of a parent that is no longer there
DELETED = "Deleted"
# seeing to the children of a parent that has ended
FOLLOW = "follow"
# a sweep looks at so many children, and the next one at those behind them
PAGE, PAGES = 1000, 5
# children wait for no retry: in this index they stand in the order of their parents
CHILDREN_BEHIND = """select depends_on, run_at, held_by from `tabBackground Job` force index (idx_next_retry)
	where next_retry_at is null and status = 'Pending' and depends_on > %s
	order by {order} limit {most}"""
# PostgreSQL takes a column that is null for one of many values, MariaDB sorts when such a column is named
ORDER_OF_PARENTS = {"mariadb": "depends_on", "postgres": "next_retry_at, status, depends_on"}
UNFINISHED = (
	"select name from `tabBackground Job` where name in ({}) and status in ('Pending', 'Queued', 'Running')"
)
# where the last sweep ended; without it the next one begins at the front
LOOKED_AT = "dartwing_jobs_children_looked_at"
BATCH = 200
# the end of a job waits for no more than so many batches of those behind it
ROUNDS_AT_ONCE = 50
# how long the end of a parent may take, from its look at its children to its commit
ENDING_SECONDS = 1
# what a child is asked for: how a move goes on, its policy, its group
OF_CHILD = (*COLUMNS, "on_parent_failure", "depends_on", "job_group", "position")
BEHIND_MEMBER = f"""force index (idx_job_group) where job_group = %s and position > %s and {WAITING}
	and depends_on is not null and on_parent_failure = 'Cancel' order by position limit {BATCH}"""


def parent_ended(parent, parent_status: str) -> None:
	"""In the transaction that ends a job: its children may run, or follow their own policy.

	Most jobs have no children, so that is asked first, by the smallest question.
	"""
	if waited_for([parent.name]):
		see_to_children(parent.name, parent_status)


def waited_for(names: list[str]) -> set[str]:
	"""Those of these jobs that others wait for."""
	is_one = f"exists (select 1 from `tabBackground Job` where depends_on = %s and {WAITING})"
	columns = ", ".join(f"{is_one} as child{number}" for number in range(len(names)))
	(row,) = statements.fetch(f"select {columns}", names)
	return {name for name, is_waited_for in zip(names, row.values(), strict=True) if is_waited_for}


def follow(parents: list[str]) -> None:
	"""For children that may have been submitted while their parents were ending, each unseen by the other.

	The transaction that is just ending a parent has its row until the commit, a moment later: then it is seen
	to have ended. After one that takes longer, the others are not waited for. The next sweep follows them.
	"""
	parents = list(dict.fromkeys(parents))
	all(map(_wait_while_it_ends, parents))
	follow_all(parents)


def follow_all(parents: list[str]) -> None:
	"""Sees to those who wait behind these jobs, however deep, in so many short transactions at most.

	The sweep finds those who are left: their parents have ended.
	"""
	for _round in range(ROUNDS_AT_ONCE):
		if not parents:
			break
		parents = _follow_some(parents)


def follow_left_behind() -> None:
	"""Repairs what a crash left: between a child's commit and its look at the parent, or half-way down."""
	troubles.each(FOLLOW, left_behind(), lambda parent: follow_all([parent]))


def left_behind() -> list[str]:
	"""Parents that have ended or are gone, and whose children wait. Looks at some children each time."""
	begin = after = frappe.cache.get_value(LOOKED_AT) or ""
	found: set[str] = set()
	for _page in range(PAGES):
		parents, after = parents_behind(after)
		found |= parents - _unfinished(parents)
		if not after and not begin:
			break
		begin = begin if after else ""  # at the end: from the front on
	if after != begin:
		frappe.cache.set_value(LOOKED_AT, after)
	return sorted(found)


def parents_behind(after: str) -> tuple[set[str], str]:
	"""A page of those that children wait for, and behind whom the next one begins; empty for the last."""
	order = ORDER_OF_PARENTS[frappe.db.db_type]
	children = statements.fetch(CHILDREN_BEHIND.format(order=order, most=PAGE), (after,))
	waited_for = {child.depends_on for child in children if not (child.run_at or child.held_by)}
	return waited_for, children[-1].depends_on if len(children) == PAGE else ""


def _unfinished(parents: set[str]) -> set[str]:
	if not parents:
		return set()
	names = sorted(parents)
	return {row.name for row in statements.fetch(UNFINISHED.format(_places(names)), names)}


def see_to_children(parent: str, parent_status: str) -> None:
	"""If one of them cannot be changed, its parent ends all the same: the sweep comes to them."""
	try:
		with transitions.both_or_neither():
			_follow_here(parent, parent_status)
	except Exception as error:
		if database.is_conflict(error) or database.has_lost_transaction(error):
			raise
		reports.to_log(f"The children of {parent} are left to the sweep", error)


def _follow_here(parent: str, parent_status: str) -> None:
	"""The children, and no further: whoever ends a job must not wait for the end of a long line."""
	children = _children_of({parent: parent_status})
	parents = [*_see_to(children), *([parent] if len(children) == BATCH else ())]
	if parents:
		afterwards.gather(follow_all, *parents)


def _wait_while_it_ends(parent: str) -> bool:
	"""Whether it was free in time."""
	try:
		database.lock_row("Background Job", parent, ENDING_SECONDS)
		return True
	except Exception as error:
		if not database.is_conflict(error):
			raise
		return False
	finally:
		database.rollback_all_but(database.waiting_for_commit())


@database.own_transaction
def _follow_some(parents: list[str]) -> list[str]:
	"""Sees to about a batch of those who wait behind these jobs; returns behind whom some may still wait."""
	seen_to = 0
	while parents and seen_to < BATCH:
		some, parents = parents[:BATCH], parents[BATCH:]
		ended, meant_by_others = _how_they_ended(some)
		children = _children_of(ended)
		behind = _members_behind(children)
		following = _see_to([*children, *behind])
		again = some if len(children) == BATCH else []
		parents = [*again, *parents, *meant_by_others, *following]
		seen_to += len(children) + len(behind)
	return parents


def _how_they_ended(parents: list[str]) -> tuple[dict[str, str], list[str]]:
	"""By name, those that have ended or are gone; and who is meant by the names of others.

	A failed job without another that stands for it had a successor that was deleted: it has ended as it is.
	"""
	rows = statements.fetch(
		f"select name, status from `tabBackground Job` where name in ({_places(parents)})", parents
	)
	found = {row.name: row.status for row in rows}
	meant = {name: _meant_by(name, found) for name in parents}
	handed_over = {name: other for name, other in meant.items() if other not in (name, None)}
	for name, other in handed_over.items():
		_hand_over(name, other)
	ended = {name: found.get(name, DELETED) for name in parents if name not in handed_over}
	is_over = {DELETED, *states.TERMINAL, *states.REPLACEABLE}
	return {name: how for name, how in ended.items() if how in is_over}, list(handed_over.values())


def _meant_by(parent: str, found: dict[str, str]) -> str | None:
	"""Who is waited for: who stands for a job that has failed, or the one that was named in other letters."""
	if parent not in found:
		return database.stored_name("Background Job", parent)
	return successors.latest(parent) if found[parent] in states.REPLACEABLE else parent


def _hand_over(named: str, meant: str) -> None:
	statements.execute(
		f"update `tabBackground Job` set depends_on = %s where depends_on = %s and {WAITING}",
		(meant, named),
	)


def _children_of(ended: dict[str, str]) -> list:
	"""Those who wait for these, in the order of their submits; a batch at most."""
	if not ended:
		return []
	which = f"where depends_on in ({_places(ended)}) and {WAITING} limit {BATCH}"
	return [frappe._dict(child, parent_status=_end_of(child, ended)) for child in _read(which, list(ended))]


def _end_of(child, ended: dict[str, str]) -> str:
	"""MariaDB finds those, too, who name their parent in other letters."""
	if child.depends_on in ended:
		return ended[child.depends_on]
	return ended.get(database.stored_name("Background Job", child.depends_on), DELETED)


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
	columns = f"{statements.packed(OF_CHILD)} as packed, scheduled_utc, creation"
	rows = statements.fetch(f"select {columns} from `tabBackground Job` {which}", values)
	# the database would sort even where there is nothing to sort
	rows.sort(key=lambda row: row.creation)
	return [frappe._dict(statements.unpack(row.packed), scheduled_utc=row.scheduled_utc) for row in rows]


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
		messages = [_what_happened(child) for child in canceled]
		told = {"messages": messages, "now": clock.now()}
		transitions.apply_to_all(canceled, states.CANCELED, unique_key=None, **told)
	return [child.name for child in canceled]


def _what_happened(child) -> str:
	is_gone = child.parent_status == DELETED
	return (
		f"{child.depends_on} was deleted" if is_gone else f"{child.depends_on} ended as {child.parent_status}"
	)


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
	afterwards.gather(follow, before)
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
	if len(children) == 1 and not children[0].scheduled_utc and _put_in_line(children[0]):
		return
	for scheduled_utc, some in groupby(children, key=lambda child: child.scheduled_utc):
		names = [child.name for child in some]
		statements.execute(
			f"update `tabBackground Job` set run_at = %s where name in ({_places(names)}) and {WAITING}",
			[scheduled_utc or database.utc_now(), *names],
		)
	for job_queue in {child.job_queue for child in children}:
		bell.ring_after_commit(job_queue)


def _put_in_line(child) -> bool:
	"""At once: in a long line of jobs each would otherwise wait for a worker to look around.

	False for one whose type is disabled: the promoter holds it.
	"""
	if statements.value(job_types.IS_DISABLED, (child.job_type,)):
		return False
	place = Places(child.job_queue).next(child.organization, child.priority)
	transitions.apply(child, states.QUEUED, run_at=None, **place)
	bell.ring_after_commit(child.job_queue)
	return True


def _places(values) -> str:
	return ", ".join(["%s"] * len(values))
