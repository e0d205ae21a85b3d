"""Members of groups: who may join, at which place, behind whom; and whose moves the group must hear of."""

from itertools import pairwise

import frappe
from frappe import _

from dartwing_jobs import tenancy
from dartwing_jobs.engine import afterwards, database, statements, states, successors
from dartwing_jobs.engine.groups.statuses import ENDED
from dartwing_jobs.errors import GroupEnded, InvalidJobError
from dartwing_jobs.messages import throw

SEQUENTIAL, PARALLEL = "Sequential", "Parallel"
STOP, CONTINUE = "Stop", "Continue"
# what a member does when the one before it ended badly
POLICIES = {STOP: "Cancel", CONTINUE: "Run Anyway"}
# how long somebody who joins waits for another who joins and has not ended their transaction yet
WAIT_SECONDS = 5
# one that stands in for a member that ended badly
AT_PLACE = "select position from `tabBackground Job` where name = %s and job_group = %s"
BEFORE = """select name from `tabBackground Job` where job_group = %s and position < %s
	order by position desc, creation desc limit 1"""
TAKEN = "select name from `tabBackground Job` where job_group = %s and position in ({}) limit 1"


def join(job) -> None:
	"""Gives a job that is about to be written its place in its group; the group is held until the commit."""
	tenancy.check_same_organization(job, "job_group")
	group = _held(job.job_group)
	_check_is_not_being_canceled(group)
	replaced = _place_of_retried(job)
	if replaced:
		job.position = replaced
	else:
		_check_may_join(job, group)
		_check_has_not_ended(group)
		job.position = job.position or group.last_position + 1
	if group.mode == SEQUENTIAL:
		_stand_behind(job, group, replaced)


def take_places(jobs: list) -> list[list]:
	"""Jobs that have joined together, with names and places of their own; those that wait alike, together."""
	first, group = jobs[0], _held(jobs[0].job_group)
	if first.retry_of and _place_of_retried(first):
		_reopen(group, first)
		return [jobs]
	_check_free([job.position for job in jobs], group)
	if group.mode == SEQUENTIAL:
		for before, job in pairwise(jobs):
			job.depends_on, job.run_at = before.name, None
	last = max(jobs, key=lambda job: job.position)
	if last.position > group.last_position:
		columns = {"last_position": last.position, "last_member": last.name}
		statements.update("Job Group", group.name, columns)
	is_head = len(jobs) > 1 and jobs[1].depends_on and not first.depends_on
	return [jobs[:1], jobs[1:]] if is_head else [jobs]


def follow(job, to_status: str) -> None:
	"""A member has started or ended: its group looks at itself once that is committed."""
	if to_status == states.RUNNING:
		note(job.job_group, "started")
	elif to_status in states.TERMINAL:
		note(job.job_group, "canceled" if to_status == states.CANCELED else "ended")


def note(group: str, event: str) -> None:
	"""Once per transaction and group, however many of its members move; not at all when it is rolled back."""
	afterwards.gather(_look, (group, event))


def _look(noted: list[tuple[str, str]]) -> None:
	from dartwing_jobs.engine.groups import ends  # it submits jobs, and what submits jobs knows groups

	groups: dict[str, set[str]] = {}
	for group, event in noted:
		groups.setdefault(group, set()).add(event)
	for group, events in groups.items():
		ends.look(group, events)


def _held(name: str):
	"""The group as it is now, locked: of two who join at once, one waits for its place."""
	database.lock_row("Job Group", name, WAIT_SECONDS)
	(group,) = statements.fetch(
		"""select name, owner, organization, mode, on_failure,
		status, last_position, last_member, cancel_requested_at
		from `tabJob Group` where name = %s for update""",
		(name,),
	)
	return group


def _check_may_join(job, group) -> None:
	if not tenancy.may_act_on_group(group, frappe.session.user):
		throw(_("Could not find {0}").format(f"Job Group: {group.name}"), frappe.LinkValidationError)


def _check_has_not_ended(group) -> None:
	if group.status in ENDED:
		message = _("Job Group {0} has ended as {1}; no more jobs can join it.")
		throw(message.format(group.name, group.status), GroupEnded)


def _check_is_not_being_canceled(group) -> None:
	if group.cancel_requested_at and group.status not in ENDED:
		message = _("Job Group {0} is being canceled; no more jobs can join it.")
		throw(message.format(group.name), GroupEnded)


def _reopen(group, stand_in) -> None:
	"""Somebody takes the place of a member that ended badly: a cancel that is done is no longer asked for."""
	columns = {}
	if group.cancel_requested_at:
		columns |= {"cancel_requested_at": None, "cancel_requested_by": None, "cancel_reason": None}
	if stand_in.position == group.last_position:
		columns["last_member"] = stand_in.name
	if columns:
		statements.update("Job Group", group.name, columns)
	note(group.name, "joined")


def _place_of_retried(job) -> int | None:
	"""The place of the member that this one stands in for; None when it is a member of its own."""
	rows = statements.fetch(AT_PLACE, (job.retry_of, job.job_group)) if job.retry_of else []
	return rows[0].position if rows else None


def _stand_behind(job, group, replaced: int | None) -> None:
	if job.depends_on:
		message = _("Job Group {0} is sequential: its jobs wait for each other, and cannot depend on {1}.")
		throw(message.format(group.name, job.depends_on), InvalidJobError)
	if job.position <= group.last_position and not replaced:
		message = _("Job Group {0} is sequential and has {1} places already; jobs can only join behind them.")
		throw(message.format(group.name, group.last_position), InvalidJobError)
	job.depends_on = _one_before(job) if replaced else _last_of(group)
	job.on_parent_failure = POLICIES[group.on_failure]


def _one_before(job) -> str | None:
	rows = statements.fetch(BEFORE, (job.job_group, job.position))
	return rows[0].name if rows else None


def _last_of(group) -> str | None:
	"""Who stands last, or for them; None when nobody does any more."""
	last = group.last_member and successors.latest(group.last_member)
	return last if last and frappe.db.exists("Background Job", last) else None


def _check_free(positions: list[int], group) -> None:
	inside = [position for position in positions if position <= group.last_position]
	is_twice = len(set(positions)) < len(positions)
	if is_twice or (inside and (_is_taken(group.name, inside) or _is_taken_by_others(group.name, inside))):
		message = _("The place {0} in Job Group {1} is taken.")
		throw(message.format((inside or positions)[0], group.name), InvalidJobError)


def _is_taken(group: str, positions: list[int]) -> bool:
	return bool(statements.fetch(TAKEN.format(", ".join(["%s"] * len(positions))), (group, *positions)))


def _is_taken_by_others(group: str, positions: list[int]) -> bool:
	"""By somebody whose commit this transaction may not see."""
	with database.beside():
		return _is_taken(group, positions)
