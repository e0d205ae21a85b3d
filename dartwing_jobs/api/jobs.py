"""Jobs over HTTP: each function checks, calls the engine once, and shapes the answer. Times are RFC 3339."""

import uuid
from datetime import datetime

import frappe

from dartwing_jobs import clock, tenancy
from dartwing_jobs import parameters as job_parameters
from dartwing_jobs.api.arguments import (
	BAR,
	MOST_AT_ONCE,
	Key,
	ListOfJson,
	Name,
	Number,
	PageOfMoments,
	PageOfNumbers,
	PageSize,
	ParametersOfJob,
	Priority,
	Reason,
	Status,
	Yes,
)
from dartwing_jobs.api.endpoint import endpoint
from dartwing_jobs.engine import control, database, pauses, story
from dartwing_jobs.engine import submit as engine_submit
from dartwing_jobs.engine.handling import outputs
from dartwing_jobs.engine.intake import bounds

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
	"error_class",
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
# what anybody of the organization learns of a job whose key they have used, too
SEEN_BY_ALL = ("name", "job_id", "job_type", "organization", "status")


@endpoint("POST")
def submit(
	job_type: Name,
	parameters: ParametersOfJob | None = None,
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
	job_group: Name | None = None,
	position: Number | None = None,
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


@endpoint("POST")
def submit_many(
	job_type: Name,
	parameters: ListOfJson,
	organization: Name | None = None,
	priority: Priority | None = None,
	idempotency_keys: ListOfJson | None = None,
	if_duplicate: Name = "answer",
	project_id: Name | None = None,
	correlation_id: Name | None = None,
) -> list[str]:
	"""Submits a job for each set of parameters and answers with their names, or those of earlier ones."""
	bounds.check_number(len(parameters))
	options = {
		"priority": priority,
		"idempotency_keys": idempotency_keys,
		"if_duplicate": if_duplicate,
		"project_id": project_id,
		"correlation_id": correlation_id,
	}
	return submit_in_own_transaction(engine_submit.submit_many, job_type, parameters, organization, options)


@endpoint("POST")
def cancel(job: Name, reason: Reason | None = None) -> dict:
	"""Cancels a job, or the last of its retries as new jobs: `Canceled`, or `Requested` while it runs."""
	return {"job": job, "status": database.own_transaction(control.cancel)(job, reason)}


@endpoint("POST")
def run_now(job: Name) -> dict:
	database.own_transaction(control.run_now)(job)
	return {"job": job}


@endpoint("POST")
def retry(job: Name, again: Yes = False) -> dict:
	"""Submits a dead or canceled job again and answers with the new one."""
	return shown(database.own_transaction(control.retry, _are_stored)(job, again))


@endpoint("GET", "POST", "PUT", "DELETE")
def status(job: Name) -> dict:
	"""The job, and what became of it: of itself, or of the last of its retries as new jobs (`latest`).

	That one's status, its output, and why it waits although it is due.
	"""
	row, last = control.job_to_act_on(job), control.latest_to_act_on(job)
	became = {"latest": last.name, "latest_status": last.status}
	became |= {"output": outputs.load(last.output), "held_reason": pauses.why_it_waits(last)}
	return {**shown(row), **became}


@endpoint("GET", "POST", "PUT", "DELETE")
def history(job: Name, cursor: PageOfNumbers | None = None, limit: PageSize = MOST_AT_ONCE) -> list[dict]:
	"""A page of the job's story, oldest first; the last event's `cursor` is that of the next page."""
	rows = story.page(control.job_to_act_on(job).name, cursor, limit)
	return [_shown_event(row) for row in rows]


@endpoint("GET", "POST")
def list_jobs(
	organization: Name | None = None,
	status: Status | None = None,
	job_type: Name | None = None,
	after: PageOfMoments | None = None,
	limit: PageSize = 20,
) -> dict:
	"""A page of the jobs one may see, newest first; `next` is the `after` of the next page."""
	given = {"organization": organization, "status": status, "job_type": job_type}
	filters = [[name, "=", value] for name, value in given.items() if value]
	rows = _older(filters, after, limit + 1) if after else _newest(filters, limit + 1)
	page = rows[:limit]
	more = f"{page[-1].created_utc}{BAR}{page[-1].name}" if len(rows) > limit else None
	return {"jobs": [shown(row) for row in page], "next": more}


def _older(filters: list, after: tuple, limit: int) -> list:
	created, name = after
	at_the_same_moment = _newest([*filters, ["created_utc", "=", created], ["name", "<", name]], limit)
	return [*at_the_same_moment, *_newest([*filters, ["created_utc", "<", created]], limit)]


def _newest(filters: list, limit: int) -> list:
	order = "created_utc desc, name desc"
	return frappe.get_list("Background Job", filters=filters, fields=["*"], order_by=order, limit=limit)


def submit_in_own_transaction(submit, what: str, parameters, organization: str | None, options: dict):
	"""A request has no other work that could be lost: what meets another transaction is tried again here.

	Each try has the same job id. So a commit that is still under way, unseen, refuses the next try.
	"""
	given = {name: value for name, value in options.items() if value is not None}
	given |= {"job_id": str(uuid.uuid4()), "must_submit": True}
	return database.own_transaction(submit, _are_stored)(what, parameters, organization, **given)


def _are_stored(submitted) -> bool:
	"""Whether the job, or all of these names, can be found: a transaction is kept as a whole."""
	names = set(submitted if isinstance(submitted, list) else [submitted.name])
	return frappe.db.count("Background Job", {"name": ["in", sorted(names)]}) == len(names)


def submitted(job) -> dict:
	"""The answer to a submit; of an earlier job that is somebody else's no more than that it is there."""
	if job.duplicate and not tenancy.may_act_on(job, frappe.session.user):
		return {**{name: job.get(name) for name in SEEN_BY_ALL}, "duplicate": True}
	output = {"output": job.output} if job.output is not None else {}
	return {**shown(job), "duplicate": job.duplicate, **output}


def shown(job) -> dict:
	"""A job as the world sees it."""
	answer = {name: _plain(job.get(name)) for name in SHOWN}
	answer["scheduled_for"] = clock.rfc3339_of_utc(job.get("scheduled_utc"))
	return {**answer, "parameters": job_parameters.load(job.get("input_parameters"))}


def _shown_event(row) -> dict:
	told = {name: _plain(row[name]) for name in story.TOLD}
	cursor = f"{row.move_number}{BAR}{row.name}"
	return {**told, "details": job_parameters.load(row.details), "cursor": cursor}


def _plain(value):
	return clock.rfc3339(value) if isinstance(value, datetime) else value
