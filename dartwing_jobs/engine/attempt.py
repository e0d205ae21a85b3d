"""One attempt at a job: start it, call its handler, record how it ended."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import frappe

from dartwing_jobs import clock, parameters, tenancy
from dartwing_jobs.engine import database, handlers, outcomes, runs, states, transitions
from dartwing_jobs.engine.context import JobContext, Snooze
from dartwing_jobs.engine.deadline import deadline
from dartwing_jobs.engine.fresh import fresh_frappe
from dartwing_jobs.errors import JobCanceled, JobTimeout, LeaseLost, WorkerStopping


class Attempt:
	"""What is known about an attempt while it runs."""

	def __init__(self, job, job_type, lease_token: str, run_name: str, started: datetime, watchdog=None):
		self.job = job
		self.job_type = job_type
		self.lease_token = lease_token
		self.run_name = run_name
		self.started = started
		self.watchdog = watchdog
		self.context = JobContext(job, lease_token, watchdog.report if watchdog else None)

	def move(
		self, to_status: str, now: datetime, message: str | None = None, actor: str | None = None, **columns
	):
		"""Moves the job if this attempt still holds it."""
		return transitions.move(
			self.job, to_status, now=now, message=message, actor=actor, lease=self.lease_token, **columns
		)

	def end_run(self, status: str, now: datetime, **columns) -> None:
		runs.end(self.run_name, status, self.started, now, cost_cents=self.context.cost_cents, **columns)

	def cost(self) -> dict:
		return {"cost_cents": (self.job.cost_cents or 0) + self.context.cost_cents}


def run(claimed, watchdog=None) -> None:
	"""Runs a job that was claimed: the story of a job's life in a worker."""
	attempt = start(claimed, watchdog)
	if attempt is None:
		return  # canceled, or taken back: nothing is owed
	with fresh_frappe(attempt.job.owner_user), watched(attempt):
		perform(attempt)


@contextmanager
def watched(attempt: Attempt) -> Iterator[None]:
	if not attempt.watchdog:
		yield
		return
	attempt.watchdog.watch(attempt.job, attempt.lease_token, attempt.run_name)
	try:
		yield
	finally:
		attempt.watchdog.rest()


@database.own_transaction
def start(claimed, watchdog=None) -> Attempt | None:
	"""Attempts are counted when they start, so that one that kills its worker counts too."""
	job = frappe.db.get_value("Background Job", claimed.name, "*", as_dict=True)
	if job is None or job.status != states.QUEUED:
		return None
	now = clock.now()
	columns = {"attempt": job.attempt + 1, "progress": 0, "progress_message": None, "next_retry_at": None}
	if not transitions.move(job, states.RUNNING, now=now, lease=claimed.lease_token, **columns):
		return None
	job_type = (
		frappe.get_cached_doc("Job Type", job.job_type)
		if frappe.db.exists("Job Type", job.job_type)
		else None
	)
	run_name = runs.begin(job, now, worker_name())
	return Attempt(job, job_type, claimed.lease_token, run_name, now, watchdog)


def perform(attempt: Attempt) -> None:
	"""Calls the handler and records its outcome. Its writes and its completion commit together."""
	try:
		if reason := refusal(attempt):
			record(outcomes.skipped, attempt, reason)
			return
		result = call_handler(attempt)
		if isinstance(result, Snooze):
			keep(attempt, outcomes.snoozed, result.seconds)
		else:
			keep(attempt, outcomes.completed, result)
	except JobCanceled:
		attempt.job.cancel_requested_by = frappe.db.get_value(
			"Background Job", attempt.job.name, "cancel_requested_by"
		)
		record(outcomes.canceled, attempt)
	except WorkerStopping as error:
		record(outcomes.handed_back, attempt, str(error))
	except LeaseLost:
		frappe.db.rollback()
	except JobTimeout as error:
		traceback = frappe.get_traceback()
		# the alarm may have torn a query in two: this connection's answers can no longer be trusted
		database.reconnect()
		record(outcomes.timed_out, attempt, error, traceback)
	except Exception as error:
		record(outcomes.failed, attempt, error, frappe.get_traceback())


def refusal(attempt: Attempt) -> str | None:
	"""Why this job may not run now, checked again before each attempt; None if it may."""
	job, job_type = attempt.job, attempt.job_type
	if job_type is None:
		return f"Job Type {job.job_type} not found"
	return tenancy.reason_not_to_run(job.owner_user, job.organization, job_type.requires_permission)


def call_handler(attempt: Attempt):
	handler = handlers.resolve(attempt.job_type.handler_method)
	given = parameters.load(attempt.job.input_parameters)
	around = {"method": attempt.job_type.handler_method, "kwargs": given, "transaction_type": "job"}
	_call_hooks("before_job", **around)
	result = None
	try:
		with deadline(attempt.job.timeout_seconds):
			result = handler(given, attempt.context)
	finally:
		_call_hooks("after_job", **around, result=result)
	return result


def _call_hooks(hook: str, **arguments) -> None:
	"""Other apps prepare and clean up around each job, as they do around Frappe's own."""
	for path in frappe.get_hooks(hook):
		frappe.call(path, **arguments)


def keep(attempt: Attempt, outcome, *details) -> None:
	"""Records an outcome together with what the handler wrote, or neither."""
	if outcome(attempt, *details, clock.now()):
		frappe.db.commit()  # nosemgrep: the handler's work and its completion are one
	else:
		frappe.db.rollback()


def record(outcome, attempt: Attempt, *details) -> None:
	"""Throws away what the handler wrote, then records what happened."""
	frappe.db.rollback()
	frappe.set_user("Administrator")
	database.own_transaction(outcome)(attempt, *details, clock.now())


def worker_name() -> str:
	return f"{socket.gethostname()}:{os.getpid()}"
