"""Templates over HTTP: used by whoever may submit, managed by whoever may write them. Times are RFC 3339."""

import frappe
from frappe import _
from frappe.utils import cint

from dartwing_jobs import clock
from dartwing_jobs import parameters as job_parameters
from dartwing_jobs.api.jobs import MOST_AT_ONCE, submit_in_own_transaction, submitted
from dartwing_jobs.engine.intake import templates
from dartwing_jobs.errors import InvalidJobError

BAR = "|"


@frappe.whitelist(methods=["GET", "POST"])
def list_templates(
	organization: str | None = None,
	job_type: str | None = None,
	status: str | None = None,
	cursor: str | None = None,
	limit: int = 20,
) -> dict:
	"""A page of the templates one may use or read, newest first; `next` is the `cursor` of the next page."""
	given = {"organization": organization, "job_type": job_type, "status": status}
	filters = {name: value for name, value in given.items() if value}
	limit = min(max(cint(limit), 1), MOST_AT_ONCE)
	rows = templates.find(filters, limit + 1, _cursor(cursor))
	page = rows[:limit]
	more = f"{page[-1].creation}{BAR}{page[-1].name}" if len(rows) > limit else None
	return {"templates": [_shown(row) for row in page], "next": more}


@frappe.whitelist(methods=["GET", "POST"])
def get(template: str) -> dict:
	return _shown(_row(template))


@frappe.whitelist(methods=["POST"])
def create(
	template_name: str,
	job_type: str,
	organization: str | None = None,
	default_params: dict | str | None = None,
	description: str | None = None,
) -> dict:
	"""Makes a template in an organization; without one it is for all, and only System Managers may."""
	fields = {"template_name": template_name, "job_type": job_type, "organization": organization}
	fields |= {"default_params": default_params, "description": description}
	return _shown(frappe.get_doc({"doctype": templates.DOCTYPE, **fields}).insert())


@frappe.whitelist(methods=["POST"])
def update(
	template: str,
	template_name: str | None = None,
	job_type: str | None = None,
	default_params: dict | str | None = None,
	description: str | None = None,
) -> dict:
	"""Changes what is given. Jobs that were made keep what they were made of."""
	fields = {"template_name": template_name, "job_type": job_type}
	fields |= {"default_params": default_params, "description": description}
	doc = _document(template)
	doc.update({name: value for name, value in fields.items() if value is not None})
	return _shown(doc.save())


@frappe.whitelist(methods=["POST"])
def archive(template: str) -> dict:
	"""No new jobs are made from it; its schedules are disabled, and named in the answer."""
	doc = _document(template)
	doc.status = templates.ARCHIVED
	doc.save()
	return {**_shown(doc), "disabled_schedules": doc.flags.disabled_schedules or []}


@frappe.whitelist(methods=["POST"])
def restore(template: str) -> dict:
	"""Jobs can be made from it again; its schedules stay disabled until somebody enables them."""
	doc = _document(template)
	doc.status = templates.ACTIVE
	return _shown(doc.save())


@frappe.whitelist(methods=["POST"])
def delete(template: str) -> dict:
	"""Takes it away; its jobs and runs stay, its schedules are disabled, and named in the answer."""
	doc = _document(template)
	doc.check_permission("delete")
	stopped = doc.stop_schedules(_("deleted"))
	doc.delete()
	return {"template": template, "disabled_schedules": stopped}


@frappe.whitelist(methods=["POST"])
def submit(
	template: str,
	overrides: dict | str | None = None,
	organization: str | None = None,
	priority: str | int | None = None,
	scheduled_for: str | None = None,
	depends_on: str | None = None,
	idempotency_key: str | None = None,
	unique_key: str | None = None,
	if_duplicate: str = "answer",
	job_queue: str | None = None,
	timeout_seconds: int | None = None,
	max_retries: int | None = None,
	project_id: str | None = None,
	correlation_id: str | None = None,
	traceparent: str | None = None,
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


def _cursor(text: str | None) -> tuple | None:
	if not text:
		return None
	moment, _bar, name = text.partition(BAR)
	created = clock.parse(moment)
	if not (created and name):
		frappe.throw(_("{0} is not where a page ended.").format(text), InvalidJobError)
	return created, name
