"""A small process beside each drain: beats for it, reports its progress, and speaks for a drain that was
killed, or failed. Its `guard` ends drains that must not go on. When a handler takes longer than expected, it
records those that have ended before, shows that one as Running, and gives back those behind.

A thread would stop while C code holds the GIL, and the drain's own connection belongs to the handler. What
runs now is told through shared memory, so that a short job costs it nothing; progress goes through a pipe.
No drain outlives its watchdog: see `Lifeline`.
"""

import contextlib
import fcntl
import json
import math
import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import frappe
import redis
from rq import Worker, get_current_job

from dartwing_jobs import clock
from dartwing_jobs.engine import attempt, bell, board, completions, database, lease, lost, statements
from dartwing_jobs.engine.board import (
	ENDED,
	ENDING,
	NOT_BEGUN,
	RUNS,
	SHOWN,
	STOP,
	TAKEN_BACK,
	WANTED,
	YIELD,
	Board,
	Held,
	Job,
	Work,
)
from dartwing_jobs.engine.guard import DrainProcess, Guard
from dartwing_jobs.engine.observing import reports
from dartwing_jobs.engine.schedules.ticker import Ticker
from dartwing_jobs.errors import JobTimeout

# progress is written at most this often, but its first and its last report at once
REPORT_SECONDS = 0.3
LOOK_SECONDS = 0.05
# while several jobs are held: how often it looks, and how long it waits for a handler or for a record
LOOK_AT_SEVERAL_SECONDS, PATIENCE_SECONDS = 0.01, 0.035
# between tries to reach a database that does not answer
RETRY_SECONDS = 0.5
# how often it asks Redis whether to stop while a job runs; while the drain rests, at each look
ASK_SECONDS = 0.15
# of a lease: how often it is renewed, and how long the watchdog waits for an answer of the database
BEAT_SHARE, ANSWER_SHARE = 1 / 3, 1 / 6


class Lifeline:
	"""A pipe whose writing end only the watchdog has. When it dies, the system closes that end and kills the
	drain: no handler runs on without a watchdog, be it in C code that hears no signal of Python.
	"""

	def __init__(self):
		self.reading, self.writing = os.pipe()
		fcntl.fcntl(self.reading, fcntl.F_SETOWN, os.getpid())
		fcntl.fcntl(self.reading, fcntl.F_SETSIG, signal.SIGKILL)
		fcntl.fcntl(self.reading, fcntl.F_SETFL, os.O_ASYNC)

	def hold(self) -> None:
		"""In the watchdog."""
		os.close(self.reading)

	def hang_on(self) -> None:
		"""In the drain."""
		os.close(self.writing)

	def cut(self) -> None:
		"""In the drain, before its watchdog may end. Processes of a handler may still have the same end."""
		fcntl.fcntl(self.reading, fcntl.F_SETFL, 0)
		os.close(self.reading)


class Watchdog:
	"""The drain's end: says what runs now, and hears whether to stop.

	Made before the drain asks the database anything: that may hang already.
	"""

	def __init__(self, rq_queue: str):
		self.board, self.lifeline, self.statements = Board(), Lifeline(), 0
		reading, self.pipe = os.pipe()
		os.set_blocking(self.pipe, False)
		drain, worker = DrainProcess(), _worker_key()
		self.served = bell.served_by(worker, rq_queue)
		self.pid = os.fork()
		if self.pid == 0:
			os.close(self.pipe)
			self.lifeline.hold()
			_live(lambda: _Process(reading, drain, self, rq_queue, worker))
		os.close(reading)
		drain.forget()
		self.lifeline.hang_on()
		board.take(self.board)

	def learn_lease(self, lease_seconds: float) -> None:
		"""The drain knows its settings, and is about to start jobs."""
		self.board.lease_seconds = lease_seconds

	def hold(self, attempts: list) -> None:
		"""The drain is about to run these jobs, which one lease holds."""
		self.board.hold(_held(attempts))

	def announce(self, attempts: list) -> None:
		"""What is claimed by the commit that records the end of others: both are spoken for."""
		self.board.announce(_held(attempts))

	def begin(self, number: int, microseconds: int) -> bool:
		"""Of those that are held, this one is next; False when the watchdog has given it back."""
		return self.board.begin(number, microseconds)

	def finish(self, number: int) -> bool:
		"""Its handler has ended; whether the watchdog has started it meanwhile."""
		return self.board.finish(number)

	def keep(self, number: int, record: bytes) -> None:
		"""Its completion waits to be recorded."""
		self.board.keep(number, record)

	def note_recorded(self, token: str, numbers: list[int]) -> None:
		self.board.note_recorded(token, numbers)

	def take_rest(self, token: str) -> list[int]:
		"""What is not to be begun after all; the watchdog has nothing to do with it any more."""
		return self.board.take_back(token)

	def rest(self) -> None:
		self.board.hold(None)

	def hand_over(self) -> None:
		"""A handler runs from here on: as long as its deadline and its lease allow."""
		self.statements = self.board.statements
		self.board.is_handling = True

	def has_sent_statements(self) -> bool:
		"""Whether the engine has asked the database anything since: for the handler, then."""
		return self.board.statements != self.statements

	def take_back(self) -> None:
		"""The handler has ended: what follows is the engine's."""
		self.board.is_handling = False

	def report(self, job_name: str, columns: dict) -> None:
		# shorter than PIPE_BUF, so that a message is never torn
		message = json.dumps({"job": job_name, **columns}).encode() + b"\n"
		with contextlib.suppress(BlockingIOError):  # an unread report is not worth waiting
			os.write(self.pipe, message)

	def says(self, flag: int) -> bool:
		return bool(self.board.flags & flag)

	def is_stopping(self) -> bool:
		return self.says(STOP)

	def stay_behind(self) -> None:
		"""For a drain that fails: the watchdog goes on by itself, until others can do what is left.

		The drain's process is about to end, and does not wait for it.
		"""
		self.board.has_failed = True
		self._let_go()

	def stop(self) -> None:
		self.board.has_left = True
		self._let_go()
		with contextlib.suppress(ChildProcessError):
			os.waitpid(self.pid, 0)

	def _let_go(self) -> None:
		board.take(None)
		self.lifeline.cut()
		os.close(self.pipe)


@dataclass
class Watched:
	"""What the drain was doing when the watchdog looked last."""

	work: Work
	beat_at: float
	reported_at: float = 0
	pending: dict = field(default_factory=dict)

	def running(self) -> str | None:
		number = self.work.running()
		return None if number is None else self.work.held.jobs[number].name

	def is_several(self) -> bool:
		return len(self.work.held.jobs) > 1

	def is_visible(self) -> bool:
		"""Whether the job that runs is Running in the database."""
		return self.work.held.is_started or SHOWN in self.work.states

	def is_late(self) -> bool:
		"""Whether a handler takes longer than others may wait for it, or an end waits to be recorded."""
		now = time.monotonic()
		waiting = self.work.numbers(RUNS, ENDED)
		return any(now - self.work.since[number] > PATIENCE_SECONDS for number in waiting)


def _held(attempts: list) -> Held:
	first = attempts[0]
	jobs = tuple(Job(one.job.name, one.job.timeout_seconds) for one in attempts)
	return Held(first.lease_token, first.job.held_since, first.is_started, jobs)


def _live(make_process) -> None:
	"""The process: never returns, never raises into the drain's code."""
	code = 1
	try:
		os.setsid()  # RQ kills the whole group of a drain; who then speaks for its job must be left
		board.take(None)
		database.leave_to_parent()
		site = frappe.local.site
		frappe.init(site, force=True)
		frappe.connect()
		make_process().run()
		frappe.db.close()
		code = 0
	except BaseException as error:
		reports.to_log("A watchdog could not go on; its drain ends with it", error)
	finally:
		os._exit(code)


class _Process:
	def __init__(self, pipe: int, drain: DrainProcess, drains_end: Watchdog, rq_queue: str, worker: str):
		self.pipe, self.drain, self.board = pipe, drain, drains_end.board
		self.rq_queue, self.worker = rq_queue, worker
		self.guard = Guard(drain, self.board)
		self.buffer = b""
		self.watched: Watched | None = None
		self.asked_at = 0.0
		self.ticker = Ticker(drains_end.lifeline.writing)
		self.is_cut_off = True  # whether the database did not answer when it was tried last
		self.has_waited = False  # after a failure of its drain

	def run(self) -> None:
		self.guard.start()
		while not self.board.lease_seconds and self._listen():
			pass
		while not self.board.has_left and self._try(self._turn):
			pass
		if self.board.has_left:
			return
		if not self.board.has_failed:
			self.drain.kill()  # its handler may have closed the pipe, and would run on unwatched
		# for as long as nobody else will: then its lease is over, and any sweep does it
		until = time.monotonic() + self.guard.lease_seconds
		while self._try(self._speak_for_the_dead) and time.monotonic() < until:
			pass

	def _try(self, duty: Callable[[], bool]) -> bool:
		"""Whether to go on with a duty. What goes wrong in it does not end the watchdog: drains need it."""
		try:
			if self.is_cut_off:
				self._connect()
			return duty()
		except Exception as error:
			about = {"name": self.watched.running()} if self.watched else None
			reports.to_log(f"The watchdog of drain {self.drain.pid}", error, about=about)
			time.sleep(RETRY_SECONDS if self.is_cut_off else LOOK_SECONDS)
			self._start_over()
			return True

	def _connect(self) -> None:
		database.be_impatient(max(1, math.ceil(self.guard.lease_seconds * ANSWER_SHARE)))
		database.reconnect()
		self.is_cut_off = False

	def _start_over(self) -> None:
		try:
			database.rollback()
		except Exception:  # it is being restarted, perhaps
			self.is_cut_off = True

	def _turn(self) -> bool:
		"""One look at everything; False when the drain has gone."""
		if not self._listen():
			return False
		self._look()
		self._ask()
		if self.watched:
			self._attend(self.watched)
		return True

	def _ask(self) -> None:
		"""Whether the drain is to stop, or somebody else needs its worker."""
		now = time.monotonic()
		if not self.watched or now - self.asked_at > ASK_SECONDS:
			self.asked_at = now
			self.board.flags = self._flags()

	def _listen(self) -> bool:
		"""Reads what the drain says; False when it has gone."""
		heard, *_others = select.select([self.pipe, self.drain.descriptor], [], [], self._pause())
		if self.pipe not in heard:
			return not heard
		data = os.read(self.pipe, 65536)
		*lines, self.buffer = (self.buffer + data).split(b"\n")
		for line in lines:
			self._hear(json.loads(line))
		return bool(data)

	def _pause(self) -> float:
		return LOOK_AT_SEVERAL_SECONDS if self.watched and self.watched.is_several() else LOOK_SECONDS

	def _hear(self, report: dict) -> None:
		self._look()
		if self.watched and report.pop("job") == self.watched.running():
			self.watched.pending |= report
			self._report(self.watched, at_once=report.get("progress", 0) >= 100)

	def _look(self) -> None:
		"""At what the drain is doing now."""
		work = self.board.read()
		if not work:
			self.watched = None
		elif not self.watched or self.watched.work.token != work.token:
			self.watched = Watched(work, self.guard.renewed_at(work))
		else:
			self.watched.work = work

	def _attend(self, watched: Watched) -> None:
		self._beat(watched)  # before what else may fail
		if watched.is_several() and watched.is_late():
			self._relieve(watched.work)
		if watched.pending:
			self._report(watched)
		if (number := watched.work.running()) is not None:
			self.ticker.tick_beside(watched.work.since[number])

	def _relieve(self, work: Work) -> None:
		"""The drain is inside of a handler: its watchdog does for the others what it cannot do now."""
		self._record_ended(work.token)
		self._give_back(work)
		self._show(work)

	def _record_ended(self, token: str) -> None:
		records = self.board.records_of(token)
		if records:
			ended = [completions.unpack(record) for record in records.values()]
			database.own_transaction(completions.record)(ended)
			self.board.note_recorded(token, list(records))

	def _give_back(self, work: Work) -> None:
		"""What was taken back, but could not be given back, is tried again."""
		taken = {*work.numbers(TAKEN_BACK), *self.board.take_back(work.token)}
		if taken:
			names = [work.held.jobs[number].name for number in taken]
			if lease.give_back(names, work.token):
				bell.ring(self.rq_queue)
			self.board.note_recorded(work.token, list(taken))

	def _show(self, work: Work) -> None:
		if shown := self.board.show(work.token):
			name, began = shown
			worker = attempt.name_of_worker(self.drain.pid)
			lost.show(name, work.token, clock.site_time_of_microseconds(began), worker)

	def _beat(self, watched: Watched) -> None:
		"""Raises while the database does not answer: then it was no beat, and the next turn tries again."""
		asked_at = time.monotonic()
		if asked_at - watched.beat_at < self.guard.lease_seconds * BEAT_SHARE:
			return
		work = watched.work
		names = work.names(NOT_BEGUN, RUNS, SHOWN, ENDING, ENDED)
		held = lease.renew(names, work.token, self.guard.lease_seconds) if names else set()
		if held:
			self.guard.note_renewal(work.token, asked_at)
		elif following := self.board.following():  # their end is committed; what comes after it takes long
			lease.renew(following.names(), following.token, self.guard.lease_seconds)
		if self._handles_what_is_lost(work, held):
			self.drain.kill()  # it is another's now: what this handler still does must not be kept
		watched.beat_at = asked_at

	def _handles_what_is_lost(self, work: Work, held: set[str]) -> bool:
		"""Whether the handler of a job runs that is not held. In this order: see `Guard.reason_to_end`."""
		if not self.board.is_handling:
			return False
		current = self.board.read()
		running = current.names(RUNS, SHOWN) if current and current.token == work.token else []
		was_running = work.names(RUNS, SHOWN)
		return any(name in was_running and name not in held for name in running)

	def _report(self, watched: Watched, at_once: bool = False) -> None:
		if not watched.is_visible():
			return  # soon it is
		if not at_once and time.monotonic() - watched.reported_at < REPORT_SECONDS:
			return
		watched.reported_at = time.monotonic()
		report, watched.pending = watched.pending, {}  # one that cannot be written must not stop the beat
		if name := watched.running():
			_write_progress(name, watched.work.token, report)

	def _flags(self) -> int:
		if not self.worker:
			return 0
		try:
			return _flags_from_redis(self.worker, self.rq_queue)
		except redis.RedisError:  # it may be down; what is in the database goes on
			return 0

	def _speak_for_the_dead(self) -> bool:
		"""The drain has gone. What had ended is recorded. Was it in the middle of a job, that attempt is
		ended for it, once; what it had not begun is given back; and a worker is to come for the rest."""
		self._look()
		if self.watched:
			work = self.watched.work
			self._record_ended(work.token)
			for number in work.numbers(RUNS, SHOWN, ENDING):
				self._end_attempt(work, number)
			lost.give_back(work.names(NOT_BEGUN, TAKEN_BACK), work.token, work.held.is_started)
		if following := self.board.following():
			lost.give_back(following.names(), following.token, following.is_started)
		if self.board.has_failed:
			self._wait_after_failure()
		bell.fall_asleep(self.rq_queue)  # one that only waited was waited for as well
		bell.ring(self.rq_queue)
		return False

	def _end_attempt(self, work: Work, number: int) -> None:
		job, began = work.held.jobs[number], clock.site_time_of_microseconds(work.moments[number])
		if self.guard.has_found_overdue(work.token, job.name):
			error = JobTimeout(f"The job ran longer than its {job.seconds:g} seconds and was killed")
			lost.record_timeout(job.name, work.token, began, error)
		else:
			lost.record_loss(job.name, work.token, began)

	def _wait_after_failure(self) -> None:
		"""Who comes next may fail, too. Raises while the database does not answer, to be tried again."""
		if not self.has_waited:
			self.has_waited = True
			time.sleep(bell.seconds_after_failure(self.rq_queue))
		database.utc_now()


def _flags_from_redis(worker: str, rq_queue: str) -> int:
	"""RQ tells only the worker that it is to stop, its horse finds it in Redis."""
	flags = STOP if bell.client().hget(worker, "shutdown_requested_date") else 0
	own, served = bell.rq_name(rq_queue), bell.served_by(worker, rq_queue)
	waiting = bell.messages_in(served)
	foreign = {name for name in served if not all(map(bell.is_own, waiting[name]))}
	# a worker takes from its queues in order: those behind ours wait for ours in any case
	before = served[: served.index(own) + 1] if own in served else served
	if foreign.intersection(before):
		return flags | YIELD | WANTED
	# work of this site in another queue waits for this worker, too, once it has nothing to do here
	if foreign or any(waiting[name] for name in served if name != own):
		return flags | WANTED
	return flags


@database.own_transaction
def _write_progress(job_name: str, token: str, columns: dict) -> None:
	statements.update("Background Job", job_name, columns, guard={"lease_token": token})


def _worker_key() -> str | None:
	job = get_current_job()
	return f"{Worker.redis_worker_namespace_prefix}{job.worker_name}" if job else None
