"""A small process beside each drain: beats for it, reports its progress, ends handlers that will not end, and
speaks for a drain that was killed, or failed.

A thread would stop while C code holds the GIL, and the drain's own connection belongs to the handler. What
runs now is told through shared memory, so that a short job costs it nothing; progress goes through a pipe.
"""

import contextlib
import json
import mmap
import os
import select
import signal
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import frappe
import redis
from rq import Worker, get_current_job

from dartwing_jobs.engine import bell, database, lease, lost, statements
from dartwing_jobs.engine.schedules.ticker import Ticker
from dartwing_jobs.errors import JobTimeout

# progress is written at most this often, but its first and its last report at once
REPORT_SECONDS = 0.3
# what a handler gets after its deadline to clean up, before its process is killed
GRACE_SECONDS = 2
LOOK_SECONDS = 0.05
# between tries to reach a database that does not answer
RETRY_SECONDS = 0.5
# how often it asks Redis whether to stop while a job runs; while the drain rests, at each look
ASK_SECONDS = 0.15
# a job that is no longer held may just have been finished: the drain says so within this
LOST_SECONDS = 0.5
# flags that the watchdog raises for the drain
STOP, YIELD, WANTED = 1, 2, 4
MEMORY_BYTES = 4096
HEADER = struct.Struct("<QI")


class Board:
	"""Shared memory: one byte of flags for the drain, and what the drain is doing for the watchdog."""

	def __init__(self):
		self.memory = mmap.mmap(-1, MEMORY_BYTES)
		self.number = 0

	def write(self, words: tuple[str, ...]) -> None:
		"""An odd number while it is being written, an even one when it can be read."""
		text = "\n".join(words).encode()
		self.number += 2
		HEADER.pack_into(self.memory, 8, self.number - 1, len(text))
		self.memory[32 : 32 + len(text)] = text
		HEADER.pack_into(self.memory, 8, self.number, len(text))

	def read(self) -> list[str]:
		while True:
			before, length = HEADER.unpack_from(self.memory, 8)
			text = bytes(self.memory[32 : 32 + length])
			if before % 2 == 0 and before == HEADER.unpack_from(self.memory, 8)[0]:
				return text.decode().split("\n") if text else []
			time.sleep(0.0001)

	@property
	def has_left(self) -> bool:
		"""Whether the drain has gone by itself, and seen to what it leaves behind."""
		return bool(self.memory[1])

	@has_left.setter
	def has_left(self, has_left: bool) -> None:
		self.memory[1] = has_left

	@property
	def has_failed(self) -> bool:
		"""Whether an error ended it, and not its work or somebody else."""
		return bool(self.memory[2])

	@has_failed.setter
	def has_failed(self, has_failed: bool) -> None:
		self.memory[2] = has_failed

	@property
	def flags(self) -> int:
		return self.memory[0]

	@flags.setter
	def flags(self, flags: int) -> None:
		self.memory[0] = flags


class Watchdog:
	"""The drain's end: says what runs now, and hears whether to stop."""

	def __init__(self, rq_queue: str, lease_seconds: float):
		self.board, self.told = Board(), ()
		reading, self.pipe = os.pipe()
		drain, worker = os.getpid(), _worker_key()
		self.served = bell.served_by(worker, rq_queue)
		self.pid = os.fork()
		if self.pid == 0:
			os.close(self.pipe)
			_live(lambda: _Process(reading, drain, self.board, rq_queue, worker, lease_seconds))
		os.close(reading)

	def watch(self, job, lease_token: str) -> None:
		self.told = job.name, lease_token, str(job.timeout_seconds), str(time.monotonic())
		self.board.write(self.told)

	def announce(self, job_name: str, lease_token: str) -> None:
		"""What is being started while the last job ends, in one commit: both are spoken for."""
		self.board.write((*self.told, job_name, lease_token))

	def rest(self) -> None:
		self.told = ()
		self.board.write(self.told)

	def report(self, job_name: str, columns: dict) -> None:
		# shorter than PIPE_BUF, so that a message is never torn
		os.write(self.pipe, json.dumps({"job": job_name, **columns}).encode() + b"\n")

	def says(self, flag: int) -> bool:
		return bool(self.board.flags & flag)

	def is_stopping(self) -> bool:
		return self.says(STOP)

	def is_alive(self) -> bool:
		try:  # asked before each job: a context manager would cost more than the question
			return os.waitpid(self.pid, os.WNOHANG)[0] == 0
		except ChildProcessError:
			return False

	def stay_behind(self) -> None:
		"""For a drain that fails: the watchdog goes on by itself, until others can do what is left.

		The drain's process is about to end, and does not wait for it.
		"""
		self.board.has_failed = True
		os.close(self.pipe)

	def stop(self) -> None:
		self.board.has_left = True
		os.close(self.pipe)
		with contextlib.suppress(ChildProcessError):
			os.waitpid(self.pid, 0)


@dataclass
class Watched:
	"""What the drain was doing when the watchdog looked last."""

	name: str
	token: str
	seconds: float
	since: float
	next: list[str] = field(default_factory=list)  # the name and the token of what it starts
	beat_at: float = field(default_factory=time.monotonic)
	lost_at: float | None = None
	reported_at: float = 0
	pending: dict = field(default_factory=dict)

	def overdue(self) -> bool:
		return time.monotonic() - self.since > self.seconds + GRACE_SECONDS


def _live(make_process) -> None:
	"""The process: never returns, never raises into the drain's code."""
	code = 1
	try:
		os.setsid()  # RQ kills the whole group of a drain; who then speaks for its job must be left
		database.leave_to_parent()
		site = frappe.local.site
		frappe.init(site, force=True)
		frappe.connect()
		database.read_committed()
		make_process().run()
		frappe.db.close()
		code = 0
	except BaseException:
		frappe.logger("dartwing_jobs").exception("A watchdog could not go on; its drain will leave")
	finally:
		os._exit(code)


class _Process:
	def __init__(self, pipe: int, drain: int, board: Board, rq_queue: str, worker: str, lease_seconds: float):
		self.pipe, self.drain, self.board = pipe, drain, board
		self.rq_queue, self.worker, self.lease_seconds = rq_queue, worker, lease_seconds
		self.parent = _parent_of(drain)
		self.buffer = b""
		self.watched: Watched | None = None
		self.asked_at = 0.0
		self.ticker = Ticker()
		self.is_cut_off = False  # whether the database did not answer when it was tried last
		self.has_waited = False  # after a failure of its drain

	def run(self) -> None:
		while self._try(self._turn):
			pass
		# for as long as nobody else will: then its lease is over, and any sweep does it
		until = time.monotonic() + self.lease_seconds
		while self._try(self._speak_for_the_dead) and time.monotonic() < until:
			pass

	def _try(self, duty: Callable[[], bool]) -> bool:
		"""Whether to go on with a duty. What goes wrong in it does not end the watchdog: drains need it."""
		try:
			if self.is_cut_off:
				database.reconnect()
				self.is_cut_off = False
			return duty()
		except Exception:
			frappe.logger("dartwing_jobs").exception("The watchdog of drain %s", self.drain)
			time.sleep(RETRY_SECONDS if self.is_cut_off else LOOK_SECONDS)
			self._start_over()
			return True

	def _start_over(self) -> None:
		try:
			database.rollback()
		except Exception:  # it is being restarted, perhaps
			self.is_cut_off = True

	def _turn(self) -> bool:
		"""One look at everything; False when the drain has gone."""
		if not self._listen():
			return False
		if _parent_of(self.drain) != self.parent:
			self._kill_drain()  # its worker was killed: nobody would answer for it
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
		if not select.select([self.pipe], [], [], LOOK_SECONDS)[0]:
			return True
		data = os.read(self.pipe, 65536)
		*lines, self.buffer = (self.buffer + data).split(b"\n")
		for line in lines:
			self._hear(json.loads(line))
		return bool(data)

	def _hear(self, report: dict) -> None:
		self._look()
		if self.watched and report.pop("job") == self.watched.name:
			self.watched.pending |= report
			self._report(self.watched, at_once=report.get("progress", 0) >= 100)

	def _look(self) -> None:
		"""At what the drain is doing now."""
		if not (words := self.board.read()):
			self.watched = None
			return
		name, token, seconds, since, *following = words
		if not self.watched or self.watched.token != token:
			self.watched = Watched(name, token, float(seconds), float(since))
		self.watched.next = following

	def _attend(self, watched: Watched) -> None:
		if watched.pending:
			self._report(watched)
		self._beat(watched)
		if watched.overdue():
			self._kill_drain()
			seconds = f"{watched.seconds:g} seconds"
			error = JobTimeout(f"The job ran longer than its {seconds} and was killed")
			lost.record_timeout(watched.name, watched.token, error)
		else:
			self.ticker.tick_beside(watched.since)

	def _beat(self, watched: Watched) -> None:
		now = time.monotonic()
		if now - watched.beat_at > self.lease_seconds / 3:
			watched.beat_at = now
			if not lease.renew(watched.name, watched.token, self.lease_seconds):
				watched.lost_at = now
		# just finished, or another's now: then what this handler still does must not be kept
		if watched.lost_at and now - watched.lost_at > LOST_SECONDS:
			self._kill_drain()

	def _report(self, watched: Watched, at_once: bool = False) -> None:
		if not at_once and time.monotonic() - watched.reported_at < REPORT_SECONDS:
			return
		watched.reported_at = time.monotonic()
		_write_progress(watched.name, watched.token, watched.pending)
		watched.pending = {}

	def _flags(self) -> int:
		if not self.worker:
			return 0
		try:
			return _flags_from_redis(self.worker, self.rq_queue)
		except redis.RedisError:  # it may be down; what is in the database goes on
			return 0

	def _kill_drain(self) -> None:
		with contextlib.suppress(ProcessLookupError):
			os.kill(self.drain, signal.SIGKILL)

	def _speak_for_the_dead(self) -> bool:
		"""The drain has gone. Was it in the middle of a job, that attempt is ended for it, once; and
		somebody else is to come for what it was there for."""
		self._look()
		if self.watched:
			lost.record_loss(self.watched.name, self.watched.token)
			if self.watched.next:
				lost.record_loss(*self.watched.next)
		if self.board.has_failed:
			self._wait_after_failure()
		if self.watched or not self.board.has_left:  # one that only waited was waited for as well
			bell.fall_asleep(self.rq_queue)
			bell.ring(self.rq_queue)
		return False

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


def _parent_of(pid: int) -> int:
	"""The drain's worker; when that dies, the system gives the drain another parent."""
	with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/stat") as stat:
		return int(stat.read().rpartition(")")[2].split()[1])
	return 0
