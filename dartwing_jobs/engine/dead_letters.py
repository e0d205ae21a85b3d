"""What people do with dead letters: look for them, replay them as they were or edited, discard them.

Nothing here changes a status: a dead letter stays one. Its log tells what became of it, and who decided that.
"""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

import frappe
from frappe import _
from frappe.utils import cint

from dartwing_jobs import clock, tenancy
from dartwing_jobs.document import checked
from dartwing_jobs.engine import control, database, log, sanitize, statements, states, transitions
from dartwing_jobs.engine.intake.frozen import shipped_fields
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.messages import throw

DISCARDED = "job.discarded"
JOB = "`tabBackground Job`"
MOST_AT_ONCE = 500
# what one may look for: the condition, with a place for the value
FILTERS = {
	"organization": f"{JOB}.organization = %s",
	"job_type": f"{JOB}.job_type = %s",
	"after": f"{JOB}.completed_at > %s",
	"before": f"{JOB}.completed_at < %s",
	"error_class": f"""exists (select 1 from `tabJob Run` run where run.background_job = {JOB}.name
		and run.attempt = {JOB}.attempt and run.error_class = %s)""",
}
MOMENTS = frozenset({"after", "before"})
NOT_DISCARDED = f"{JOB}.discarded_at is null"
NOT_REPLAYED = f"not exists (select 1 from {JOB} again where again.retry_of = {JOB}.name)"


class Cursor(NamedTuple):
	"""Where a page ended: the last one's moment of death, and its name."""

	died_at: datetime
	name: str


def replay(job: str, parameters: dict | str | None = None, reason: str | None = None, again: bool = False):
	"""Submits a dead letter again as a new job, with other parameters if some are given; returns it.

	It stays its owner's, and runs with their rights. Who edits another's job without being a System Manager
	becomes the owner of what they made of it.
	"""
	dead, reason = _dead_letter(job), _storable(reason)
	if not again:
		control.check_nothing_was_decided(dead)
	with transitions.both_or_neither():
		control.decide(dead)
		if parameters is not None and not tenancy.may_submit_as(dead.owner_user, frappe.session.user):
			return control.submit_again(dead, frappe.session.user, parameters, reason)
		with tenancy.replaying_for(dead.owner_user):
			return control.submit_again(dead, dead.owner_user, parameters, reason)


def discard(job: str, reason: str) -> None:
	"""Nothing is to be done about a dead letter: it is kept, but no longer listed."""
	dead, reason = _dead_letter(job), _storable(reason)
	if not reason:
		throw(_("Say why job {0} is discarded.").format(job), InvalidJobError)
	if dead.discarded_at:
		control.refuse_discarded(dead)
	now, user = clock.now(), frappe.session.user
	with transitions.both_or_neither():
		control.decide(dead, discarded_at=now, discarded_by=user, discard_reason=reason)
		log.write(dead, DISCARDED, dead.status, dead.status, now=now, actor=user, message=reason)


def replay_many(filters: dict, limit: int = MOST_AT_ONCE, reason: str | None = None) -> dict:
	"""Replays what the filters find, oldest first, as far as it is not discarded or replayed already."""
	return _for_each(filters, limit, lambda name: replay(name, reason=reason).name, NOT_REPLAYED)


def discard_many(filters: dict, reason: str, limit: int = MOST_AT_ONCE) -> dict:
	"""Discards what the filters find, oldest first."""
	return _for_each(filters, limit, lambda name: discard(name, reason))


def find(
	filters: dict, limit: int, cursor: Cursor | None = None, discarded: bool = False, replayed: bool = True
) -> list:
	"""Dead letters that this user may see, newest first, from the cursor on; with `replayed_as`."""
	conditions, values = _conditions(filters)
	conditions += [] if discarded else [NOT_DISCARDED]
	conditions += [] if replayed else [NOT_REPLAYED]
	if cursor:
		conditions.append(f"({JOB}.completed_at < %s or ({JOB}.completed_at = %s and {JOB}.name < %s))")
		values += [cursor.died_at, cursor.died_at, cursor.name]
	return statements.fetch(
		f"""select {JOB}.*, (select max(again.name) from {JOB} again where again.retry_of = {JOB}.name)
		as replayed_as from {JOB} where {" and ".join(conditions)}
		order by {JOB}.completed_at desc, {JOB}.name desc limit {cint(limit)}""",
		values,
	)


def _for_each(filters: dict, limit: int, act: Callable[[str], object], *more: str) -> dict:
	"""Acts on each in a savepoint of its own: one that cannot be done stops none of the others."""
	conditions, values = _conditions(filters, must_say_which=True)
	which = f"from {JOB} where {' and '.join([*conditions, NOT_DISCARDED, *more])}"
	limit = min(max(cint(limit), 1), MOST_AT_ONCE)
	order = f"order by {JOB}.completed_at, {JOB}.name limit {limit}"
	names = [row.name for row in statements.fetch(f"select {JOB}.name {which} {order}", values)]
	(found,) = statements.fetch(f"select count(*) as count {which}", values)
	failed = {}
	done = [name for name in names if _try(act, name, failed)]
	return {"done": done, "failed": failed, "left": found.count - len(names)}


def _try(act: Callable[[str], object], name: str, failed: dict) -> bool:
	messages = len(frappe.local.message_log)
	try:
		act(name)
	except Exception as error:
		if database.is_conflict(error) or database.is_lost_connection(error):
			raise  # nothing of the whole transaction is left
		del frappe.local.message_log[messages:]  # told in the answer
		failed[name] = sanitize.text(str(error) or type(error).__name__)
	return name not in failed


def _conditions(filters: dict, must_say_which: bool = False) -> tuple[list[str], list]:
	"""SQL for the dead letters that this user may see and that the filters mean."""
	given = {name: value for name, value in filters.items() if value not in (None, "")}
	if unknown := sorted(set(given) - {*FILTERS, "names"}):
		throw(_("Dead letters have no filter {0}.").format(", ".join(unknown)), InvalidJobError)
	if must_say_which and not given:
		known = ", ".join([*FILTERS, "names"])
		throw(_("Say which dead letters, by at least one of {0}.").format(known), InvalidJobError)
	names = given.pop("names", None)
	conditions = [f"{JOB}.status = %s", *(FILTERS[name] for name in given)]
	values = [states.DEAD_LETTER, *(_value(name, value) for name, value in given.items())]
	if names is not None:
		conditions.append(f"{JOB}.name in ({', '.join(['%s'] * len(names)) or 'null'})")
		values += names
	if visible := tenancy.query_conditions(frappe.session.user, "Background Job"):
		conditions.append(visible)
	return conditions, values


def _value(name: str, value):
	if name not in MOMENTS:
		return value
	moment = clock.parse(value)
	if moment is None:
		message = _("{0} must be a date and time such as 2026-01-31 09:00:00, not {1}.")
		throw(message.format(name, value), InvalidJobError)
	return moment


def _dead_letter(job_name: str):
	job = control.job_to_act_on(job_name)
	if job.status != states.DEAD_LETTER:
		throw(_("Job {0} is {1}, not a dead letter.").format(job_name, job.status), InvalidJobError)
	return job


def _storable(reason: str | None) -> str | None:
	return checked((reason or "").strip(), shipped_fields()["discard_reason"], "reason") or None
