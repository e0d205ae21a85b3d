"""Writes the rows of Job Execution Log: the story of a job, append-only."""

from datetime import datetime

import frappe

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


def write(job, event: str, from_status: str | None, to_status: str, **details) -> None:
	"""Adds one row in the caller's transaction; `details` as for `row`."""
	_insert(row(job, event, from_status, to_status, **details))


def row(
	job,
	event: str,
	from_status: str | None,
	to_status: str,
	*,
	now: datetime,
	actor: str | None = None,
	message: str | None = None,
	changes: dict | None = None,
) -> dict:
	"""The columns of a row; `job` is a document or a row, `changes` what a move set."""
	changes = changes or {}
	own = {
		"name": frappe.generate_hash(length=20),
		"owner": frappe.session.user,
		"creation": now,
		"modified": now,
		"modified_by": frappe.session.user,
		"background_job": job.name,
		"event": event,
		"from_status": from_status,
		"to_status": to_status,
		"timestamp": now,
		"actor": actor,
		"message": message,
		"attempt": changes.get("attempt", job.get("attempt")) or 0,
		"retry_attempt": changes.get("retry_count", job.get("retry_count")) or 0,
	}
	return own | {field: changes.get(field, job.get(field)) for field in FROM_THE_JOB}


def insert_rows(rows: list[dict]) -> None:
	"""Many rows in a few statements."""
	if rows:
		values = [list(row.values()) for row in rows]
		frappe.db.bulk_insert("Job Execution Log", list(rows[0]), values, chunk_size=1000)


def _insert(columns: dict) -> None:
	frappe.qb.into("Job Execution Log").columns(*columns).insert(*columns.values()).run()
