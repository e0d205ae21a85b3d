"""Job Run: one row per attempt, written when it starts and once more when it ends."""

import json
from datetime import datetime

from frappe.utils import cint

from dartwing_jobs.engine import rows, sanitize, statements

DOCTYPE = "Job Run"
RUNNING = "Running"
COMPLETED = "Completed"
FAILED = "Failed"
SKIPPED = "Skipped"
# what a list of runs tells; one run tells everything
COLUMNS = (
	"name",
	"background_job",
	"organization",
	"status",
	"attempt",
	"uncounted",
	"job_type",
	"job_template",
	"started_at",
	"finished_at",
	"duration_seconds",
	"worker",
	"cost_cents",
	"output_reference",
	"error_type",
	"error_class",
	"error_message",
)
TRACEBACK_LENGTH = 20_000
MESSAGE_LENGTH = 2_000
# parameters up to this length are copied to each run, whether it counts or not
REPEATED_LENGTH = 2_000


def begin(job, name: str, now: datetime, worker: str) -> None:
	statements.insert(DOCTYPE, [row(job, name, RUNNING, now, worker)])


def row(job, name: str, status: str, started_at: datetime, worker: str, **columns) -> dict:
	"""The columns of a run that is written for the first time."""
	new = rows.new(
		job.owner_user,
		started_at,
		background_job=job.name,
		organization=job.organization,
		status=status,
		attempt=job.attempt,
		started_at=started_at,
		worker=worker,
		job_type=job.job_type,
		job_template=job.job_template,
		params_snapshot=_snapshot(job),
		**columns,
	)
	return {**new, "name": name}


def _snapshot(job) -> str | None:
	"""What the attempt is given. Large parameters of a job that snoozes are copied once for each attempt."""
	given = statements.as_json(job.input_parameters)
	is_repeated = job.uncounted_runs and given and len(given) > REPEATED_LENGTH
	return None if is_repeated else given


def given_to(run) -> str | None:
	"""What a run was given: its own copy, or that of the run which was the first to try this attempt."""
	if run.params_snapshot is not None:
		return run.params_snapshot
	found = statements.fetch(
		"""select params_snapshot from `tabJob Run` where background_job = %s and attempt = %s
		and params_snapshot is not null order by name desc limit 1""",
		(run.background_job, run.attempt),
	)
	return found[0].params_snapshot if found else None


def end(name: str, status: str, seconds: float, now: datetime, **columns) -> None:
	statements.update(DOCTYPE, name, {**ended(status, seconds, now), **columns})


def ended(status: str, seconds: float, now: datetime) -> dict:
	"""What the end of a run changes."""
	return {"status": status, "finished_at": now, "modified": now, "duration_seconds": seconds}


def running_of(job_name: str):
	"""The run of a job that is Running; None when it is gone."""
	found = statements.fetch(
		"""select name, started_at, worker from `tabJob Run`
		where background_job = %s and status = 'Running' order by attempt desc limit 1""",
		(job_name,),
	)
	return found[0] if found else None


def read(name: str):
	"""A run with all that is known of it; None when it is gone."""
	rows = statements.fetch("select * from `tabJob Run` where name = %s", (name,))
	return rows[0] if rows else None


def of_job(job_name: str, limit: int, before: tuple[int, str] | None = None) -> list:
	"""A job's runs, newest first, from the attempt and name on at which a page ended."""
	condition, values = "", [job_name]
	if before:
		condition = "and (attempt < %s or (attempt = %s and name < %s))"
		values += [before[0], *before]
	return statements.fetch(
		f"""select {", ".join(COLUMNS)} from `tabJob Run` where background_job = %s {condition}
		order by attempt desc, name desc limit {cint(limit)}""",
		values,
	)


def whose(job_name: str):
	"""The organization and the owner of a job, as its runs remember them; they may outlive it."""
	rows = statements.fetch(
		"select organization, owner as owner_user from `tabJob Run` where background_job = %s limit 1",
		(job_name,),
	)
	return rows[0] if rows else None


def error_columns(error: BaseException, error_type: str, traceback: str) -> dict:
	error_class = class_of(error)
	told = {"type": error_type, "class": error_class, "message": message_of(error)}
	return {
		"error_type": error_type,
		"error_class": error_class,
		"error_message": told["message"],
		"error": json.dumps(told),
		"traceback": sanitize.end(traceback, TRACEBACK_LENGTH),
	}


def class_of(error: BaseException) -> str:
	return sanitize.storable(f"{type(error).__module__}.{type(error).__qualname__}"[:140])


def message_of(error: BaseException) -> str:
	"""What went wrong, for people: without secrets, and never empty."""
	return sanitize.beginning(_text_of(error) or type(error).__name__, MESSAGE_LENGTH)


def _text_of(error: BaseException) -> str:
	"""An error's text is made by its own class, which may fail at it in any way."""
	try:
		return str(error)
	except BaseException:
		return f"{type(error).__name__} (its text cannot be read)"
