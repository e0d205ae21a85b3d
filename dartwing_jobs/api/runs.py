"""Runs over HTTP, for whoever may follow the job: its attempts, and the jobs that followed it. RFC 3339."""

import json
from datetime import datetime

import frappe
from frappe import _

from dartwing_jobs import clock, tenancy
from dartwing_jobs import parameters as job_parameters
from dartwing_jobs.api.arguments import BAR, MOST_AT_ONCE, Name, PageOfNumbers, PageSize
from dartwing_jobs.api.endpoint import endpoint
from dartwing_jobs.document import shown
from dartwing_jobs.engine import control, runs, statements, successors
from dartwing_jobs.messages import throw

LINK = ("name", "status", "attempt", "retry_of", "link", "run", "run_status", "created_at", "completed_at")


@endpoint("GET", "POST")
def list_runs(job: Name, cursor: PageOfNumbers | None = None, limit: PageSize = 20) -> dict:
	"""A page of a job's runs, newest first; `next` is the `cursor` of the next page."""
	if not _may_follow(_whose(job)):
		control.refuse_missing(job)
	rows = runs.of_job(job, limit + 1, cursor)
	page = rows[:limit]
	more = f"{page[-1].attempt}{BAR}{page[-1].name}" if len(rows) > limit else None
	return {"runs": [_shown(row) for row in page], "next": more}


@endpoint("GET", "POST")
def get(run: Name) -> dict:
	"""One run: also what it was given and what it gave back. The traceback is for admins."""
	row = runs.read(run)
	if row is None or not _may_follow(frappe._dict(organization=row.organization, owner_user=row.owner)):
		throw(_("Job Run {0} was not found.").format(shown(run)), frappe.DoesNotExistError)
	told = {name: _loaded(row.get(name)) for name in ("output", "error")}
	if frappe.has_permission("Job Run", "read"):
		told["traceback"] = row.traceback
	return {**_shown(row), "parameters": job_parameters.load(runs.given_to(row)), **told}


@endpoint("GET", "POST")
def chain(job: Name, cursor: Name | None = None, limit: PageSize = MOST_AT_ONCE) -> list[dict]:
	"""The jobs that follow each other by `retry_of`, oldest first, as far as one may follow them.

	A page of them: the `name` of the last one is the `cursor` of the next page.
	"""
	links = successors.chain(control.job_to_act_on(job).name)
	names = [link.name for link in links]
	behind = links[names.index(cursor) + 1 :] if cursor in names else links
	page = [row for row in behind if _may_follow(row)][:limit]
	return [{name: _plain(row[name]) for name in LINK} for row in page]


def _whose(job: str):
	"""Runs may outlive their job: then they say themselves whose it was."""
	fields = ["organization", "owner_user"]
	return frappe.db.get_value("Background Job", job, fields, as_dict=True) or runs.whose(job)


def _may_follow(row) -> bool:
	return row is not None and tenancy.may_act_on(row, frappe.session.user)


def _shown(row) -> dict:
	answer = {name: _plain(row.get(name)) for name in runs.COLUMNS}
	return {**answer, "uncounted": bool(row.uncounted)}


def _loaded(stored):
	text = statements.as_json(stored)
	return json.loads(text) if text else None


def _plain(value):
	return clock.rfc3339(value) if isinstance(value, datetime) else value
