"""A group's own status follows its members: looked at after their commits, settled once, and called back.

No member waits for the group's row: it is taken only by those who find it free, and a sweep looks again.
"""

import random
import time

import frappe

from dartwing_jobs import clock, parameters, tenancy
from dartwing_jobs.engine import database, sanitize, statements, states, transitions, troubles
from dartwing_jobs.engine.groups import statuses
from dartwing_jobs.engine.intake import keys
from dartwing_jobs.engine.observing import reports
from dartwing_jobs.engine.submit import submit

DOCTYPE = "Job Group"
CALLBACK_STATUSES = {
	"Success": frozenset({statuses.COMPLETED}),
	"Failure": frozenset({statuses.PARTIAL}),
	"Any End": statuses.ENDED,
}
# what happens to a group that is made without jobs
EMPTY = "empty"
UNFINISHED = "'Pending', 'Queued', 'Running'"
# in the order of places, from where the last look found somebody: whole groups are read once, not each time
FIRST_UNFINISHED = f"""select position from `tabBackground Job` force index (idx_job_group)
	where job_group = %s and position >= %s and status in ({UNFINISHED}) order by position limit 1"""
WORKED_ON = f"""select name from `tabBackground Job` force index (idx_job_group) where job_group = %s
	and status not in ('Pending', 'Queued', '{states.CANCELED}') order by position limit 1"""
# a job that was tried again, or whose place was filled by another that completed, no longer counts
MEMBERS = f"""from `tabBackground Job` member where member.job_group = %s
	and (member.status in ({UNFINISHED}, 'Completed') or not (
	exists (select 1 from `tabBackground Job` again
		where again.retry_of = member.name and again.job_group = member.job_group)
	or exists (select 1 from `tabBackground Job` again where again.job_group = member.job_group
		and again.position = member.position and again.position > 0 and again.status = 'Completed')))"""
# whose last place has ended, or that wait although their first member does not: only of those is more asked
MAYBE_BEHIND = f"""select name, status from `tabJob Group` open_group where status in ('Queued', 'Running')
	and last_position > 0 and name >= %s and (not exists (select 1 from `tabBackground Job` member
	where member.job_group = open_group.name and member.position = open_group.last_position
	and member.status in ({UNFINISHED})) or (status = 'Queued' and exists (
	select 1 from `tabBackground Job` member where member.job_group = open_group.name and member.position = 1
	and member.status not in ('Pending', 'Queued', '{states.CANCELED}')))) order by name limit {{limit}}"""
BATCH = 200
# a group that has begun is not asked again for so long whether it knows
REMEMBER_SECONDS = 1
MOST_REMEMBERED = 1000
# by site and group: the place where somebody was last found unfinished; when it was last found Running
_seen: dict[tuple[str, str], int] = {}
_begun: dict[tuple[str, str], float] = {}


def look(group: str, events: set[str]) -> None:
	"""After the commit of what members did. Never raises: a sweep looks again."""
	try:
		end_if_empty(group) if EMPTY in events else _look(group, events)
	except Exception as error:
		database.rollback()
		reports.to_error_log(f"Job Group {group} could not be looked at", error)
		frappe.db.commit()  # nosemgrep: the error's record


def settle_left_behind() -> None:
	"""With the sweep: what was left by processes that were killed, or found the group's row taken."""
	found = {group.name: group.status for group in _maybe_behind()}

	def settle(name: str) -> None:
		if found[name] == statuses.QUEUED or not has_unfinished(name):
			restate(name)

	troubles.each("settle group", found, settle)


def has_unfinished(group: str) -> bool:
	"""Whether any member has yet to end. A look begins where the last one found somebody."""
	key = frappe.local.site, group
	begin = _seen.pop(key, 0)
	found = statements.fetch(FIRST_UNFINISHED, (group, begin))
	if not found and begin:
		found = statements.fetch(FIRST_UNFINISHED, (group, 0))
	if found:
		_remember(_seen, key, found[0].position)
	return bool(found)


def counts(group: str) -> tuple[dict[str, int], float]:
	"""How many members are in each status, and the progress of those that run, added up."""
	rows = statements.fetch(
		f"""select member.status, count(*) as members, sum(member.progress) as progress
		{MEMBERS} group by member.status""",
		(group,),
	)
	running = sum(float(row.progress) for row in rows if row.status == states.RUNNING)
	return {row.status: row.members for row in rows}, running


def status_of(group, members: dict[str, int]) -> str:
	"""What its members make of it; one that was canceled before it had any has ended, too.

	One that has ended stays as it is when some of its members have been deleted, or when it never had any.
	"""
	are_all_there = members and sum(members.values()) >= group.last_position
	if group.status in statuses.ENDED and not are_all_there and not states.ACTIVE & members.keys():
		return group.status
	if not members and group.cancel_requested_at:
		return statuses.CANCELED
	return statuses.derived(members)


@database.own_transaction
def restate(group: str) -> None:
	"""Writes down what its members make of a group; whoever writes that it has ended, calls back."""
	_begun.pop((frappe.local.site, group), None)
	database.see_what_is_committed()  # somebody may have joined since this transaction looked first
	row = _taken(group)
	if row is None:
		return
	members, _progress = counts(group)
	_write_down(row, status_of(row, members), members)


@database.own_transaction
def end_if_empty(group: str) -> None:
	"""After the commit of a group that was made without jobs: there is nothing to wait for."""
	row = _taken(group)
	if row and row.status not in statuses.ENDED and not row.last_position:
		_write_down(row, statuses.CANCELED if row.cancel_requested_at else statuses.COMPLETED, {})


def _write_down(group, status: str, members: dict[str, int]) -> None:
	if status == group.status:
		return
	now, has_ended = clock.now(), status in statuses.ENDED
	columns = {"status": status, "modified": now, "ended_at": now if has_ended else None}
	if has_ended:
		columns |= _call_back(group, status, members)
	statements.update(DOCTYPE, group.name, columns)


def _look(group: str, events: set[str]) -> None:
	if "started" in events:
		_begin_if_new(group)  # who has just been started here has yet to end
	elif "joined" in events or not has_unfinished(group):
		restate(group)
	elif "canceled" in events and _stored(group) == statuses.RUNNING:
		_restate_if_nobody_has_run(group)


def _restate_if_nobody_has_run(group: str) -> None:
	if not statements.fetch(WORKED_ON, (group,)):
		restate(group)


def _begin_if_new(group: str) -> None:
	key = frappe.local.site, group
	if key in _begun and time.monotonic() - _begun[key] < REMEMBER_SECONDS:
		return
	stored = _stored(group)
	if stored == statuses.RUNNING:
		_remember(_begun, key, time.monotonic())
	elif stored:
		_begin(group, stored)


def _stored(group: str) -> str | None:
	found = statements.fetch("select status from `tabJob Group` where name = %s", (group,))
	return found[0].status if found else None


def _remember(memory: dict, key: tuple[str, str], value: float) -> None:
	memory.pop(key, None)  # the latest stands last
	if len(memory) >= MOST_REMEMBERED:
		del memory[next(iter(memory))]
	memory[key] = value


@database.own_transaction
def _begin(group: str, stored: str) -> None:
	if _taken(group):
		columns = {"status": statuses.RUNNING, "modified": clock.now(), "ended_at": None}
		statements.update(DOCTYPE, group, columns, {"status": stored})


def _taken(group: str):
	"""The group's row, locked; None when somebody else has it: they, or the sweep, do what is to be done."""
	rows = statements.fetch("select * from `tabJob Group` where name = %s for update skip locked", (group,))
	return rows[0] if rows else None


def _maybe_behind() -> list:
	"""From any of them on: should there be too many for one sweep, each gets its turn."""
	found = statements.fetch(MAYBE_BEHIND.format(limit=BATCH), (f"{random.getrandbits(40):010x}",))
	if len(found) < BATCH:
		found += statements.fetch(MAYBE_BEHIND.format(limit=BATCH), ("",))
	return list({row.name: row for row in found}.values())


def _call_back(group, status: str, members: dict[str, int]) -> dict:
	"""Submits the callback of this end, if one is wanted and not made yet; the columns that tell of it."""
	fired = [word for word in (group.callback_fired_on or "").split(",") if word]
	if not group.callback_job_type or status not in CALLBACK_STATUSES[group.callback_on] or status in fired:
		return {}
	told = {"callback_fired_on": ",".join([*fired, status]), "callback_error": None}
	messages = len(frappe.local.message_log)
	try:
		with transitions.both_or_neither():
			return told | {"callback_job": _submit_callback(group, status, members)}
	except Exception as error:
		if database.has_lost_transaction(error) or database.is_conflict(error):
			raise
		del frappe.local.message_log[messages:]  # whoever ended the last member cannot do anything about it
		said = sanitize.text(str(error) or type(error).__name__)
		reports.to_error_log(f"Job Group {group.name}: the callback could not be submitted", error)
		return told | {"callback_error": said}


def _submit_callback(group, status: str, members: dict[str, int]) -> str:
	given = callback_parameters(group, status, members)
	who = {"owner_user": group.owner, "if_duplicate": keys.ALLOW, "must_submit": True}
	with tenancy.replaying_for(group.owner):  # it is what the owner has asked for, unchanged
		return submit(group.callback_job_type, given, group.organization, **who).name


def callback_parameters(group, status: str, members: dict[str, int]) -> dict:
	"""What the group's maker gave, and what became of it."""
	given = parameters.load(group.callback_parameters)
	return {**given, "group": group.name, "status": status, "counts": members}
