"""Schedules over HTTP: for whoever may read or write them. Times are RFC 3339, in the schedule's own zone."""

from datetime import datetime, timezone
from typing import Annotated
from zoneinfo import ZoneInfo

import frappe

from dartwing_jobs import clock, cron
from dartwing_jobs import parameters as job_parameters
from dartwing_jobs.api.arguments import (
	BAR,
	Choice,
	Count,
	Name,
	Number,
	PageOfMoments,
	PageSize,
	ParametersOfJob,
	Priority,
	Reason,
	Yes,
)
from dartwing_jobs.api.endpoint import endpoint
from dartwing_jobs.engine import database
from dartwing_jobs.engine.schedules import fire_times, fires, recurring, schedules

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


@endpoint("GET", "POST")
def list_schedules(
	organization: Name | None = None,
	job_template: Name | None = None,
	enabled: Yes | None = None,
	cursor: PageOfMoments | None = None,
	limit: PageSize = 20,
) -> dict:
	"""A page of the schedules one may see, newest first; `next` is the `cursor` of the next page."""
	given = {"organization": organization, "job_template": job_template}
	filters = [[name, "=", value] for name, value in given.items() if value]
	if enabled is not None:
		filters.append(["enabled", "=", int(enabled)])
	page, more = _page(schedules.DOCTYPE, "creation", filters, cursor, limit)
	return {"schedules": [_shown(row) for row in page], "next": more}


@endpoint("GET", "POST")
def get(schedule: Name) -> dict:
	return _shown(schedules.to_act_on(schedule, "read"))


@endpoint("POST")
def schedule(
	name: Name,
	cron: Name,
	job_type: Name | None = None,
	parameters: ParametersOfJob | None = None,
	template: Name | None = None,
	overrides: ParametersOfJob | None = None,
	organization: Name | None = None,
	time_zone: Name | None = None,
	priority: Priority | None = None,
	enabled: Yes | None = None,
	missed_run_policy: Name | None = None,
	overlap_policy: Name | None = None,
	jitter_seconds: Number | None = None,
	start_at: Name | None = None,
	end_at: Name | None = None,
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


@endpoint("POST")
def pause(schedule: Name, reason: Reason | None = None) -> dict:
	schedules.pause(schedule, reason)
	return get(schedule)


@endpoint("POST")
def resume(schedule: Name) -> dict:
	"""Its jobs run as whoever resumes it."""
	return _shown(schedules.resume(schedule))


@endpoint("POST")
def trigger(schedule: Name) -> dict:
	"""Makes a job now, as whoever asks for it, and answers with its name."""
	return {"schedule": schedule, "job": schedules.trigger(schedule)}


@endpoint("GET", "POST")
def upcoming(schedule: Name, count: Count = schedules.UPCOMING) -> list[str]:
	"""The next fire times."""
	return [moment.isoformat() for moment in schedules.upcoming(schedule, count)]


@endpoint("GET", "POST")
def preview(
	cron_expression: Name,
	time_zone: Name | None = None,
	start_at: Name | None = None,
	end_at: Name | None = None,
	count: Count = schedules.UPCOMING,
) -> list[str]:
	"""The fire times that a schedule would have; its window is in wall-clock times of its zone."""
	moments = schedules.preview(cron_expression, time_zone, count, start_at=start_at, end_at=end_at)
	return [moment.isoformat() for moment in moments]


@endpoint("GET", "POST")
def list_fires(
	schedule: Name,
	outcome: Annotated[str, Choice(fires.OUTCOMES)] | None = None,
	cursor: PageOfMoments | None = None,
	limit: PageSize = 20,
) -> dict:
	"""What became of a schedule's fire times, last ones first; `next` is the `cursor` of the next page."""
	row = schedules.to_act_on(schedule, "read")
	filters = [["job_schedule", "=", schedule]]
	if outcome:
		filters.append(["outcome", "=", outcome])
	page, more = _page(fires.DOCTYPE, "fire_at", filters, cursor, limit)
	return {"fires": [_shown_fire(fire, row) for fire in page], "next": more}


def _page(
	doctype: str, moment: str, filters: list, cursor: tuple | None, limit: int
) -> tuple[list, str | None]:
	rows = _behind(doctype, moment, filters, cursor, limit + 1)
	page = rows[:limit]
	return page, f"{page[-1][moment]}{BAR}{page[-1].name}" if len(rows) > limit else None


def _behind(doctype: str, moment: str, filters: list, cursor: tuple | None, limit: int) -> list:
	def newest(*more: list) -> list:
		order = f"{moment} desc, name desc"
		return frappe.get_list(doctype, filters=[*filters, *more], fields=["*"], order_by=order, limit=limit)

	if not cursor:
		return newest()
	at, name = cursor
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
	"""In UTC, if its zone is gone: one such schedule must not hide the others."""
	name = fire_times.zone_of(schedule)
	zone = ZoneInfo(name if cron.is_zone(name) else "UTC")
	return moment and moment.replace(tzinfo=timezone.utc).astimezone(zone).isoformat()


def _wall_time(moment) -> str | None:
	"""On the schedule's own clock, so it has no offset."""
	return clock.parse(moment).isoformat() if moment else None
