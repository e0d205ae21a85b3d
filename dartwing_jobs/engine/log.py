"""Writes the rows of Job Execution Log: the story of a job, append-only."""

import json
from datetime import datetime

import frappe

from dartwing_jobs.engine import naming, rows, sanitize, statements
from dartwing_jobs.engine.observing import counters, journal

# what each row takes over from its job, so that it can be read alone
FROM_THE_JOB = (
	"organization",
	"project_id",
	"job_id",
	"job_type",
	"actor_type",
	"actor_id",
	"request_id",
	"correlation_id",
)
# what else belongs to a job's story: told when it is born with it, or when a move sets it
DETAILS = (
	"retry_of",
	"job_template",
	"job_schedule",
	"origin_queue",
	"next_retry_at",
	"output_reference",
	"cost_cents",
)
ROWS_AT_ONCE = 1000
DOCTYPE = "Job Execution Log"


def write(job, event: str, from_status: str | None, to_status: str, **told) -> None:
	"""Adds one row in the caller's transaction; the rest as for `row`."""
	insert_rows([row(job, event, from_status, to_status, **told)])


def row(
	job,
	event: str,
	from_status: str | None,
	to_status: str,
	*,
	now: datetime,
	actor: str | None = None,
	message: str | None = None,
	by: str | None = None,
	changes: dict | None = None,
	details: dict | None = None,
	error_class: str | None = None,
	duration_seconds: float | None = None,
) -> dict:
	"""The columns of a row; `job` is a document or a row, `changes` what a move set, `by` who does it.

	`duration_seconds` is the attempt's, on a row that ends one.
	"""
	changes, by = changes or {}, by or frappe.local.session.user
	row = rows.new(
		by,
		now,
		background_job=job.name,
		event=event,
		from_status=from_status,
		to_status=to_status,
		timestamp=now,
		actor=actor,
		message=message and sanitize.text(message),
		attempt=changes.get("attempt", job.get("attempt")) or 0,
		retry_attempt=changes.get("retry_count", job.get("retry_count")) or 0,
		# a dead letter's: where it waited
		job_queue=changes.get("origin_queue") or job.get("origin_queue") or job.get("job_queue"),
		details=_as_json(_told_by(changes if from_status else job) | (details or {})),
		error_class=error_class,
		duration_seconds=duration_seconds or 0.0,
		move_number=changes.get("moves", job.get("moves")) if from_status else 0,
		uncounted=1 if event in counters.COUNTED else 0,
	)
	for field in FROM_THE_JOB:
		row[field] = changes.get(field, job.get(field))
	return row


def retold(row: dict, jobs: list) -> list[dict]:
	"""The same event of other jobs that differ in their names, numbers and, if they have any, schedules."""
	told = [
		{**row, "name": name, "background_job": job.name, "job_id": job.job_id}
		for job, name in zip(jobs, naming.next_row_names(len(jobs)), strict=True)
	]
	for job, its_row in zip(jobs, told, strict=True):
		if job.job_schedule:
			its_row |= {field: job.get(field) for field in FROM_THE_JOB}
			its_row["details"] = row["details"] and _as_json(_told_by(job))
	return told


def insert_rows(events: list[dict]) -> None:
	"""Many rows in a few statements, now."""
	trip = statements.Trip()
	add_rows(events, trip)
	trip.send()
	tell(events)


def add_rows(events: list[dict], trip: statements.Trip) -> None:
	"""The same when the trip is sent."""
	for start in range(0, len(events), ROWS_AT_ONCE):
		trip.insert(DOCTYPE, events[start : start + ROWS_AT_ONCE])


def tell(events: list[dict]) -> None:
	"""What they say is said in the journal, too, after the commit."""
	if events:
		journal.tell_after_commit(events)


def _told_by(source) -> dict:
	return {field: value for field in DETAILS if (value := source.get(field))}


def _as_json(details: dict) -> str | None:
	"""Most moves have nothing to add."""
	return json.dumps(details, default=str) if details else None
