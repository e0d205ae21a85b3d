"""One attempt at a job: start it, call its handler, record its end and start the next in one commit."""

import contextlib
import logging
import os
import socket
from collections.abc import Callable, Iterator
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
	statements,
	states,
	transitions,
)
from dartwing_jobs.engine.facts import Facts
from dartwing_jobs.engine.handling import commit_guard, handlers, inputs, job_hooks, write_guard
from dartwing_jobs.engine.handling.context import JobContext, Snooze, bounded_cost
from dartwing_jobs.engine.handling.deadline import deadline
from dartwing_jobs.engine.handling.surroundings import Surroundings
from dartwing_jobs.engine.intake import payload
from dartwing_jobs.engine.observing import journal, reports, tracing
from dartwing_jobs.errors import EndNotStored, JobCanceled, JobTimeout, LeaseLost, WorkerStopping

# what a drain does next, inside the transaction that ends an attempt: the next attempt, or None
Then = Callable[[], "Attempt | None"]


class Attempt:
	"""What is known about an attempt while it runs."""

	def __init__(
		self,
		job,
		job_type,
		lease_token: str,
		run_name: str,
		started: datetime,
		worker: str,
		watchdog=None,
		watch: clock.Stopwatch | None = None,
	):
		self.job, self.job_at_start = job, dict(job)
		self.job_type = job_type
		self.lease_token = lease_token
		self.run_name = run_name
		self.started = started
		self.worker = worker
		self.watchdog = watchdog
		self.watch = watch  # none when another process ends it
		self.context = JobContext(job, lease_token, watchdog, self.now)
		self.refusal: str | None = None  # why it may not run after all
		# after a signal that tore a query in two, or a handler that changed it, this process runs no more
		self.is_poisoned = False
		self.surroundings: Surroundings | None = None
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
				"duration_seconds": self.seconds(now),
				"details": details,
			},
			**columns,
		)

	def now(self) -> datetime:
		return self.watch.now() if self.watch else clock.now()

	def seconds(self, now: datetime) -> float:
		"""How long it took."""
		return self.watch.seconds() if self.watch else clock.seconds_between(self.started, now)

	def poison(self, changes: list[str]) -> None:
		"""After changes to the surroundings of jobs, if there are any."""
		if changes:
			self.is_poisoned = True
			self.surroundings.put_back_what_the_engine_needs()
			what = " and ".join(changes)
			said = f"{self.job.name} finds or leaves {what} changed: its process runs no other job"
			journal.say(said, logging.WARNING, self.job)

	def end_run(self, status: str, now: datetime, **columns) -> None:
		self.context.write_notes()
		cost = int(self.context.cost_cents)
		runs.end(self.run_name, status, self.seconds(now), now, cost_cents=cost, **columns)

	def cost(self) -> dict:
		"""Of all attempts so far."""
		return {"cost_cents": bounded_cost((self.job.cost_cents or 0) + int(self.context.cost_cents))}

	def last_report(self) -> dict:
		"""The last progress that the handler reported, in case it was not written yet."""
		return dict(self.context.last_report)


def start(job, lease_seconds: float, facts: Facts, watchdog=None) -> Attempt:
	"""Starts a job that is locked. Attempts count from here, so that one that kills its worker counts too."""
	watch = clock.Stopwatch()
	now = watch.started
	held = lease.new_lease(job.claimed_at, lease_seconds)
	columns = {**order.OUT_OF_LINE, "attempt": job.attempt + 1, "progress": 0, "progress_message": None}
	columns |= {"next_retry_at": None, **held}
	locked = LeaseLost(f"{job.name} was locked, and is no longer {job.status}")
	transitions.apply(job, states.RUNNING, now=now, by=job.owner_user, or_raise=locked, **columns)
	worker = worker_name()
	run_name = runs.begin(job, now, worker)
	token = held["lease_token"]
	attempt = Attempt(job, facts.type_of(job), token, run_name, now, worker, watchdog, watch)
	attempt.refusal = facts.refusal(job)
	return attempt


def run(attempt: Attempt, then: Then) -> Attempt | None:
	"""Runs an attempt that was started; returns the next one, which was started when this one ended."""
	if attempt.watchdog:
		attempt.watchdog.watch(attempt.job, attempt.lease_token)
	fresh.become(attempt.job.owner_user)
	following = perform(attempt, lambda: None if attempt.is_poisoned else then())
	if attempt.is_poisoned:
		database.reconnect()  # the drain has something to do before it leaves
	return following


def perform(attempt: Attempt, then: Then) -> Attempt | None:
	"""Calls the handler and records its outcome. Its writes and its completion commit together."""
	if attempt.refusal:
		return record(attempt, then, outcomes.skipped, attempt.refusal)
	try:
		with commit_guard.guarding(attempt.context.hold):
			result = call_watched(attempt)
		return keep_result(attempt, then, result)
	except JobCanceled as canceled:
		return record(attempt, then, outcomes.canceled, canceled.requested_by)
	except WorkerStopping as error:
		return record(attempt, then, outcomes.handed_back, runs.message_of(error))
	except LeaseLost:
		database.rollback()
		return start_apart(then)
	except JobTimeout as error:
		return record_torn(attempt, outcomes.timed_out, error)
	except Exception as error:
		return record(attempt, then, outcomes.failed, error, frappe.get_traceback())
	except BaseException as error:
		# SystemExit, KeyboardInterrupt or asyncio.CancelledError: of the handler, and not of the drain
		return record_torn(attempt, outcomes.failed, error)


def call_watched(attempt: Attempt):
	"""While the handler runs, its deadline and its lease are watched; before and behind, the engine is."""
	if not attempt.watchdog:
		return call_handler(attempt)
	attempt.watchdog.hand_over()
	try:
		return call_handler(attempt)
	finally:
		attempt.watchdog.take_back()


def call_handler(attempt: Attempt):
	path, surroundings = attempt.job_type.handler_method, attempt.surroundings
	if surroundings is None:
		return call_with_hooks(attempt, handlers.handler_at(path))
	attempt.poison(surroundings.changed_since())
	if attempt.is_poisoned:
		raise WorkerStopping("The process was changed by the job before; this one needs a new process")
	with surroundings.changed_by_imports():
		handler = handlers.handler_at(path)
	try:
		return call_with_hooks(attempt, handler)
	finally:
		attempt.poison(surroundings.changed_by_job())


def call_with_hooks(attempt: Attempt, handler: Callable):
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
			fresh.kept(),
			deadline(attempt.job.timeout_seconds),
		):
			result = handler(given, attempt.context)
			handlers.check_result(attempt.job_type.handler_method, result)
	finally:
		job_hooks.call("after_job", **around, result=result)
	return result


def keep_result(attempt: Attempt, then: Then, result) -> Attempt | None:
	if isinstance(result, Snooze):
		return keep(attempt, then, outcomes.snoozed, result.seconds)
	return keep(attempt, then, outcomes.completed, result)


def keep(attempt: Attempt, then: Then, outcome, *details) -> Attempt | None:
	"""Records an outcome together with what the handler wrote, or neither."""
	with _in_our_words(), statements.in_one_go():
		outcome(attempt, *details, attempt.now())
		following = then()
		_announce(attempt, following)
		_commit(attempt)
	return following


@contextlib.contextmanager
def _in_our_words() -> Iterator[None]:
	"""What the database refuses to store now, it will refuse after every attempt."""
	try:
		yield
	except Exception as error:
		if not database.is_refusal(error):
			raise
		reason = runs.message_of(error).splitlines()[0]  # behind it PostgreSQL shows the whole row
		raise EndNotStored(f"The handler has ended, but its end could not be stored: {reason}") from error


def _commit(attempt: Attempt) -> None:
	"""The handler's work, its completion and the next start are one."""
	try:
		statements.commit()
	except LeaseLost:
		raise  # nothing was committed
	except Exception:
		waiting = database.waiting_for_commit()
		if lease.is_held(attempt.job.name, attempt.lease_token):
			raise
		database.wait_for_commit(waiting)  # only the answer was lost
	database.do_what_waits(f"{attempt.job.name}: after its commit")


def record(attempt: Attempt, then: Then, outcome, *details) -> Attempt | None:
	"""Throws away what the handler wrote, then records what happened, if the job is still ours."""
	database.rollback()
	if attempt.is_poisoned:
		database.reconnect()  # what was changed may well keep the end from being recorded
	frappe.set_user("Administrator")
	try:
		return _end_if_ours(attempt, then, outcome, details)
	except Exception as error:  # perhaps of the next job: the end of this one does not depend on its start
		reports.to_log(f"{attempt.job.name}: its end, or the start of the next job", error)
	try:
		return _end_if_ours(attempt, _nothing, outcome, details)
	except Exception as error:
		if database.is_conflict(error) or database.is_lost_connection(error):
			raise
		return _record_plainly(attempt, outcome, details, error)


def _nothing() -> None:
	"""No job is started behind this one."""


def start_apart(then: Then) -> Attempt | None:
	"""Starts the next job in a transaction of its own."""
	return database.own_transaction(then, _is_started)()


def _is_started(attempt: Attempt | None) -> bool:
	return attempt is not None and lease.is_held(attempt.job.name, attempt.lease_token)


def _end_if_ours(attempt: Attempt, then: Then, outcome, details: tuple) -> Attempt | None:
	def end_and_go_on() -> Attempt | None:
		attempt.job = frappe._dict(attempt.job_at_start)  # whatever another end has tried to make of it
		with statements.in_one_go():
			outcome(attempt, *details, attempt.now())
			following = then()
			_announce(attempt, following)
		return following

	def has_ended(_following) -> bool:
		return not lease.is_held(attempt.job.name, attempt.lease_token)

	try:
		return database.own_transaction(end_and_go_on, has_ended)()
	except LeaseLost:
		return start_apart(then)


def _record_plainly(attempt: Attempt, outcome, details: tuple, error: Exception) -> None:
	"""The end could not be written as it was: an end of the same class is, with what can be said."""
	attempt.context.drop_reports()
	plain = tuple(outcomes.plainly(detail) for detail in details)
	_end_if_ours(attempt, _nothing, outcome, plain)
	reports.to_error_log(f"{attempt.job.name}: its end could not be stored", error)
	frappe.db.commit()  # nosemgrep: the error's record


def record_torn(attempt: Attempt, outcome, error: BaseException) -> None:
	"""What is no Exception may have torn a query in two, as the alarm of a deadline does.

	This connection and this process can no longer be trusted.
	"""
	traceback = frappe.get_traceback()
	attempt.is_poisoned = True
	database.reconnect()
	return record(attempt, _nothing, outcome, error, traceback)


def _announce(ended: Attempt, following: Attempt | None) -> None:
	"""Before the commit: should this process be killed right after it, the watchdog knows what it started."""
	if ended.surroundings:
		ended.surroundings.expect_what_comes_later()
	if following and following.watchdog:
		following.watchdog.announce(following.job.name, following.lease_token)


def worker_name() -> str:
	return f"{_host()}:{os.getpid()}"


@lru_cache
def _host() -> str:
	return socket.gethostname()
