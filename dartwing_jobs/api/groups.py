"""Groups over HTTP: each function checks, calls the engine, and shapes the answer. Times are RFC 3339."""

from datetime import datetime
from typing import Annotated

import frappe
from frappe import _

from dartwing_jobs import clock, tenancy
from dartwing_jobs.api.arguments import (
	BAR,
	Callback,
	Choice,
	Name,
	ObjectOrList,
	PageOfMoments,
	PageOfNumbers,
	PageSize,
	Reason,
)
from dartwing_jobs.api.endpoint import endpoint
from dartwing_jobs.api.jobs import shown
from dartwing_jobs.document import shown as shown_value
from dartwing_jobs.engine import database
from dartwing_jobs.engine.groups import groups, statuses
from dartwing_jobs.engine.intake import bounds
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.messages import throw

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


@endpoint("POST")
def create(
	name: Name,
	jobs: ObjectOrList,
	organization: Name | None = None,
	mode: Name = "Parallel",
	on_failure: Name = "Stop",
	on_completion: Callback | None = None,
) -> dict:
	"""Makes a group and all its jobs, or nothing, and answers with the group.

	`jobs` are objects with a `job_type`, `parameters` and options of submit; or one such object whose
	`parameters` are a list. `on_completion` is a job type, or an object with `job_type`, `parameters`, `on`.
	"""
	_check_jobs([jobs] if isinstance(jobs, dict) else jobs)
	bounds.check_number(_count(jobs))
	options = {"mode": mode, "on_failure": on_failure, "on_completion": on_completion}
	make = database.own_transaction(groups.make, lambda made: bool(frappe.db.exists("Job Group", made.name)))
	# each try has the same id: a commit that is still under way, unseen, refuses the next try
	return _shown(make(frappe.generate_hash(length=10), name, jobs, organization, **options))


@endpoint("GET", "POST", "PUT", "DELETE")
def get(group: Name) -> dict:
	"""The group as its members make it now: status, percent, and how many are in which status."""
	return {**_shown(groups.group_to_act_on(group)), **groups.group_progress(group)}


@endpoint("GET", "POST", "PUT", "DELETE")
def members(group: Name, cursor: PageOfNumbers | None = None, limit: PageSize = 20) -> dict:
	"""A page of the group's jobs in the order of their places; `next` is the `cursor` of the next page.

	A job that was tried again as another one stands there, too, and shares its place.
	"""
	groups.group_to_act_on(group)
	rows = groups.members_of(group, cursor, limit + 1)
	page = rows[:limit]
	more = f"{page[-1].position}{BAR}{page[-1].name}" if len(rows) > limit else None
	return {"jobs": [{**shown(row), "position": row.position} for row in page], "next": more}


@endpoint("POST")
def cancel(group: Name, reason: Reason | None = None) -> dict:
	"""Cancels the jobs that wait, asks those that run to stop, and answers with what is left to do."""
	database.own_transaction(groups.cancel_group)(group, reason)
	return get(group)


@endpoint("GET", "POST")
def list_groups(
	organization: Name | None = None,
	status: Annotated[str, Choice(statuses.ALL)] | None = None,
	cursor: PageOfMoments | None = None,
	limit: PageSize = 20,
) -> dict:
	"""A page of the groups one may follow, newest first; `next` is the `cursor` of the next page."""
	filters = {"organization": organization, "status": status}
	visible = tenancy.group_conditions(frappe.session.user)
	rows = groups.find(filters, visible, cursor, limit + 1)
	page = rows[:limit]
	more = f"{page[-1].creation}{BAR}{page[-1].name}" if len(rows) > limit else None
	return {"groups": [_shown(row) for row in page], "next": more}


def _count(jobs: list | dict) -> int:
	many = jobs if isinstance(jobs, list) else jobs.get("parameters")
	return len(many) if isinstance(many, list) else 1


def _check_jobs(jobs) -> None:
	if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
		throw(_("Jobs are a list of JSON objects, or one object."), InvalidJobError)
	if unknown := sorted({name for job in jobs for name in job} - OF_A_JOB):
		throw(_("A job has no option {0}.").format(", ".join(map(shown_value, unknown[:5]))), InvalidJobError)


def _shown(group) -> dict:
	return {name: _plain(group.get(name)) for name in SHOWN}


def _plain(value):
	return clock.rfc3339(value) if isinstance(value, datetime) else value
