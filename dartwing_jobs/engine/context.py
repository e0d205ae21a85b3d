"""What a handler is given beside its parameters: ids, progress, checkpoints, places for results."""

from collections.abc import Callable
from typing import Any

import frappe

from dartwing_jobs.engine import bell
from dartwing_jobs.errors import JobCanceled, LeaseLost, WorkerStopping

MESSAGE_LENGTH = 140


class Snooze:
	"""Returned by a handler: run this job again after so many seconds; the attempt does not count."""

	def __init__(self, seconds: float):
		self.seconds = max(0.0, float(seconds))


class JobContext:
	"""One attempt at one job, seen from inside the handler."""

	def __init__(self, job, lease_token: str, report: Callable[[dict], None] | None = None):
		self._lease_token = lease_token
		self._report = report or self._report_here
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
			columns["progress_message"] = str(message)[:MESSAGE_LENGTH]
		self._report(columns)

	def checkpoint(self) -> None:
		"""Commits what the handler has done so far, unless the job was canceled or must be given back."""
		row = self._locked_row()
		if row is None:
			frappe.db.rollback()
			raise LeaseLost(f"{self.job_name} is no longer ours")
		if row.cancel_requested_at:
			raise JobCanceled(f"{self.job_name} was canceled")
		if bell.is_stopping():
			raise WorkerStopping("The worker was stopped")
		frappe.db.commit()  # nosemgrep: a checkpoint keeps what has been done so far

	def log(self, message: str) -> None:
		frappe.logger("dartwing_jobs").info("%s attempt %s: %s", self.job_name, self.attempt, message)

	def _report_here(self, columns: dict) -> None:
		frappe.db.set_value("Background Job", self.job_name, columns, update_modified=False)

	def _locked_row(self):
		rows = frappe.db.get_values(
			"Background Job",
			{"name": self.job_name, "lease_token": self._lease_token},
			["name", "cancel_requested_at"],
			as_dict=True,
			for_update=True,
		)
		return rows[0] if rows else None
