"""What a handler is given beside its parameters: ids, progress, checkpoints, steps, notes, events, files."""

from collections import deque
from collections.abc import Callable
from datetime import datetime
from numbers import Number
from typing import Any

import frappe

from dartwing_jobs import clock, parameters
from dartwing_jobs.engine import log, sanitize, statements, states
from dartwing_jobs.engine.handling import commit_guard, events, outputs, steps, write_guard
from dartwing_jobs.engine.rules import snoozes
from dartwing_jobs.errors import JobCanceled, LeaseLost, PermanentError, WorkerStopping

MESSAGE_LENGTH = 140
NOTE = "job.note"
NOTE_LENGTH = 2000
# notes wait in memory until they are committed with the work; of very many the last ones count
MOST_NOTES = 1000
# what an Int column holds on MariaDB
MOST_CENTS = 2**31 - 1
# what each job carries, beside its organization, moments and parameters
IDS = ("job_id", "job_type", "project_id", "actor_type", "actor_id", "request_id", "correlation_id")
IDS += ("idempotency_key", "traceparent")


class Snooze:
	"""Returned by a handler: run this job again after so many seconds; the attempt does not count.

	At least a second later, and later still when it was often asked for (`engine/rules/snoozes.py`).
	"""

	def __init__(self, seconds: float):
		self.seconds = snoozes.checked(seconds)


class JobContext:
	"""One attempt at one job, seen from inside the handler."""

	def __init__(
		self,
		job,
		lease_token: str,
		watchdog=None,
		now: Callable[[], datetime] = clock.now,
		moves: int | None = None,
	):
		self._lease_token = lease_token
		self._now = now
		self._watchdog = watchdog
		self._job = job
		self._moves = job.moves if moves is None else moves  # of a job that is Running
		self._notes: deque[dict] = deque(maxlen=MOST_NOTES)
		self._events: list[dict] = []
		self.last_report: dict = {}
		self.job_name: str = job.name
		self.job_id: str = job.job_id
		self.job_type: str = job.job_type
		self.organization: str = job.organization
		self.owner_user: str = job.owner_user
		self.attempt: int = job.attempt
		self.project_id: str | None = job.project_id
		self.actor_type: str = job.actor_type
		self.actor_id: str = job.actor_id
		self.request_id: str = job.request_id
		self.correlation_id: str = job.correlation_id
		self.idempotency_key: str = job.idempotency_key
		self.traceparent: str | None = job.traceparent
		self.output: dict[str, Any] = {}
		self._output_reference: str | None = None
		self._cost_cents: float = 0

	@property
	def output_reference(self) -> str | None:
		"""Where the output is: an address, or a name."""
		return self._output_reference

	@output_reference.setter
	def output_reference(self, reference: str | None) -> None:
		self._output_reference = outputs.reference(reference)

	@property
	def cost_cents(self) -> float:
		"""What the attempt has cost so far. Fractions add up; the sum is stored without them."""
		return self._cost_cents

	@cost_cents.setter
	def cost_cents(self, cents: float) -> None:
		if not isinstance(cents, Number) or isinstance(cents, complex) or cents != cents:  # NaN is not itself
			raise PermanentError(f"cost_cents is a number of cents, not {repr(cents)[:40]}.")
		self._cost_cents = bounded_cost(cents)

	@property
	def created_at(self) -> str:
		"""When the job was submitted (RFC 3339)."""
		return _told(self._job.created_utc)

	@property
	def scheduled_for(self) -> str | None:
		"""When it was to run, if its submitter said so (RFC 3339)."""
		return _told(self._job.scheduled_utc)

	def contract(self) -> dict:
		"""All that a job carries, by the names that other systems know it by; made of what JSON has."""
		ids = {name: getattr(self, name) for name in IDS}
		moments = {"created_at": self.created_at, "scheduled_for": self.scheduled_for}
		return {
			**ids,
			"org_id": self.organization,
			**moments,
			"payload": parameters.load(self._job.input_parameters),
		}

	def progress(self, percent: float, message: str | None = None) -> None:
		"""Reports how far the work is. Others see it at once, whatever the handler's transaction does."""
		columns = {"progress": min(100.0, max(0.0, float(percent)))}
		if message is not None:
			columns["progress_message"] = sanitize.beginning(str(message), MESSAGE_LENGTH)
		self.last_report |= columns
		if self._watchdog:
			self._watchdog.report(self.job_name, columns)
		else:
			statements.update("Background Job", self.job_name, columns)

	def checkpoint(self) -> None:
		"""Commits what the handler has done so far, unless the job was canceled or must be given back."""
		row = self.hold()
		if row.cancel_requested_at:
			raise JobCanceled(f"{self.job_name} was canceled", requested_by=row.cancel_requested_by)
		if self._watchdog and self._watchdog.is_stopping():
			raise WorkerStopping("The worker was stopped")
		self._commit()

	def idempotent(self, key: str, function: Callable, *args, **kwargs) -> Any:
		"""Does a step once in the life of a job, however often the job is tried; answers with its result.

		A checkpoint before, so that nothing irreversible is begun in vain, and a commit right after it: what
		happens later to the attempt does not undo the memory of what was done. Results are kept as JSON.
		"""
		known = steps.find(self.job_name, key)
		if known is None:
			self.checkpoint()
			known = steps.remember(self._job, key, function(*args, **kwargs), self._now())
			self.hold()
			self._commit()
		return known.result

	def log(self, message: str) -> None:
		"""Adds a note to the job's story. It stays there when the handler's own work is rolled back."""
		self._notes.append(self._row(NOTE, sanitize.beginning(str(message), NOTE_LENGTH)))

	def event(self, name: str, fields: dict | None = None, message: str | None = None) -> None:
		"""Adds an audit event of the handler's own to the job's story, such as EMAIL_SENT with its recipient.

		As a note it stays there when the handler's own work is rolled back. Raises when it cannot be kept.
		"""
		events.check_name(name)
		events.check_number(len(self._events))
		told = message and sanitize.beginning(str(message), NOTE_LENGTH)
		self._events.append(self._row(name, told, events.storable(fields)))

	def write_notes(self) -> None:
		"""In the transaction that keeps the work so far, or that records how the attempt ended."""
		log.insert_rows(self.rows_of_notes())

	def rows_of_notes(self) -> list[dict]:
		return [*self._notes, *self._events]

	def drop_reports(self) -> None:
		"""Forgets what the handler said of its work: it cannot be stored."""
		self.last_report, self._cost_cents = {}, 0
		self._notes.clear()
		self._events.clear()

	def submit(self, job_type: str, parameters: dict | None = None, **options):
		"""Submits another job for the same organization and owner, in the handler's transaction."""
		from dartwing_jobs.engine.submit import submit

		inherited = {"owner_user": self.owner_user, "priority": self._job.priority}
		with write_guard.lifted():
			return submit(job_type, parameters, self.organization, **(inherited | options))

	def attach(self, file_name: str, content: bytes | str) -> str:
		"""Keeps an output as a private file, for those who may read the job; answers with its address."""
		with write_guard.lifted():
			self.output_reference = outputs.attach(self.job_name, file_name, content)
		return self.output_reference

	def _commit(self) -> None:
		self.write_notes()
		commit_guard.commit_held()
		self._notes.clear()
		self._events.clear()

	def _row(self, event: str, message: str | None, details: dict | None = None) -> dict:
		told = {"now": self._now(), "actor": self.owner_user, "message": message, "details": details}
		told["changes"] = {"moves": self._moves}
		return log.row(self._job, event, states.RUNNING, states.RUNNING, **told)

	def hold(self):
		"""The job's row, locked until the commit. One that has lost its job keeps nothing of its work."""
		row = self._locked_row()
		if row is None:
			frappe.db.rollback()
			raise LeaseLost(f"{self.job_name} is no longer ours")
		return row

	def _locked_row(self):
		rows = statements.fetch(
			"""select cancel_requested_at, cancel_requested_by from `tabBackground Job`
			where name = %s and lease_token = %s for update""",
			(self.job_name, self._lease_token),
		)
		return rows[0] if rows else None


def bounded_cost(cents: float) -> float:
	return max(-MOST_CENTS, min(cents, MOST_CENTS))


def _told(utc: str | None) -> str | None:
	return clock.rfc3339_of_utc(datetime.fromisoformat(utc)) if utc else None
