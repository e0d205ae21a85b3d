"""What an attempt must know of its Job Type, and what that means."""

from dartwing_jobs.engine import statements
from dartwing_jobs.engine.rules import policies
from dartwing_jobs.engine.rules.backoff import Backoff

IN_A_PROCESS_OF_ITS_OWN = "Process"
NEW_JOB = "New Job"
COLUMNS = (
	"name",
	"handler_method",
	"requires_permission",
	"category",
	"retry_mode",
	"isolation",
	"backoff_base_seconds",
	"backoff_cap_seconds",
	"paused",
	"pause_reason",
	"max_running",
	"rate_limit",
	"rate_window_seconds",
	"writable_doctypes",
)


def read(name: str):
	"""The row of a Job Type; None when it is gone."""
	rows = statements.fetch(
		f"select {statements.packed(COLUMNS)} as packed from `tabJob Type` where name = %s", (name,)
	)
	return statements.unpack(rows[0].packed) if rows else None


def backoff_of(job_type) -> Backoff:
	"""The type's own waits, or its category's where it says nothing."""
	category = policies.category_of(job_type)
	base = (job_type and job_type.backoff_base_seconds) or category.backoff_base_seconds
	return Backoff(base, (job_type and job_type.backoff_cap_seconds) or category.backoff_cap_seconds)


def is_isolated(job_type) -> bool:
	return bool(job_type) and job_type.isolation == IN_A_PROCESS_OF_ITS_OWN


def retries_as_new_job(job_type) -> bool:
	return bool(job_type) and job_type.retry_mode == NEW_JOB
