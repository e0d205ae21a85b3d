"""Jobs over HTTP: each function checks, calls the engine once, and shapes the answer. Times are RFC 3339."""

from datetime import datetime

import frappe
from frappe.utils import cint

from dartwing_jobs import clock, tenancy
from dartwing_jobs import parameters as job_parameters
from dartwing_jobs.engine import control, database, pauses, successors
from dartwing_jobs.engine import submit as engine_submit

SHOWN = (
	"name",
	"job_id",
	"job_type",
	"organization",
	"owner_user",
	"status",
	"priority",
	"progress",
	"progress_message",
	"output_reference",
	"error_message",
	"error_type",
	"attempt",
	"retry_count",
	"max_retries",
	"depends_on",
	"retry_of",
	"job_template",
	"project_id",
	"request_id",
	"correlation_id",
	"idempotency_key",
	"unique_key",
	"traceparent",
	"actor_type",
	"actor_id",
	"origin_queue",
	"created_at",
	"scheduled_for",
	"started_at",
	"completed_at",
	"canceled_at",
	"next_retry_at",
)
MOST_AT_ONCE = 200
# what anybody of the organization learns of a job whose key they have used, too
SEEN_BY_ALL = ("name", "job_id", "job_type", "organization", "status")


@frappe.whitelist(methods=["POST"])
def submit(
	job_type: str,
	parameters: dict | str | None = None,
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
	job_group: str | None = None,
	position: int | None = None,
) -> dict:
	"""Submits a job and answers with it, or with the one that was submitted before it (`duplicate`)."""
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
		"job_group": job_group,
		"position": position,
	}
	given = (job_type, parameters, organization, options)
	return submitted(submit_in_own_transaction(engine_submit.submit, *given))


@frappe.whitelist(methods=["POST"])
def submit_many(
	job_type: str,
	parameters: list | str,
	organization: str | None = None,
	priority: str | int | None = None,
	idempotency_keys: list | str | None = None,
	if_duplicate: str = "answer",
	project_id: str | None = None,
	correlation_id: str | None = None,
) -> list[str]:
	"""Submits a job for each set of parameters and answers with their names, or those of earlier ones."""
	options = {
		"priority": priority,
		"idempotency_keys": frappe.parse_json(idempotency_keys),
		"if_duplicate": if_duplicate,
		"project_id": project_id,
		"correlation_id": correlation_id,
	}
	many = frappe.parse_json(parameters)
	return submit_in_own_transaction(engine_submit.submit_many, job_type, many, organization, options)


@frappe.whitelist(methods=["POST"])
def cancel(job: str, reason: str | None = None) -> dict:
	return {"job": job, "status": control.cancel(job, reason)}


@frappe.whitelist(methods=["POST"])
def run_now(job: str) -> dict:
	control.run_now(job)
	return {"job": job}


@frappe.whitelist(methods=["POST"])
def retry(job: str) -> dict:
	"""Submits a dead or canceled job again and answers with the new one."""
	return shown(control.retry(job))


@frappe.whitelist()
def status(job: str) -> dict:
	"""The job, why it waits although it is due, and who stands for it now: its last successor, or itself."""
	row = control.job_to_act_on(job)
	return {**shown(row), "held_reason": pauses.why_it_waits(row), "latest": successors.latest(job)}


@frappe.whitelist()
def history(job: str) -> list[dict]:
	"""The job's story, oldest first."""
	control.job_to_act_on(job)
	fields = ["timestamp", "event", "from_status", "to_status", "actor", "message", "attempt", "details"]
	order = "timestamp asc, name asc"
	rows = frappe.get_all("Job Execution Log", filters={"background_job": job}, fields=fields, order_by=order)
	return [{**_plain_row(row), "details": job_parameters.load(row.details)} for row in rows]


@frappe.whitelist(methods=["GET", "POST"])
def list_jobs(
	organization: str | None = None,
	status: str | None = None,
	job_type: str | None = None,
	after: str | None = None,
	limit: int = 20,
) -> dict:
	"""A page of the jobs one may see, newest first; `next` is the `after` of the next page."""
	given = {"organization": organization, "status": status, "job_type": job_type}
	filters = [[name, "=", value] for name, value in given.items() if value]
	limit = min(max(cint(limit), 1), MOST_AT_ONCE)
	rows = _older(filters, after, limit + 1) if after else _newest(filters, limit + 1)
	page = rows[:limit]
	more = f"{page[-1].creation}|{page[-1].name}" if len(rows) > limit else None
	return {"jobs": [shown(row) for row in page], "next": more}


def _older(filters: list, after: str, limit: int) -> list:
	created, _bar, name = after.partition("|")
	at_the_same_moment = _newest([*filters, ["creation", "=", created], ["name", "<", name]], limit)
	return [*at_the_same_moment, *_newest([*filters, ["creation", "<", created]], limit)]


def _newest(filters: list, limit: int) -> list:
	order = "creation desc, name desc"
	return frappe.get_list("Background Job", filters=filters, fields=["*"], order_by=order, limit=limit)


def submit_in_own_transaction(submit, what: str, parameters, organization: str | None, options: dict):
	"""A request has no other work that could be lost: what meets another transaction is tried again here."""
	given = {name: value for name, value in options.items() if value is not None}
	return database.own_transaction(submit)(what, parameters, organization, must_submit=True, **given)


def submitted(job) -> dict:
	"""The answer to a submit; of an earlier job that is somebody else's no more than that it is there."""
	if job.duplicate and not tenancy.may_act_on(job, frappe.session.user):
		return {**{name: job.get(name) for name in SEEN_BY_ALL}, "duplicate": True}
	output = {"output": job.output} if job.output is not None else {}
	return {**shown(job), "duplicate": job.duplicate, **output}


def shown(job) -> dict:
	"""A job as the world sees it."""
	answer = {name: _plain(job.get(name)) for name in SHOWN}
	return {**answer, "parameters": job_parameters.load(job.get("input_parameters"))}


def _plain_row(row) -> dict:
	return {name: _plain(value) for name, value in row.items()}


def _plain(value):
	return clock.rfc3339(value) if isinstance(value, datetime) else value
