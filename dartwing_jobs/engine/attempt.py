"""One attempt at a job: start it, call its handler, and record its end or say what is to be recorded."""

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
	claim,
	completions,
	database,
	fresh,
	lease,
	log,
	naming,
	order,
	outcomes,
	runs,
	statements,
	states,
	transitions,
)
from dartwing_jobs.engine.completions import Completion, InDoubt
from dartwing_jobs.engine.facts import Facts
from dartwing_jobs.engine.handling import commit_guard, handlers, inputs, job_hooks, write_guard
from dartwing_jobs.engine.handling.context import JobContext, Snooze, bounded_cost
from dartwing_jobs.engine.handling.deadline import deadline
from dartwing_jobs.engine.handling.surroundings import Surroundings
from dartwing_jobs.engine.intake import payload
from dartwing_jobs.engine.observing import journal, reports, tracing
from dartwing_jobs.errors import EndNotStored, JobCanceled, JobTimeout, LeaseLost, WorkerStopping


class Attempt:
	"""What is known about an attempt, from the claim of its job to its end."""

	def __init__(self, job, job_type, lease_token: str, worker: str, watchdog=None):
		self.job, self.job_type = job, job_type
		self.lease_token, self.worker, self.watchdog = lease_token, worker, watchdog
		self.number = 0  # among those that were claimed together
		self.is_started = False  # whether its job is Running, and its run is written
		self.was_shown = False  # whether the watchdog has started it, because it took long
		self.refusal: str | None = None  # why it may not run after all
		# after a signal that tore a query in two, or a handler that changed it, this process runs no more
		self.is_poisoned = False
		self.surroundings: Surroundings | None = None
		self.limits: list = []  # what it is counted under
		self.has_children = False

	def begin(self) -> None:
		"""It is this job's turn. Attempts count from here, so that one that kills its worker counts too."""
		watch = clock.Stopwatch()
		self._begin_at(watch.started, naming.next_row_name(), watch)
		self.job.attempt += 1
		self.be_ready()

	def begin_at(self, moment: datetime) -> None:
		"""For one that another process has begun, of which the database knows nothing yet."""
		self._begin_at(moment, naming.next_row_name())
		self.job.attempt += 1
		self.be_ready()

	def begin_again(self, run) -> None:
		"""For one that was started by another process: as its run says."""
		self._begin_at(run.started_at, run.name)
		self.is_started = True
		self.be_ready()

	def _begin_at(self, started: datetime, run_name: str, watch: clock.Stopwatch | None = None) -> None:
		self.started, self.run_name = started, run_name
		self.watch = watch  # none when another process ends it

	def be_ready(self) -> None:
		"""For its handler: what it gets, and what to go back to if an end cannot be written."""
		self.job_at_start, self.was_started = dict(self.job), self.is_started
		moves = self.job.moves if self.is_started else self.job.moves + 1
		self.context = JobContext(self.job, self.lease_token, self.watchdog, self.now, moves)

	def start(self, guard: dict | None = None, **columns) -> None:
		"""Makes the job Running, in the caller's transaction."""
		columns |= {**order.OUT_OF_LINE, **self.columns_while_running()}
		told = {"now": self.started, "by": self.job.owner_user, "or_raise": self.lease_lost()}
		transitions.apply(self.job, states.RUNNING, guard=guard, **told, **columns)
		runs.begin(self.job, self.run_name, self.started, self.worker)
		self.is_started = True

	def be_started(self) -> None:
		"""In the transaction that ends it: by now its job is Running, by the drain or by the watchdog."""
		if self.is_started:
			return
		row = self.was_shown and claim.read_held(self.job.name, self.lease_token)
		if row and row.status == states.RUNNING:
			self.job.update(status=row.status, moves=row.moves)
			self.run_name = runs.running_of(self.job.name).name
			self.is_started = True
		else:
			self.start({"lease_token": self.lease_token})

	def columns_while_running(self) -> dict:
		return {
			"attempt": self.job.attempt,
			"progress": 0,
			"progress_message": None,
			"next_retry_at": None,
			"claim_alone": 0,
		}

	def as_it_began(self) -> None:
		"""Whatever an end that could not be written has made of it."""
		self.job, self.is_started = frappe._dict(self.job_at_start), self.was_started

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
		self.be_started()
		transitions.apply(
			self.job,
			to_status,
			now=now,
			message=message,
			by=self.job.owner_user,
			guard={"lease_token": self.lease_token},
			or_raise=self.lease_lost(),
			told={
				"error_class": runs.class_of(error) if error else None,
				"duration_seconds": self.seconds(now),
				"details": details,
			},
			**columns,
		)

	def path_to(self, status: str, now: datetime) -> tuple[tuple[str, ...], tuple[datetime, ...]]:
		"""The statuses that its job comes to by its end, and when it comes to each."""
		if self.is_started:
			return (status,), (now,)
		return (states.RUNNING, status), (self.started, now)

	def events_of(self, path: tuple[str, ...], moments: tuple[datetime, ...], columns: dict) -> list[dict]:
		"""The rows that the log gets for moves along a path."""
		before, events = self.job.status, []
		for number, (status, now) in enumerate(zip(path, moments, strict=True), self.job.moves + 1):
			is_last = number == columns["moves"]
			changes = {**(columns if is_last else {}), "moves": number}
			seconds = self.seconds(now) if is_last else None
			event = states.transition(before, status).event
			told = {"now": now, "by": self.job.owner_user, "changes": changes, "duration_seconds": seconds}
			events.append(log.row(self.job, event, before, status, **told))
			before = status
		return events

	def run_row(self, now: datetime, came_out: dict) -> dict:
		"""The row of its run, which has ended well; of one that was started, what changes."""
		columns = {**runs.ended(runs.COMPLETED, self.seconds(now), now), **came_out}
		columns["cost_cents"] = int(self.context.cost_cents)
		if self.is_started:
			return {"name": self.run_name, **columns}
		return {**runs.row(self.job, self.run_name, runs.COMPLETED, self.started, self.worker), **columns}

	def lease_lost(self) -> LeaseLost:
		return LeaseLost(f"{self.job.name} is no longer ours")

	def take_back(self) -> None:
		"""The handler has ended."""
		if self.watchdog:
			self.watchdog.take_back()

	def may_wait(self) -> bool:
		"""Whether its completion may be recorded a little later: it has left nothing in the database.

		Without a watchdog it would stay unrecorded while the next handler takes long.
		"""
		if not self.watchdog or self.was_shown or self.is_poisoned:
			return False
		return not (self.surroundings.was_used or self.watchdog.has_sent_statements())

	def may_be_recorded_unasked(self) -> bool:
		return not (self.is_started or self.was_shown or self.has_children)

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


def claimed(job, facts: Facts, token: str, watchdog=None) -> Attempt:
	"""An attempt at a job that is held by a lease, and has not begun."""
	attempt = Attempt(job, facts.type_of(job), token, worker_name(), watchdog)
	attempt.refusal = facts.refusal(job)
	return attempt


def start(job, lease_seconds: float, facts: Facts, watchdog=None) -> Attempt:
	"""Starts a job that is locked, in the caller's transaction."""
	held = lease.new_lease(job.claimed_at, lease_seconds)
	attempt = claimed(job, facts, held["lease_token"], watchdog)
	attempt.begin()
	attempt.start(**held)
	attempt.be_ready()
	return attempt


def run(attempt: Attempt, record_others: Callable[[], object] = lambda: None) -> Completion | None:
	"""Runs an attempt that has begun. Returns its completion, if that is still to be recorded.

	`record_others` is called before anything is recorded on a new connection.
	"""
	fresh.become(attempt.job.owner_user)
	completion = perform(attempt, record_others)
	if attempt.is_poisoned:
		database.reconnect()  # the drain has something to do before it leaves
	return completion


def perform(attempt: Attempt, record_others: Callable[[], object] = lambda: None) -> Completion | None:
	"""Calls the handler and records its outcome. Its writes and its completion commit together."""
	if attempt.refusal:
		return record(attempt, outcomes.skipped, attempt.refusal)
	try:
		with commit_guard.guarding(attempt.context.hold):
			result = call_watched(attempt)
		return keep_result(attempt, result)
	except JobCanceled as canceled:
		return record(attempt, outcomes.canceled, canceled.requested_by)
	except WorkerStopping as error:
		return record(attempt, outcomes.handed_back, runs.message_of(error))
	except LeaseLost:
		return database.rollback()
	except JobTimeout as error:
		return record_torn(attempt, record_others, outcomes.timed_out, error)
	except Exception as error:
		return record(attempt, outcomes.failed, error, frappe.get_traceback())
	except BaseException as error:
		# SystemExit, KeyboardInterrupt or asyncio.CancelledError: of the handler, and not of the drain
		return record_torn(attempt, record_others, outcomes.failed, error)


def call_watched(attempt: Attempt):
	"""While the handler runs, its deadline and its lease are watched; before and behind, the engine is."""
	if not attempt.watchdog:
		return call_handler(attempt)
	attempt.watchdog.hand_over()
	try:
		return call_handler(attempt)
	finally:
		attempt.take_back()
		attempt.was_shown = attempt.watchdog.finish(attempt.number)


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
		attempt.take_back()  # what is asked now is the engine's question, and may not take long
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


def keep_result(attempt: Attempt, result) -> Completion | None:
	if attempt.may_wait() and not isinstance(result, Snooze):
		return outcomes.completion(attempt, result, attempt.now())
	return keep(attempt, result)


def keep(attempt: Attempt, result) -> None:
	"""Records the outcome together with what the handler wrote, or neither."""
	with in_our_words():
		if isinstance(result, Snooze):
			outcomes.snoozed(attempt, result.seconds, attempt.now())
			_commit(attempt, statements.Trip())
		elif not (attempt.may_be_recorded_unasked() and _complete_unasked(attempt, result)):
			_complete(attempt, result)
	_do_what_waits(attempt)


def _complete(attempt: Attempt, result) -> None:
	trip = statements.Trip()
	if attempt.was_shown:
		attempt.be_started()
	if not completions.write([outcomes.completion(attempt, result, attempt.now())], trip):
		raise attempt.lease_lost()
	_commit(attempt, trip)


def _complete_unasked(attempt: Attempt, result) -> bool:
	"""In one round trip; False, and nothing recorded, when something has to be asked first."""
	trip, completion = statements.Trip(), outcomes.completion(attempt, result, attempt.now())
	if not completions.is_plain(completion):
		return False
	completions.write_unasked(completion, trip)
	try:
		_commit(attempt, trip)
	except InDoubt:
		return False
	completions.tell([completion])
	return True


@contextlib.contextmanager
def in_our_words() -> Iterator[None]:
	"""What the database refuses to store now, it will refuse after every attempt."""
	try:
		yield
	except Exception as error:
		if not database.is_refusal(error):
			raise
		reason = runs.message_of(error).splitlines()[0]  # behind it PostgreSQL shows the whole row
		raise EndNotStored(f"The handler has ended, but its end could not be stored: {reason}") from error


def _commit(attempt: Attempt, trip: statements.Trip) -> None:
	"""The handler's work and its completion are one."""
	_expect_what_comes_later(attempt)
	try:
		trip.commit()
	except (LeaseLost, InDoubt):
		raise  # nothing was committed
	except Exception:
		waiting = database.waiting_for_commit()
		if lease.is_held(attempt.job.name, attempt.lease_token):
			raise
		database.wait_for_commit(waiting)  # only the answer was lost


def _do_what_waits(attempt: Attempt) -> None:
	_expect_what_comes_later(attempt)
	database.do_what_waits(f"{attempt.job.name}: after its commit")


def record(attempt: Attempt, outcome, *details) -> None:
	"""Throws away what the handler wrote, then records what happened, if the job is still ours."""
	database.rollback()
	if attempt.is_poisoned:
		database.reconnect()  # what was changed may well keep the end from being recorded
	frappe.set_user("Administrator")
	try:
		_end_if_ours(attempt, outcome, details)
	except Exception as error:
		if database.is_conflict(error) or database.is_lost_connection(error):
			raise
		_record_plainly(attempt, outcome, details, error)


def _end_if_ours(attempt: Attempt, outcome, details: tuple) -> None:
	def end() -> None:
		attempt.as_it_began()
		outcome(attempt, *details, attempt.now())
		_expect_what_comes_later(attempt)

	def has_ended(_nothing) -> bool:
		return not lease.is_held(attempt.job.name, attempt.lease_token)

	with contextlib.suppress(LeaseLost):
		database.own_transaction(end, has_ended)()


def _record_plainly(attempt: Attempt, outcome, details: tuple, error: Exception) -> None:
	"""The end could not be written as it was: an end of the same class is, with what can be said."""
	attempt.context.drop_reports()
	plain = tuple(outcomes.plainly(detail) for detail in details)
	_end_if_ours(attempt, outcome, plain)
	reports.to_error_log(f"{attempt.job.name}: its end could not be stored", error)
	frappe.db.commit()  # nosemgrep: the error's record


def record_torn(attempt: Attempt, record_others: Callable, outcome, error: BaseException) -> None:
	"""What is no Exception may have torn a query in two, as the alarm of a deadline does.

	This connection and this process can no longer be trusted.
	"""
	traceback = frappe.get_traceback()
	attempt.is_poisoned = True
	database.reconnect()
	record_others()
	record(attempt, outcome, error, traceback)


def _expect_what_comes_later(attempt: Attempt) -> None:
	if attempt.surroundings:
		attempt.surroundings.expect_what_comes_later()


def worker_name() -> str:
	return name_of_worker(os.getpid())


def name_of_worker(pid: int) -> str:
	return f"{_host()}:{pid}"


@lru_cache
def _host() -> str:
	return socket.gethostname()
