"""Groups: jobs that belong together, made, followed and canceled as one."""

import json
from collections.abc import Callable
from datetime import datetime
from itertools import groupby

import frappe
from frappe import _
from frappe.model.document import Document

from dartwing_jobs import clock, tenancy
from dartwing_jobs.document import checked
from dartwing_jobs.engine import (
	afterwards,
	control,
	database,
	dependents,
	log,
	order,
	promote,
	statements,
	states,
	transitions,
	troubles,
)
from dartwing_jobs.engine.groups import ends, memberships, statuses
from dartwing_jobs.engine.groups.memberships import PARALLEL, SEQUENTIAL, STOP
from dartwing_jobs.engine.intake import keys
from dartwing_jobs.engine.submit import organization_for, submit, submit_many
from dartwing_jobs.errors import GroupEnded, InvalidJobError, SubmitConflict
from dartwing_jobs.messages import throw

DOCTYPE = "Job Group"
ANY_END = "Any End"
BATCH = 200
# of each kind, with the commit of a cancel; the sweep does what is left, so many at a time
BATCHES_AT_ONCE, BATCHES_OF_A_SWEEP = 10, 100
FIRST_PLACE, LAST_PLACE = 0, 2**31 - 1
# a member that is being started by a worker is left alone so often, and then left to the sweep
TRIES = 20
# from the back: nobody waits behind one that was just canceled
WAITING = """select name, position from `tabBackground Job` where job_group = %s and position <= %s
	and status in ('Pending', 'Queued') order by position desc limit {}"""
RUNNING = """select name, position from `tabBackground Job` where job_group = %s and position >= %s
	and status = 'Running' and cancel_requested_at is null order by position limit {}"""
# canceling what is left of a group
CANCEL = "cancel group"
CANCELING = """select name, cancel_requested_by, cancel_reason from `tabJob Group`
	where status in ('Queued', 'Running') and cancel_requested_at is not null
	and {not_set_aside} limit 100"""
OUT = {"run_at": None, "unique_key": None, "lease_token": None, "lease_expires_at": None}
OUT |= {**order.OUT_OF_LINE, **order.NOT_HELD}


def group(
	name: str,
	jobs: list[dict] | dict,
	*,
	organization: str | None = None,
	mode: str = PARALLEL,
	on_failure: str = STOP,
	on_completion: dict | str | None = None,
) -> Document:
	"""Makes a group and all its members in the caller's transaction, or nothing; returns the group.

	Without members it ends at the commit, and calls back.

	`jobs` are dicts with `job_type`, `parameters` and options of `submit`, in the order of their places; or
	one such dict whose `parameters` are a list, one for each member. `on_completion` is the job to submit at
	the end: a job type, or a dict with `job_type`, `parameters` and `on` (Success, Failure or Any End).
	"""
	settings = {"mode": mode, "on_failure": on_failure, "on_completion": on_completion}
	return make(None, name, jobs, organization, **settings)


def make(group_id: str | None, name: str, jobs: list[dict] | dict, organization: str | None, **settings):
	"""As `group`. Who may have to do it again gives an id: there is one group of an id at most."""
	organization = organization_for(organization, frappe.session.user)
	members = _members(jobs)
	with transitions.both_or_neither():
		made = _new_group(group_id, name, organization, **settings)
		for some in _alike(members, made.mode):
			_submit(some, made)
		if not members:
			memberships.note(made.name, ends.EMPTY)
		return made.reload()


def group_status(name: str) -> str:
	"""What its members make of a group now."""
	return ends.status_of(group_to_act_on(name), ends.counts(name)[0])


def group_progress(name: str) -> dict:
	"""How far a group is: its status, percent, how many members it has, how many of them in which status."""
	row = group_to_act_on(name)
	counts, running = ends.counts(name)
	return {
		"status": ends.status_of(row, counts),
		"percent": statuses.percent(counts, running),
		"total": sum(counts.values()),
		"ended": statuses.ended(counts),
		"counts": {status: counts[status] for status in states.ALL if status in counts},
	}


def cancel_group(name: str, reason: str | None = None) -> None:
	"""Nobody joins any more; after the commit who waits is canceled, and who runs is asked to stop."""
	row, user = group_to_act_on(name), frappe.session.user
	if row.status in statuses.ENDED:
		throw(_("Job Group {0} has ended as {1}.").format(name, row.status), GroupEnded)
	reason = checked(reason, frappe.get_meta(DOCTYPE).get_field("cancel_reason"), "reason")
	asked = {"cancel_requested_at": clock.now(), "cancel_requested_by": user, "cancel_reason": reason}
	statements.update(DOCTYPE, row.name, asked)
	afterwards.gather(_cancel_members_of, (row.name, user, reason, BATCHES_AT_ONCE))


def cancel_left_behind() -> None:
	"""With the sweep: goes on where a process was killed, and cancels who has come back from an attempt."""
	not_set_aside = troubles.NOT_SET_ASIDE.format(duty=CANCEL, column="`tabJob Group`.name")
	canceling = {row.name: row for row in statements.fetch(CANCELING.format(not_set_aside=not_set_aside))}

	def cancel(name: str) -> None:
		row = canceling[name]
		_cancel_members(name, row.cancel_requested_by, row.cancel_reason, BATCHES_OF_A_SWEEP)

	troubles.each(CANCEL, canceling, cancel)


def group_to_act_on(name: str):
	"""A group that is there for this user; the same words for one that is not, whether it exists or not."""
	row = frappe.db.get_value(DOCTYPE, name, "*", as_dict=True)
	if row is None or not tenancy.may_act_on_group(row, frappe.session.user):
		throw(_("Job Group {0} was not found.").format(name), frappe.DoesNotExistError)
	return row


def members_of(name: str, after: tuple[int, str] | None, limit: int) -> list:
	"""The group's jobs in the order of their places, from behind a place and a name on."""
	which, values = "job_group = %s", [name]
	if after:
		which += " and position >= %s and (position > %s or name > %s)"
		values += [after[0], *after]
	return statements.fetch(
		f"select * from `tabBackground Job` where {which} order by position, name limit {int(limit)}", values
	)


def find(filters: dict, visible: str, before: tuple[datetime, str] | None, limit: int) -> list:
	"""Groups that a condition leaves visible, newest first, from behind a moment and a name on."""
	given = {name: value for name, value in filters.items() if value}
	conditions = [visible, *(f"job_group.{name} = %s" for name in given)]
	values = list(given.values())
	if before:
		conditions.append("(job_group.creation < %s or (job_group.creation = %s and job_group.name < %s))")
		values += [before[0], *before]
	return statements.fetch(
		f"""select job_group.* from `tabJob Group` job_group where {" and ".join(conditions)}
		order by job_group.creation desc, job_group.name desc limit %s""",
		[*values, limit],
	)


def _new_group(
	group_id: str | None, name: str, organization: str, mode: str, on_failure: str, on_completion
) -> Document:
	user = frappe.session.user
	if reason := tenancy.reason_not_to_submit(user, organization, None):
		throw(reason, frappe.PermissionError)
	callback = {"job_type": on_completion} if isinstance(on_completion, str) else on_completion or {}
	if unknown := sorted(set(callback) - {"job_type", "parameters", "on"}):
		throw(_("A callback has no {0}.").format(", ".join(unknown)), InvalidJobError)
	fields = {"group_name": name, "organization": organization, "mode": mode, "on_failure": on_failure}
	if callback:
		fields |= {"callback_job_type": callback.get("job_type"), "callback_on": callback.get("on", ANY_END)}
		fields["callback_parameters"] = callback.get("parameters")
	made = frappe.get_doc({"doctype": DOCTYPE, **fields}).insert(ignore_permissions=True, set_name=group_id)
	if group_id not in (None, made.name):
		raise SubmitConflict(f"{group_id} is there already")  # Frappe has taken another name for it
	return made


def _members(jobs: list[dict] | dict) -> list[dict]:
	"""What each member is submitted with: its type, parameters, place and options."""
	if isinstance(jobs, dict):
		many = jobs.get("parameters")
		if not isinstance(many, list):
			throw(_("Give a list of parameters, one for each job of the group."), InvalidJobError)
		jobs = [{**jobs, "parameters": one} for one in many]
	for job in jobs:
		if not isinstance(job, dict) or not job.get("job_type"):
			throw(_("Each job of a group is an object with a job_type."), InvalidJobError)
		if given := sorted({"job_group", "position", "retry_of"} & job.keys()):
			throw(_("A group says itself what {0} is.").format(", ".join(given)), InvalidJobError)
	return [{"parameters": None, **job, "position": number} for number, job in enumerate(jobs, start=1)]


def _alike(members: list[dict], mode: str) -> list[list[dict]]:
	"""Members that can be submitted together; where one waits for the other, only if they are neighbours."""
	ordered = members if mode == SEQUENTIAL else sorted(members, key=_kind)
	return [list(some) for _kind_of_all, some in groupby(ordered, key=_kind)]


def _kind(member: dict) -> str:
	options = {name: value for name, value in member.items() if name not in ("parameters", "position")}
	return json.dumps(options, sort_keys=True, default=str)


def _submit(members: list[dict], made: Document) -> None:
	first, many = members[0], [member["parameters"] for member in members]
	options = {name: first[name] for name in first if name not in ("job_type", "parameters", "position")}
	options |= {"job_group": made.name, "if_duplicate": keys.REFUSE, "must_submit": True}
	if len(members) == 1:
		submit(first["job_type"], many[0], made.organization, position=first["position"], **options)
	else:
		places = [member["position"] for member in members]
		submit_many(first["job_type"], many, made.organization, positions=places, **options)


def _cancel_members_of(groups: list[tuple]) -> None:
	for group in groups:
		_cancel_members(*group)


def _cancel_members(name: str, user: str, reason: str | None, batches: int) -> None:
	"""In short transactions. Those whom a worker is just starting are asked to stop when they run."""
	reason = reason or f"Job Group {name} was canceled"
	for _try in range(TRIES):
		is_done = _in_batches(_cancel_some, LAST_PLACE, batches, name, user, reason)
		is_done &= _in_batches(_ask_some_to_stop, FIRST_PLACE, batches, name, user, reason)
		if not is_done or not statements.fetch(WAITING.format(1), (name, LAST_PLACE)):
			break
	ends.look(name, {"canceled"})


def _in_batches(act: Callable, place: int, batches: int, *arguments) -> bool:
	"""From a place on, each batch behind the one before; False when there are more than so many batches."""
	for _batch in range(batches):
		behind = act(place, *arguments)
		if behind in (None, place):
			return True
		place = behind
	return False


def _behind(rows: list) -> int | None:
	"""Where the next batch begins; at the place of the last, which others may share. None if it was all."""
	return rows[-1].position if len(rows) == BATCH else None


@database.own_transaction
def _cancel_some(place: int, name: str, user: str, reason: str) -> int | None:
	rows = statements.fetch(WAITING.format(BATCH), (name, place))
	jobs = _free([row.name for row in rows], states.WAITING)
	for _status, some in groupby(sorted(jobs, key=lambda job: job.status), key=lambda job: job.status):
		alike = list(some)
		messages = [reason] * len(alike)
		transitions.apply_to_all(
			alike, states.CANCELED, actor=user, messages=messages, now=clock.now(), **OUT
		)
	if names := [job.name for job in jobs]:
		afterwards.gather(dependents.follow_all, *names)
	return _behind(rows)


@database.own_transaction
def _ask_some_to_stop(place: int, name: str, user: str, reason: str) -> int | None:
	rows = statements.fetch(RUNNING.format(BATCH), (name, place))
	jobs = _free([row.name for row in rows], [states.RUNNING])
	if not jobs:
		return _behind(rows)
	now, names = clock.now(), ", ".join(["%s"] * len(jobs))
	statements.execute(
		f"""update `tabBackground Job` set cancel_requested_at = %s, cancel_requested_by = %s
		where name in ({names})""",
		[now, user, *(job.name for job in jobs)],
	)
	told = {"now": now, "actor": user, "message": reason}
	log.insert_rows([log.row(job, control.CANCEL_REQUESTED, job.status, job.status, **told) for job in jobs])
	return _behind(rows)


def _free(names: list[str], allowed) -> list:
	"""Those of these jobs that nobody holds, locked, if they are still so."""
	if not names:
		return []
	allowed = sorted(allowed)
	columns = ", ".join(f"`{column}`" for column in (*promote.COLUMNS, "job_group"))
	return statements.fetch(
		f"""select {columns} from `tabBackground Job` where name in ({", ".join(["%s"] * len(names))})
		and status in ({", ".join(["%s"] * len(allowed))}) order by name for update skip locked""",
		[*names, *allowed],
	)
