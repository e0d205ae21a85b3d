"""What an attempt must know of its Job Type, and what that means."""

from collections.abc import Iterator

import frappe

from dartwing_jobs.engine import statements
from dartwing_jobs.engine.rules import policies
from dartwing_jobs.engine.rules.backoff import Backoff

IN_A_PROCESS_OF_ITS_OWN = "Process"
NEW_JOB = "New Job"
# a condition on the name of a type
IS_DISABLED = "exists (select 1 from `tabJob Type` where name = %s and is_enabled = 0)"
# what becomes of errors that nothing explains
NEVER, ONCE, AS_TRANSIENT = "Never", "Once", "As Transient"
# when the end of a job is recorded: with others, or before another one begins
BATCHED, AT_ONCE = "Batched", "At Once"
# work that is seen outside: done twice, it would be noticed
SEEN_OUTSIDE = frozenset({"Notification", "Import/Export"})
COLUMNS = (
	"name",
	"handler_method",
	"is_enabled",
	"requires_permission",
	"category",
	"retry_mode",
	"retry_unknown_errors",
	"isolation",
	"completion",
	"max_snoozes",
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


def disabled_among(names: set[str]) -> set[str]:
	"""Those of these types that are disabled now."""
	if not names:
		return set()
	rows = statements.fetch(
		f"""select name from `tabJob Type`
		where name in ({", ".join(["%s"] * len(names))}) and is_enabled = 0""",
		sorted(names),
	)
	return {row.name for row in rows}


def with_jobs() -> Iterator[str]:
	"""Each type that jobs have, even one that is gone: a step through the index per type, not per job."""
	job = frappe.qb.DocType("Background Job")
	first = frappe.qb.from_(job).select(job.job_type).orderby(job.job_type).limit(1)
	found = first.run(pluck=True)
	while found:
		yield found[0]
		found = first.where(job.job_type > found[0]).run(pluck=True)


def backoff_of(job_type) -> Backoff:
	"""The type's own waits, or its category's where it says nothing."""
	category = policies.category_of(job_type)
	base = (job_type and job_type.backoff_base_seconds) or category.backoff_base_seconds
	return Backoff(base, (job_type and job_type.backoff_cap_seconds) or category.backoff_cap_seconds)


def is_isolated(job_type) -> bool:
	return bool(job_type) and job_type.isolation == IN_A_PROCESS_OF_ITS_OWN


def completes_at_once(job_type, job) -> bool:
	"""As the type says; otherwise by what would happen if its last moments were repeated."""
	if not job_type:
		return True
	if job_type.completion:
		return job_type.completion == AT_ONCE
	return job.max_retries == 0 or job_type.category in SEEN_OUTSIDE


def retries_as_new_job(job_type) -> bool:
	return bool(job_type) and job_type.retry_mode == NEW_JOB


def retries_of_unknown_errors(job_type) -> str:
	return (job_type and job_type.retry_unknown_errors) or ONCE
