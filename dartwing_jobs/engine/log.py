"""Writes the rows of Job Execution Log: the story of a job, append-only."""

from datetime import datetime

import frappe

from dartwing_jobs.engine import naming, rows, sanitize, statements

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
ROWS_AT_ONCE = 1000


def write(job, event: str, from_status: str | None, to_status: str, **details) -> None:
	"""Adds one row in the caller's transaction; `details` as for `row`."""
	insert_rows([row(job, event, from_status, to_status, **details)])


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
) -> dict:
	"""The columns of a row; `job` is a document or a row, `changes` what a move set, `by` who does it."""
	changes, by = changes or {}, by or frappe.session.user
	own = rows.new(
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
	)
	return own | {field: changes.get(field, job.get(field)) for field in FROM_THE_JOB}


def retold(row: dict, job) -> dict:
	"""The same event of another job that differs in nothing but its name and number."""
	return {**row, "name": naming.next_row_name(), "background_job": job.name, "job_id": job.job_id}


def insert_rows(events: list[dict]) -> None:
	"""Many rows in a few statements."""
	for start in range(0, len(events), ROWS_AT_ONCE):
		statements.insert_last("Job Execution Log", events[start : start + ROWS_AT_ONCE])
