"""Submitting: a row and its first log rows in the caller's transaction, and a ring after the commit."""

import uuid
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache

import frappe
from frappe import _
from frappe.model.document import Document

from dartwing_jobs import parameters as job_parameters
from dartwing_jobs import settings, tenancy
from dartwing_jobs.document import checked
from dartwing_jobs.engine import (
	bell,
	database,
	dependents,
	inputs,
	listeners,
	log,
	naming,
	priorities,
	statements,
	states,
	submission,
)
from dartwing_jobs.engine.frozen import shipped_fields
from dartwing_jobs.engine.order import Places
from dartwing_jobs.engine.outcomes import TICK
from dartwing_jobs.errors import InvalidJobError

# what a submitter may say about a job beside its type, organization and parameters
OPTIONS = frozenset(
	{
		"priority",
		"scheduled_for",
		"depends_on",
		"on_parent_failure",
		"timeout_seconds",
		"max_retries",
		"owner_user",
		"job_queue",
		"project_id",
		"request_id",
		"correlation_id",
		"traceparent",
		"job_id",
		"job_template",
		"retry_of",
	}
)
DOCTYPE = "Background Job"
# what one statement writes at most
ROWS_AT_ONCE = 500
BYTES_AT_ONCE = 4_000_000
NUMBERS = frozenset({"Int", "Percent", "Check", "Float"})


def submit(
	job_type: str, parameters: dict | str | None = None, organization: str | None = None, **options
) -> Document:
	"""Submits one job and returns it. It runs once the caller's transaction has been committed."""
	with statements.in_one_go():
		job, its_type = _new_job(job_type, organization, options)
		(submitted,) = _insert(job, _storable(its_type, [parameters]), its_type)
	return frappe.get_doc({"doctype": DOCTYPE, **submitted})


def submit_many(
	job_type: str, many_parameters: list[dict], organization: str | None = None, **options
) -> list[str]:
	"""Submits a job for each set of parameters, with the same checks, in a few statements."""
	with statements.in_one_go():
		job, its_type = _new_job(job_type, organization, options)
		stored = _storable(its_type, many_parameters)
		return [one.name for one in _insert(job, stored, its_type)] if stored else []


def default_organization(user: str) -> str:
	"""The organization of somebody who has just one."""
	organizations = tenancy.permitted_organizations(user, "Background Job")
	if len(organizations) != 1:
		frappe.throw(_("Say for which organization the job is."), InvalidJobError)
	return organizations[0]


def _new_job(job_type: str, organization: str | None, options: dict) -> tuple:
	"""A job that was checked in every respect but its parameters, and is not written yet; and its type."""
	user = options.get("owner_user") or frappe.session.user
	job = frappe._dict(_blank_row(), **_checked_options(options))
	job.job_type, job.organization = job_type, organization or default_organization(user)
	job.priority = priorities.from_value(job.priority)
	submission.set_submitter(job)
	its_type = submission.type_of(job)
	if reason := tenancy.reason_not_to_submit(user, job.organization, its_type.requires_permission):
		frappe.throw(reason, frappe.PermissionError)
	submission.fill_in(job, its_type)
	submission.check(job, its_type)
	return job, its_type


def _storable(job_type, many_parameters: list) -> list[str | None]:
	label, most_bytes = _("Parameters"), settings.max_parameter_bytes()
	stored = [job_parameters.canonical(one, label, most_bytes) for one in many_parameters]
	job_parameters.check_secrets(job_type, stored)
	if job_type.parameters_schema:
		for one in stored:
			job_parameters.check_schema(job_type, one)
	return stored


def _checked_options(options: dict) -> dict:
	if unknown := sorted(set(options) - OPTIONS):
		frappe.throw(_("A job has no option {0}.").format(", ".join(unknown)), InvalidJobError)
	given = {name: value for name, value in options.items() if value not in (None, "")}
	return {name: checked(value, shipped_fields()[name], name) for name, value in given.items()}


@lru_cache
def _blank_row() -> dict:
	"""A job that says nothing: each field's default, or what its column has where there is none."""
	fields = shipped_fields().values()
	words = {field.fieldname: field.default for field in fields if field.fieldtype == "Select"}
	numbers = {field.fieldname: int(field.default or 0) for field in fields if field.fieldtype in NUMBERS}
	row = {**dict.fromkeys(shipped_fields()), **words, **numbers}
	return {**row, "doctype": DOCTYPE, "docstatus": 0, "idx": 0}


def _insert(first, stored_parameters: list[str | None], its_type) -> list:
	"""Writes a job for each set of parameters, all alike otherwise, and puts them in line."""
	first.run_at = _moment_to_wait_for(first)
	first.creation = first.modified = first.created_at
	first.modified_by = frappe.session.user
	del first["doctype"]  # it is no column
	jobs = [frappe._dict(first, input_parameters=one, job_id=str(uuid.uuid4())) for one in stored_parameters]
	jobs[0].job_id = first.job_id
	inputs.remember(jobs, its_type)
	naming.draw_job_names(len(jobs), lambda names: _name(jobs, names))
	if not (first.run_at or first.depends_on):
		_put_in_line(jobs)
	for batch in _batches(jobs):
		statements.arrive()  # the names that were drawn; and not all batches go in one packet
		statements.insert(DOCTYPE, batch)
		log.insert_rows(_first_log_rows(batch))
	call_workers_after_commit(first)
	for job in jobs:
		listeners.tell_after_commit(job.name, None, job.status)
	return jobs


def _moment_to_wait_for(job) -> datetime | None:
	"""When a delayed job falls due, in UTC; None when it is due already, or waits for its parent."""
	if not job.scheduled_for or job.depends_on:
		return None
	due = database.due_moment(job.scheduled_for)
	return due if due > database.utc_now() else None


def _name(jobs: list, names: list[str]) -> None:
	for job, name in zip(jobs, names, strict=True):
		job.name = name


def _put_in_line(jobs: list) -> None:
	places = Places(jobs[0].job_queue)
	for job in jobs:
		job.status = states.QUEUED
		job.update(places.next(job.organization, job.priority))


def _first_log_rows(jobs: list) -> list[dict]:
	"""The same story for each: that it was submitted, and that it stands in line."""
	first = jobs[0]
	told = {"now": first.created_at, "actor": first.owner_user}
	rows = [log.row(first, states.CREATION.event, None, states.PENDING, **told)]
	if first.status == states.QUEUED:
		event = states.transition(states.PENDING, states.QUEUED).event
		rows.append(log.row(first, event, states.PENDING, states.QUEUED, now=first.created_at + TICK))
	return [log.retold(row, job) for job in jobs for row in rows]


def _batches(jobs: list) -> Iterator[list]:
	"""No statement may be larger than a server takes, and parameters may be large."""
	batch, size = [], 0
	for job in jobs:
		length = len(job.input_parameters or "")
		if batch and (len(batch) == ROWS_AT_ONCE or size + length > BYTES_AT_ONCE):
			yield batch
			batch, size = [], 0
		batch.append(job)
		size += length
	yield batch


def call_workers_after_commit(job) -> None:
	"""Rings for a job that was submitted, whether it is due, falls due soon, or waits for its parent."""
	if job.depends_on:
		frappe.db.after_commit.add(lambda: dependents.follow(job.depends_on))
	elif job.run_at:
		bell.ring_when_due_after_commit(job.job_queue, job.run_at)
	else:
		bell.ring_after_commit(job.job_queue)
