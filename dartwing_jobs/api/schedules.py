"""Schedules over HTTP: for whoever may read or write them. Times are RFC 3339, in the schedule's own zone."""

from datetime import datetime, timezone
from zoneinfo import ZoneInfo

import frappe
from frappe import _
from frappe.utils import cint

from dartwing_jobs import clock
from dartwing_jobs import parameters as job_parameters
from dartwing_jobs.api.jobs import MOST_AT_ONCE
from dartwing_jobs.engine import database
from dartwing_jobs.engine.schedules import fire_times, fires, recurring, schedules
from dartwing_jobs.errors import InvalidJobError

BAR = "|"
SHOWN = (
	"name",
	"schedule_name",
	"organization",
	"job_template",
	"cron_expression",
	"time_zone",
	"enabled",
	"disabled_reason",
	"run_as",
	"priority",
	"missed_run_policy",
	"overlap_policy",
	"jitter_seconds",
)
FIRE = ("name", "outcome", "background_job", "missed_fires", "message")


@frappe.whitelist(methods=["GET", "POST"])
def list_schedules(
	organization: str | None = None,
	job_template: str | None = None,
	enabled: bool | int | str | None = None,
	cursor: str | None = None,
	limit: int = 20,
) -> dict:
	"""A page of the schedules one may see, newest first; `next` is the `cursor` of the next page."""
	given = {"organization": organization, "job_template": job_template}
	filters = [[name, "=", value] for name, value in given.items() if value]
	if enabled not in (None, ""):
		filters.append(["enabled", "=", int(str(enabled).lower() in ("1", "true", "yes"))])
	page, more = _page(schedules.DOCTYPE, "creation", filters, cursor, limit)
	return {"schedules": [_shown(row) for row in page], "next": more}


@frappe.whitelist(methods=["GET", "POST"])
def get(schedule: str) -> dict:
	return _shown(schedules.to_act_on(schedule, "read"))


@frappe.whitelist(methods=["POST"])
def schedule(
	name: str,
	cron: str,
	job_type: str | None = None,
	parameters: dict | str | None = None,
	template: str | None = None,
	overrides: dict | str | None = None,
	organization: str | None = None,
	time_zone: str | None = None,
	priority: str | int | None = None,
	enabled: bool | int | None = None,
	missed_run_policy: str | None = None,
	overlap_policy: str | None = None,
	jitter_seconds: int | None = None,
	start_at: str | None = None,
	end_at: str | None = None,
) -> dict:
	"""Makes the schedule of this name, or changes what is given; the same call again changes nothing."""
	options = {
		"time_zone": time_zone,
		"priority": priority,
		"enabled": enabled,
		"missed_run_policy": missed_run_policy,
		"overlap_policy": overlap_policy,
		"jitter_seconds": jitter_seconds,
		"start_at": start_at,
		"end_at": end_at,
	}
	given = {option: value for option, value in options.items() if value is not None}
	what = {"job_type": job_type, "parameters": parameters, "template": template, "overrides": overrides}
	make = database.own_transaction(recurring.schedule)
	return _shown(make(name, cron, organization=organization, **what, **given))


@frappe.whitelist(methods=["POST"])
def pause(schedule: str, reason: str | None = None) -> dict:
	schedules.pause(schedule, reason)
	return get(schedule)


@frappe.whitelist(methods=["POST"])
def resume(schedule: str) -> dict:
	"""Its jobs run as whoever resumes it."""
	return _shown(schedules.resume(schedule))


@frappe.whitelist(methods=["POST"])
def trigger(schedule: str) -> dict:
	"""Makes a job now, as whoever asks for it, and answers with its name."""
	return {"schedule": schedule, "job": schedules.trigger(schedule)}


@frappe.whitelist(methods=["GET", "POST"])
def upcoming(schedule: str, count: int = schedules.UPCOMING) -> list[str]:
	"""The next fire times."""
	return [moment.isoformat() for moment in schedules.upcoming(schedule, count)]


@frappe.whitelist(methods=["GET", "POST"])
def preview(
	cron_expression: str,
	time_zone: str | None = None,
	start_at: str | None = None,
	end_at: str | None = None,
	count: int = schedules.UPCOMING,
) -> list[str]:
	"""The fire times that a schedule would have; its window is in wall-clock times of its zone."""
	moments = schedules.preview(cron_expression, time_zone, count, start_at=start_at, end_at=end_at)
	return [moment.isoformat() for moment in moments]


@frappe.whitelist(methods=["GET", "POST"])
def list_fires(schedule: str, outcome: str | None = None, cursor: str | None = None, limit: int = 20) -> dict:
	"""What became of a schedule's fire times, last ones first; `next` is the `cursor` of the next page."""
	row = schedules.to_act_on(schedule, "read")
	filters = [["job_schedule", "=", schedule]]
	if outcome:
		filters.append(["outcome", "=", outcome])
	page, more = _page(fires.DOCTYPE, "fire_at", filters, cursor, limit)
	return {"fires": [_shown_fire(fire, row) for fire in page], "next": more}


def _page(
	doctype: str, moment: str, filters: list, cursor: str | None, limit: int
) -> tuple[list, str | None]:
	limit = min(max(cint(limit), 1), MOST_AT_ONCE)
	rows = _behind(doctype, moment, filters, cursor, limit + 1)
	page = rows[:limit]
	return page, f"{page[-1][moment]}{BAR}{page[-1].name}" if len(rows) > limit else None


def _behind(doctype: str, moment: str, filters: list, cursor: str | None, limit: int) -> list:
	def newest(*more: list) -> list:
		order = f"{moment} desc, name desc"
		return frappe.get_list(doctype, filters=[*filters, *more], fields=["*"], order_by=order, limit=limit)

	if not cursor:
		return newest()
	at, _bar, name = cursor.partition(BAR)
	if not (clock.parse(at) and name):
		frappe.throw(_("{0} is not where a page ended.").format(cursor), InvalidJobError)
	return [*newest([moment, "=", at], ["name", "<", name]), *newest([moment, "<", at])]


def _shown(row) -> dict:
	answer = {name: row.get(name) for name in SHOWN}
	moments = {name: _in_zone(row.get(name), row) for name in ("next_fire_at", "last_fire_at")}
	window = {name: _wall_time(row.get(name)) for name in ("start_at", "end_at")}
	overrides = {"param_overrides": job_parameters.load(row.get("param_overrides"))}
	return {**answer, "enabled": bool(row.get("enabled")), **moments, **window, **overrides}


def _shown_fire(fire, schedule) -> dict:
	return {**{name: fire.get(name) for name in FIRE}, "fire_at": _in_zone(fire.fire_at, schedule)}


def _in_zone(moment: datetime | None, schedule) -> str | None:
	zone = ZoneInfo(fire_times.zone_of(schedule))
	return moment and moment.replace(tzinfo=timezone.utc).astimezone(zone).isoformat()


def _wall_time(moment) -> str | None:
	"""On the schedule's own clock, so it has no offset."""
	return clock.parse(moment).isoformat() if moment else None
