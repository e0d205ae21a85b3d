"""What a handler is given beside its parameters: ids, progress, checkpoints, steps, notes, files, jobs."""

from collections import deque
from collections.abc import Callable
from typing import Any

import frappe

from dartwing_jobs import clock
from dartwing_jobs.engine import log, sanitize, statements, states
from dartwing_jobs.engine.handling import outputs, steps, write_guard
from dartwing_jobs.errors import JobCanceled, LeaseLost, WorkerStopping

MESSAGE_LENGTH = 140
NOTE = "job.note"
NOTE_LENGTH = 2000
# notes wait in memory until they are committed with the work; of very many the last ones count
MOST_NOTES = 1000


class Snooze:
	"""Returned by a handler: run this job again after so many seconds; the attempt does not count."""

	def __init__(self, seconds: float):
		self.seconds = max(0.0, float(seconds))


class JobContext:
	"""One attempt at one job, seen from inside the handler."""

	def __init__(self, job, lease_token: str, watchdog=None):
		self._lease_token = lease_token
		self._watchdog = watchdog
		self._job = job
		self._notes: deque[dict] = deque(maxlen=MOST_NOTES)
		self.last_report: dict = {}
		self.job_name: str = job.name
		self.job_id: str = job.job_id
		self.job_type: str = job.job_type
		self.organization: str = job.organization
		self.owner_user: str = job.owner_user
		self.attempt: int = job.attempt
		self.correlation_id: str | None = job.correlation_id
		self.output: dict[str, Any] = {}
		self.output_reference: str | None = None
		self.cost_cents: int = 0

	def progress(self, percent: float, message: str | None = None) -> None:
		"""Reports how far the work is. Others see it at once, whatever the handler's transaction does."""
		columns = {"progress": min(100.0, max(0.0, float(percent)))}
		if message is not None:
			columns["progress_message"] = sanitize.text(str(message))[:MESSAGE_LENGTH]
		self.last_report |= columns
		if self._watchdog:
			self._watchdog.report(self.job_name, columns)
		else:
			statements.update("Background Job", self.job_name, columns)

	def checkpoint(self) -> None:
		"""Commits what the handler has done so far, unless the job was canceled or must be given back."""
		row = self._row_if_ours()
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
			known = steps.remember(self._job, key, function(*args, **kwargs), clock.now())
			self._row_if_ours()
			self._commit()
		return known.result

	def log(self, message: str) -> None:
		"""Adds a note to the job's story. It stays there when the handler's own work is rolled back."""
		text = sanitize.text(_storable(str(message)))[:NOTE_LENGTH]
		frappe.logger("dartwing_jobs").info("%s attempt %s: %s", self.job_name, self.attempt, text)
		details = {"now": clock.now(), "actor": self.owner_user, "message": text}
		self._notes.append(log.row(self._job, NOTE, states.RUNNING, states.RUNNING, **details))

	def write_notes(self) -> None:
		"""In the transaction that keeps the work so far, or that records how the attempt ended."""
		log.insert_rows(list(self._notes))

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
		frappe.db.commit()  # nosemgrep: a checkpoint keeps what has been done so far
		self._notes.clear()

	def _row_if_ours(self):
		"""The job's row, locked; whoever lost the job keeps nothing of what they did."""
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


def _storable(text: str) -> str:
	"""A note must never be the reason why an outcome cannot be written."""
	return text.encode(errors="replace").decode().replace("\x00", "\ufffd")
