"""Schedules: what people and programs do with them. When they fire, `ticks` makes their jobs."""

from datetime import datetime, timezone
from zoneinfo import ZoneInfo

import frappe
from frappe import _
from frappe.model.document import Document
from frappe.utils import cint

from dartwing_jobs import clock, cron, parameters, tenancy
from dartwing_jobs.engine import bell, database, statements, troubles
from dartwing_jobs.engine.rules import queue_rules
from dartwing_jobs.engine.rules.queues import MAINTENANCE_QUEUE
from dartwing_jobs.engine.schedules import fire_jobs, fire_times, fires
from dartwing_jobs.engine.schedules.fires import FORCED, Fire
from dartwing_jobs.engine.schedules.grounds import Grounds
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.messages import throw

DOCTYPE = "Job Schedule"
# how many fire times are told unless more are asked for, and how many at most
UPCOMING, MOST_UPCOMING = 10, 100
# firing one that is due
FIRE = "fire"
NOT_SET_ASIDE = troubles.NOT_SET_ASIDE.format(duty=FIRE, column=f"`tab{DOCTYPE}`.name")


def disable_for_template(template: str, reason: str) -> list[str]:
	"""Disables the schedules of a template that can no longer be used; returns their names."""
	enabled = statements.fetch(
		f"""select name, organization from `tab{DOCTYPE}` where job_template = %s and enabled = 1
		order by name""",
		(template,),
	)
	for schedule in enabled:
		disable(schedule, reason)
	return [schedule.name for schedule in enabled]


def disable(schedule, reason: str) -> None:
	"""In the caller's transaction; a line among its fires tells why. An open form must not undo it."""
	columns = {"enabled": 0, "next_fire_at": None, "next_skip_at": None, "disabled_reason": reason}
	changed = {"modified": clock.now(), "modified_by": frappe.session.user}
	statements.update(DOCTYPE, schedule.name, columns | changed)
	fires.record_now(schedule, fires.DISABLED, reason)
	frappe.clear_document_cache(DOCTYPE, schedule.name)


def take_over(template: str, user: str) -> None:
	"""Somebody has changed a template: from now on its schedules run with no more rights than theirs.

	Who has all rights changes nothing: what others wrote into the schedules must not run with those. For the
	same reason a schedule that others laid overrides into is disabled, until somebody answers for both.
	"""
	if tenancy.is_unrestricted(user):
		return
	reason = _("Its template was changed by {0}; enable it again.").format(user)
	for schedule in statements.fetch(
		f"""select name, organization, enabled, param_overrides from `tab{DOCTYPE}`
		where job_template = %s and run_as <> %s order by name""",
		(template, user),
	):
		if not parameters.load(schedule.param_overrides):
			statements.update(DOCTYPE, schedule.name, {"run_as": user})
		elif schedule.enabled:
			disable(schedule, reason)


def pause(schedule: str, reason: str | None = None) -> None:
	"""Nothing fires until somebody resumes it; that time is not caught up."""
	row = to_act_on(schedule, "write")
	if row.enabled:
		disable(row, reason or _("Paused by {0}").format(frappe.session.user))


def resume(schedule: str) -> Document:
	"""From now on it fires again, as the user who says so."""
	to_act_on(schedule, "write")
	document = frappe.get_doc(DOCTYPE, schedule)
	if not document.enabled:
		document.enabled = 1
		document.save()
	return document


def trigger(schedule: str) -> str:
	"""Makes a job of a schedule now, whether it is enabled or not, as the user who says so; returns its name.

	It neither asks for other jobs of the schedule nor changes when it fires.
	"""
	row, user = to_act_on(schedule, "write"), frappe.session.user
	grounds = Grounds()
	if refusal := grounds.refusal(row, user):
		throw(refusal.reason, InvalidJobError)
	fire = Fire(frappe._dict(row, jitter_seconds=0), database.utc_now(), FORCED)
	fire_jobs.make(fire, grounds, user)
	fires.write_apart(fire)
	return fire.job


def upcoming(schedule: str, count: int = UPCOMING) -> list[datetime]:
	"""The next fire times, in the schedule's zone; none when it is disabled."""
	row = to_act_on(schedule, "read")
	return _told(row, count) if row.enabled else []


def preview(cron_expression: str, time_zone: str | None = None, count: int = UPCOMING, **window) -> list:
	"""The fire times that a schedule would have; `window` is its start_at and end_at."""
	row = frappe.get_doc({"doctype": DOCTYPE, "cron_expression": cron_expression, "time_zone": time_zone})
	cron.check(cron_expression, clock.now())
	check_zone(fire_times.zone_of(row))
	row.update(window)
	row.check_input()
	return _told(row, count)


def check_zone(time_zone: str) -> None:
	if not cron.is_zone(time_zone):
		message = _("{0} is not a time zone; use an IANA name such as Europe/Paris.")
		throw(message.format(time_zone), InvalidJobError)


def to_act_on(schedule: str, ptype: str) -> frappe._dict:
	"""A schedule that is there for this user; the same words for one that is hidden or does not exist."""
	row = frappe.db.get_value(DOCTYPE, schedule, "*", as_dict=True)
	if row is None or not frappe.has_permission(DOCTYPE, ptype, doc=schedule):
		throw(_("Job Schedule {0} was not found.").format(schedule), frappe.DoesNotExistError)
	return row


def _told(row, count: int) -> list[datetime]:
	zone = ZoneInfo(fire_times.zone_of(row))
	count = min(max(cint(count), 1), MOST_UPCOMING)
	moments = fire_times.upcoming(row, database.utc_now(), count)
	return [moment.replace(tzinfo=timezone.utc).astimezone(zone) for moment in moments]


def announce_all() -> None:
	"""For schedules that were enabled before anything could fire them: from now on."""
	now = database.utc_now()
	for row in statements.fetch(f"select * from `tab{DOCTYPE}` where enabled = 1 and next_fire_at is null"):
		try:
			following = fire_times.next_after(row, now)
		except Exception as error:  # whatever an expression of old times may hold
			disable(row, fire_times.untold(error))
		else:
			statements.update(DOCTYPE, row.name, {"next_fire_at": following})


def next_due() -> datetime | None:
	"""When the next schedule of the site fires, in UTC; None when none will."""
	rows = statements.fetch(
		f"""select next_fire_at as due from `tab{DOCTYPE}`
		where next_fire_at is not null and {NOT_SET_ASIDE} order by next_fire_at limit 1"""
	)
	return rows[0].due if rows else None


def queue_of_next() -> str:
	"""Where the next fire's job will wait: its worker is the one to wake for it."""
	rows = statements.fetch(
		f"""select template.job_type from `tab{DOCTYPE}`
		join `tabJob Template` template on template.name = `tab{DOCTYPE}`.job_template
		where next_fire_at is not null and {NOT_SET_ASIDE}
		order by next_fire_at, `tab{DOCTYPE}`.name limit 1"""
	)
	return queue_of(rows[0].job_type) if rows else MAINTENANCE_QUEUE


def queue_of(job_type: str) -> str:
	if not frappe.db.exists("Job Type", job_type):
		return MAINTENANCE_QUEUE
	return queue_rules.queue_of_scheduled(frappe.get_cached_doc("Job Type", job_type))


def wake_workers_after_commit(schedule) -> None:
	"""If it fires soon, a worker is to wait for that."""
	job_type = frappe.db.get_value("Job Template", schedule.job_template, "job_type")
	bell.ring_when_due_after_commit(queue_of(job_type), schedule.next_fire_at)
