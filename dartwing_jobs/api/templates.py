"""Templates over HTTP: used by whoever may submit, managed by whoever may write them. Times are RFC 3339."""

from typing import Annotated

import frappe
from frappe import _

from dartwing_jobs import clock
from dartwing_jobs import parameters as job_parameters
from dartwing_jobs.api.arguments import (
	BAR,
	Choice,
	Key,
	LongText,
	Name,
	Number,
	PageOfMoments,
	PageSize,
	ParametersOfJob,
	Priority,
)
from dartwing_jobs.api.endpoint import endpoint
from dartwing_jobs.api.jobs import submit_in_own_transaction, submitted
from dartwing_jobs.engine.intake import templates


@endpoint("GET", "POST")
def list_templates(
	organization: Name | None = None,
	job_type: Name | None = None,
	status: Annotated[str, Choice((templates.ACTIVE, templates.ARCHIVED))] | None = None,
	cursor: PageOfMoments | None = None,
	limit: PageSize = 20,
) -> dict:
	"""A page of the templates one may use or read, newest first; `next` is the `cursor` of the next page."""
	given = {"organization": organization, "job_type": job_type, "status": status}
	filters = {name: value for name, value in given.items() if value}
	rows = templates.find(filters, limit + 1, cursor)
	page = rows[:limit]
	more = f"{page[-1].creation}{BAR}{page[-1].name}" if len(rows) > limit else None
	return {"templates": [_shown(row) for row in page], "next": more}


@endpoint("GET", "POST")
def get(template: Name) -> dict:
	return _shown(_row(template))


@endpoint("POST")
def create(
	template_name: Name,
	job_type: Name,
	organization: Name | None = None,
	default_params: ParametersOfJob | None = None,
	description: LongText | None = None,
) -> dict:
	"""Makes a template in an organization; without one it is for all, and only System Managers may."""
	fields = {"template_name": template_name, "job_type": job_type, "organization": organization}
	fields |= {"default_params": default_params, "description": description}
	return _shown(frappe.get_doc({"doctype": templates.DOCTYPE, **fields}).insert())


@endpoint("POST")
def update(
	template: Name,
	template_name: Name | None = None,
	job_type: Name | None = None,
	default_params: ParametersOfJob | None = None,
	description: LongText | None = None,
) -> dict:
	"""Changes what is given. Jobs that were made keep what they were made of."""
	fields = {"template_name": template_name, "job_type": job_type}
	fields |= {"default_params": default_params, "description": description}
	doc = _document(template)
	doc.update({name: value for name, value in fields.items() if value is not None})
	return _shown(doc.save())


@endpoint("POST")
def archive(template: Name) -> dict:
	"""No new jobs are made from it; its schedules are disabled, and named in the answer."""
	doc = _document(template)
	doc.status = templates.ARCHIVED
	doc.save()
	return {**_shown(doc), "disabled_schedules": doc.flags.disabled_schedules or []}


@endpoint("POST")
def restore(template: Name) -> dict:
	"""Jobs can be made from it again; its schedules stay disabled until somebody enables them."""
	doc = _document(template)
	doc.status = templates.ACTIVE
	return _shown(doc.save())


@endpoint("POST")
def delete(template: Name) -> dict:
	"""Takes it away; its jobs and runs stay, its schedules are disabled, and named in the answer."""
	doc = _document(template)
	doc.check_permission("delete")
	stopped = doc.stop_schedules(_("deleted"))
	doc.delete()
	return {"template": template, "disabled_schedules": stopped}


@endpoint("POST")
def submit(
	template: Name,
	overrides: ParametersOfJob | None = None,
	organization: Name | None = None,
	priority: Priority | None = None,
	scheduled_for: Name | None = None,
	depends_on: Name | None = None,
	idempotency_key: Key | None = None,
	unique_key: Name | None = None,
	if_duplicate: Name = "answer",
	job_queue: Name | None = None,
	timeout_seconds: Number | None = None,
	max_retries: Number | None = None,
	project_id: Name | None = None,
	correlation_id: Name | None = None,
	traceparent: Name | None = None,
) -> dict:
	"""Submits a job from a template and answers with it, or with the one that was submitted before it."""
	options = {
		"priority": priority,
		"scheduled_for": scheduled_for,
		"depends_on": depends_on,
		"idempotency_key": idempotency_key,
		"unique_key": unique_key,
		"if_duplicate": if_duplicate,
		"job_queue": job_queue,
		"timeout_seconds": timeout_seconds,
		"max_retries": max_retries,
		"project_id": project_id,
		"correlation_id": correlation_id,
		"traceparent": traceparent,
	}
	given = (template, overrides, organization, options)
	return submitted(submit_in_own_transaction(templates.submit_from_template, *given))


def _row(template: str):
	"""One that is there for this user; the same words for one that is not, whether it exists or not."""
	rows = templates.find({"name": template}, 1)
	return rows[0] if rows else templates.refuse_missing(template)


def _document(template: str):
	return frappe.get_doc(templates.DOCTYPE, _row(template).name)


def _shown(row) -> dict:
	answer = {name: row.get(name) for name in templates.COLUMNS}
	moments = {name: clock.rfc3339(clock.parse(row.get(name))) for name in ("creation", "modified")}
	return {**answer, **moments, "default_params": job_parameters.load(row.get("default_params"))}
