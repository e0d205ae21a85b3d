"""One attempt at a job: start it, call its handler, record its end and start the next in one commit."""

import os
import socket
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache

import frappe

from dartwing_jobs import clock, parameters
from dartwing_jobs.engine import (
	database,
	fresh,
	lease,
	order,
	outcomes,
	runs,
	sanitize,
	statements,
	states,
	transitions,
)
from dartwing_jobs.engine.facts import Facts
from dartwing_jobs.engine.handling import handlers, inputs, job_hooks, write_guard
from dartwing_jobs.engine.handling.context import JobContext, Snooze
from dartwing_jobs.engine.handling.deadline import deadline
from dartwing_jobs.engine.intake import payload
from dartwing_jobs.engine.observing import tracing
from dartwing_jobs.errors import JobCanceled, JobTimeout, LeaseLost, WorkerStopping

# what a drain does next, inside the transaction that ends an attempt: the next attempt, or None
Then = Callable[[], "Attempt | None"]


class Attempt:
	"""What is known about an attempt while it runs."""

	def __init__(
		self, job, job_type, lease_token: str, run_name: str, started: datetime, worker: str, watchdog=None
	):
		self.job, self.job_at_start = job, dict(job)
		self.job_type = job_type
		self.lease_token = lease_token
		self.run_name = run_name
		self.started = started
		self.worker = worker
		self.watchdog = watchdog
		self.context = JobContext(job, lease_token, watchdog)
		self.refusal: str | None = None  # why it may not run after all
		# after a signal that tore a query in two, nothing in this process is to be trusted
		self.is_poisoned = False
		self.limits: list = []  # what it was counted under when it started

	def move(
		self,
		to_status: str,
		now: datetime,
		message: str | None = None,
		error: BaseException | None = None,
		details: dict | None = None,
		**columns,
	) -> None:
		"""Moves the job if this attempt still holds it; otherwise nothing that it did may be kept."""
		transitions.apply(
			self.job,
			to_status,
			now=now,
			message=message,
			by=self.job.owner_user,
			guard={"lease_token": self.lease_token},
			or_raise=LeaseLost(f"{self.job.name} is no longer ours"),
			told={
				"error_class": runs.class_of(error) if error else None,
				"duration_seconds": runs.duration(self.started, now),
				"details": details,
			},
			**columns,
		)

	def end_run(self, status: str, now: datetime, **columns) -> None:
		self.context.write_notes()
		runs.end(self.run_name, status, self.started, now, cost_cents=self.context.cost_cents, **columns)

	def cost(self) -> dict:
		return {"cost_cents": (self.job.cost_cents or 0) + self.context.cost_cents}

	def last_report(self) -> dict:
		"""The last progress that the handler reported, in case it was not written yet."""
		return dict(self.context.last_report)


def start(job, lease_seconds: float, facts: Facts, watchdog=None) -> Attempt:
	"""Starts a job that is locked. Attempts count from here, so that one that kills its worker counts too."""
	now = clock.now()
	held = lease.new_lease(job.claimed_at, lease_seconds)
	columns = {**order.OUT_OF_LINE, "attempt": job.attempt + 1, "progress": 0, "progress_message": None}
	columns |= {"next_retry_at": None, **held}
	locked = LeaseLost(f"{job.name} was locked, and is no longer {job.status}")
	transitions.apply(job, states.RUNNING, now=now, by=job.owner_user, or_raise=locked, **columns)
	worker = worker_name()
	run_name = runs.begin(job, now, worker)
	attempt = Attempt(job, facts.type_of(job), held["lease_token"], run_name, now, worker, watchdog)
	attempt.refusal = facts.refusal(job)
	return attempt


def run(attempt: Attempt, then: Then) -> Attempt | None:
	"""Runs an attempt that was started; returns the next one, which was started when this one ended."""
	if attempt.watchdog:
		attempt.watchdog.watch(attempt.job, attempt.lease_token)
	fresh.become(attempt.job.owner_user)
	return perform(attempt, then)


def perform(attempt: Attempt, then: Then) -> Attempt | None:
	"""Calls the handler and records its outcome. Its writes and its completion commit together."""
	try:
		if attempt.refusal:
			return record(attempt, then, outcomes.skipped, attempt.refusal)
		result = call_handler(attempt)
		if isinstance(result, Snooze):
			return keep(attempt, then, outcomes.snoozed, result.seconds)
		return keep(attempt, then, outcomes.completed, result)
	except JobCanceled as canceled:
		return record(attempt, then, outcomes.canceled, canceled.requested_by)
	except WorkerStopping as error:
		return record(attempt, then, outcomes.handed_back, str(error))
	except LeaseLost:
		database.rollback()
		return database.own_transaction(then)()
	except JobTimeout as error:
		return record_timeout(attempt, then, error)
	except Exception as error:
		return record(attempt, then, outcomes.failed, error, frappe.get_traceback())


def call_handler(attempt: Attempt):
	handler = handlers.handler_at(attempt.job_type.handler_method)
	given = parameters.load(attempt.job.input_parameters)
	inputs.check(attempt.job, attempt.job_type)
	around = {"method": attempt.job_type.handler_method, "kwargs": given, "transaction_type": "job"}
	job_hooks.call("before_job", **around)
	result = None
	try:
		with (
			payload.running(attempt.job),
			tracing.running(attempt.job),
			write_guard.guarding(attempt.job_type),
			deadline(attempt.job.timeout_seconds),
		):
			result = handler(given, attempt.context)
	finally:
		job_hooks.call("after_job", **around, result=result)
	return result


def keep(attempt: Attempt, then: Then, outcome, *details) -> Attempt | None:
	"""Records an outcome together with what the handler wrote, or neither."""
	with statements.in_one_go():
		outcome(attempt, *details, clock.now())
		following = then()
		_announce(following)
		_commit(attempt)
	return following


def _commit(attempt: Attempt) -> None:
	"""The handler's work, its completion and the next start are one."""
	try:
		statements.commit()
	except LeaseLost:
		raise  # nothing was committed
	except Exception:
		# what the handler wanted done after the commit may fail; the commit itself has happened then
		if lease.is_held(attempt.job.name, attempt.lease_token):
			raise
		said = sanitize.text(frappe.get_traceback())
		frappe.log_error(title=f"{attempt.job.name}: after its commit", message=said)
		frappe.db.commit()  # nosemgrep: the error's record


def record(attempt: Attempt, then: Then, outcome, *details) -> Attempt | None:
	"""Throws away what the handler wrote, then records what happened, if the job is still ours."""
	database.rollback()
	frappe.set_user("Administrator")

	def end_and_go_on() -> Attempt | None:
		attempt.job = frappe._dict(attempt.job_at_start)  # whatever another end has tried to make of it
		with statements.in_one_go():
			outcome(attempt, *details, clock.now())
			following = then()
			_announce(following)
		return following

	try:
		return database.own_transaction(end_and_go_on)()
	except LeaseLost:
		return database.own_transaction(then)()


def record_timeout(attempt: Attempt, then: Then, error: JobTimeout) -> Attempt | None:
	"""The alarm may have torn a query in two: this connection and this process can no longer be trusted."""
	traceback = frappe.get_traceback()
	attempt.is_poisoned = True
	database.reconnect()
	return record(attempt, lambda: None, outcomes.timed_out, error, traceback)


def _announce(following: Attempt | None) -> None:
	"""Before the commit: should this process be killed right after it, the watchdog knows what it started."""
	if following and following.watchdog:
		following.watchdog.announce(following.job.name, following.lease_token)


def worker_name() -> str:
	return f"{_host()}:{os.getpid()}"


@lru_cache
def _host() -> str:
	return socket.gethostname()
