"""A job's story, told from its log alone: what the rows of Job Execution Log, oldest first, make of a job."""

import json

import frappe

from dartwing_jobs.engine import log, outcomes, states, transitions
from dartwing_jobs.engine.control import CANCEL_REQUESTED
from dartwing_jobs.engine.dead_letters import DISCARDED
from dartwing_jobs.engine.rules.queues import DEAD_LETTERS

# moves have numbers: clocks differ and are set back, and site time is, too, every autumn
OLDEST_FIRST = "move_number asc, name asc"
# of a row of the log, for those who may follow the job
TOLD = ("timestamp", "event", "from_status", "to_status", "actor", "message", "attempt")
# the fields of a job that are history, not what somebody asked for
FIELDS = (
	"status",
	"owner_user",
	"job_queue",
	"attempt",
	"retry_count",
	"created_at",
	"started_at",
	"completed_at",
	"canceled_at",
	"canceled_by",
	"cancel_requested_at",
	"cancel_requested_by",
	"discarded_at",
	"discarded_by",
	"discard_reason",
	"error_message",
	"error_type",
	"error_class",
	*log.FROM_THE_JOB,
	*log.DETAILS,
)
MOMENTS = ("next_retry_at",)
ERROR_TYPES = {
	states.FAILED: outcomes.TRANSIENT,
	states.TIMED_OUT: outcomes.TRANSIENT,
	states.DEAD_LETTER: outcomes.PERMANENT,
}
NOBODYS_FAILURE = frozenset({outcomes.SNOOZED, outcomes.INTERRUPTED})


def read(job_name: str) -> frappe._dict:
	"""Tells the story of one job."""
	rows = frappe.get_all(
		"Job Execution Log", filters={"background_job": job_name}, fields=["*"], order_by=OLDEST_FIRST
	)
	return tell(rows)


def page(job_name: str, after: tuple[int, str] | None, limit: int) -> list:
	"""Rows of one job's log, oldest first, from behind the number of a move and a name on."""

	def oldest(*more: list) -> list:
		filters = [["background_job", "=", job_name], *more]
		fields = ["name", "move_number", *TOLD, "details"]
		options = {"fields": fields, "order_by": OLDEST_FIRST, "limit": limit}
		return frappe.get_all("Job Execution Log", filters=filters, **options)

	if not after:
		return oldest()
	move, name = after
	behind = oldest(["move_number", "=", move], ["name", ">", name])
	return [*behind, *oldest(["move_number", ">", move])][:limit]


def tell(rows: list) -> frappe._dict:
	"""What the log says of a job."""
	job = frappe._dict.fromkeys(FIELDS)
	for row in rows:
		if row.event == CANCEL_REQUESTED:
			job |= {"cancel_requested_at": row.timestamp, "cancel_requested_by": row.actor}
		elif row.event == DISCARDED:
			job |= {"discarded_at": row.timestamp, "discarded_by": row.actor, "discard_reason": row.message}
		elif row.from_status != row.to_status:
			_hear_of_move(job, row)
	return job


def _hear_of_move(job: dict, row) -> None:
	job |= {field: row[field] for field in log.FROM_THE_JOB}
	job |= {"job_queue": row.job_queue, "attempt": row.attempt, "retry_count": row.retry_attempt}
	job |= _ended_attempt(row) if row.from_status == states.RUNNING else {}
	job |= _entered(row)
	job |= _details(row)


def _entered(row) -> dict:
	"""What entering a status leaves on a job."""
	entered = {"status": row.to_status}
	if row.from_status is None:
		entered |= {"created_at": row.timestamp, "owner_user": row.actor}
	if row.to_status in transitions.STAMPS:
		entered[transitions.STAMPS[row.to_status]] = row.timestamp
	if row.to_status == states.CANCELED:
		entered["canceled_by"] = row.actor
	if row.to_status == states.DEAD_LETTER:
		entered["job_queue"] = DEAD_LETTERS
	if row.to_status in (states.RUNNING, states.COMPLETED, states.DEAD_LETTER):
		entered["next_retry_at"] = None
	return entered


def _ended_attempt(row) -> dict:
	if row.to_status == states.COMPLETED:
		return dict(outcomes.NO_ERROR)
	if row.event in NOBODYS_FAILURE or row.to_status not in ERROR_TYPES:
		return {}
	told = {"error_message": row.message, "error_type": ERROR_TYPES[row.to_status]}
	return {**told, "error_class": row.error_class}


def _details(row) -> dict:
	told = row.details or {}
	told = json.loads(told) if isinstance(told, str) else told
	moments = {field: frappe.utils.get_datetime(told[field]) for field in MOMENTS if field in told}
	return told | moments
