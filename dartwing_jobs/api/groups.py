"""Groups over HTTP: each function checks, calls the engine, and shapes the answer. Times are RFC 3339."""

from datetime import datetime

import frappe
from frappe import _
from frappe.utils import cint

from dartwing_jobs import clock, tenancy
from dartwing_jobs.api.jobs import MOST_AT_ONCE, shown
from dartwing_jobs.engine import database
from dartwing_jobs.engine.groups import groups
from dartwing_jobs.errors import InvalidJobError

SHOWN = (
	"name",
	"group_name",
	"organization",
	"owner",
	"mode",
	"on_failure",
	"status",
	"creation",
	"ended_at",
	"callback_job_type",
	"callback_on",
	"callback_job",
	"callback_error",
	"cancel_requested_at",
	"cancel_requested_by",
	"cancel_reason",
)
BAR = "|"
# what a job of a group may be given; as for a single one
OF_A_JOB = frozenset(
	{
		"job_type",
		"parameters",
		"priority",
		"scheduled_for",
		"depends_on",
		"on_parent_failure",
		"idempotency_key",
		"unique_key",
		"job_queue",
		"timeout_seconds",
		"max_retries",
		"project_id",
		"correlation_id",
		"traceparent",
	}
)


@frappe.whitelist(methods=["POST"])
def create(
	name: str,
	jobs: list | dict | str,
	organization: str | None = None,
	mode: str = "Parallel",
	on_failure: str = "Stop",
	on_completion: dict | str | None = None,
) -> dict:
	"""Makes a group and all its jobs, or nothing, and answers with the group.

	`jobs` are objects with a `job_type`, `parameters` and options of submit; or one such object whose
	`parameters` are a list. `on_completion` is a job type, or an object with `job_type`, `parameters`, `on`.
	"""
	given, callback = _parsed(jobs), on_completion
	_check_jobs([given] if isinstance(given, dict) else given)
	if isinstance(callback, str) and callback.lstrip().startswith("{"):
		callback = _parsed(callback)
	options = {"organization": organization, "mode": mode, "on_failure": on_failure}
	make = database.own_transaction(groups.group)
	return _shown(make(name, given, on_completion=callback, **options))


@frappe.whitelist()
def get(group: str) -> dict:
	"""The group as its members make it now: status, percent, and how many are in which status."""
	return {**_shown(groups.group_to_act_on(group)), **groups.group_progress(group)}


@frappe.whitelist()
def members(group: str, cursor: str | None = None, limit: int = 20) -> dict:
	"""A page of the group's jobs in the order of their places; `next` is the `cursor` of the next page.

	A job that was tried again as another one stands there, too, and shares its place.
	"""
	groups.group_to_act_on(group)
	limit = min(max(cint(limit), 1), MOST_AT_ONCE)
	rows = groups.members_of(group, _position_and_name(cursor), limit + 1)
	page = rows[:limit]
	more = f"{page[-1].position}{BAR}{page[-1].name}" if len(rows) > limit else None
	return {"jobs": [{**shown(row), "position": row.position} for row in page], "next": more}


@frappe.whitelist(methods=["POST"])
def cancel(group: str, reason: str | None = None) -> dict:
	"""Cancels the jobs that wait, asks those that run to stop, and answers with what is left to do."""
	database.own_transaction(groups.cancel_group)(group, reason)
	return get(group)


@frappe.whitelist(methods=["GET", "POST"])
def list_groups(
	organization: str | None = None, status: str | None = None, cursor: str | None = None, limit: int = 20
) -> dict:
	"""A page of the groups one may follow, newest first; `next` is the `cursor` of the next page."""
	limit = min(max(cint(limit), 1), MOST_AT_ONCE)
	filters = {"organization": organization, "status": status}
	visible = tenancy.group_conditions(frappe.session.user)
	rows = groups.find(filters, visible, _moment_and_name(cursor), limit + 1)
	page = rows[:limit]
	more = f"{page[-1].creation}{BAR}{page[-1].name}" if len(rows) > limit else None
	return {"groups": [_shown(row) for row in page], "next": more}


def _parsed(value):
	try:
		return frappe.parse_json(value)
	except ValueError as error:
		return frappe.throw(_("This is not valid JSON: {0}.").format(error), InvalidJobError)


def _check_jobs(jobs) -> None:
	if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
		frappe.throw(_("Jobs are a list of JSON objects, or one object."), InvalidJobError)
	if unknown := sorted({name for job in jobs for name in job} - OF_A_JOB):
		frappe.throw(_("A job has no option {0}.").format(", ".join(unknown)), InvalidJobError)


def _shown(group) -> dict:
	return {name: _plain(group.get(name)) for name in SHOWN}


def _plain(value):
	return clock.rfc3339(value) if isinstance(value, datetime) else value


def _position_and_name(cursor: str | None) -> tuple[int, str] | None:
	if not cursor:
		return None
	position, _bar, name = cursor.partition(BAR)
	if not (position.isdecimal() and name):
		_refuse(cursor)
	return int(position), name


def _moment_and_name(cursor: str | None) -> tuple[datetime, str] | None:
	if not cursor:
		return None
	moment, _bar, name = cursor.partition(BAR)
	created = clock.parse(moment)
	if not (isinstance(created, datetime) and name):
		_refuse(cursor)
	return created, name


def _refuse(cursor: str) -> None:
	frappe.throw(_("{0} is not where a page ended.").format(cursor), InvalidJobError)
