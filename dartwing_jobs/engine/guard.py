"""Ends a drain that must not go on, without asking anybody: a thread of its watchdog.

The watchdog speaks with the database, which may keep it waiting. What is decided here needs the clock, the
shared memory and the system's list of processes, and nothing that can hang.
"""

import contextlib
import logging
import os
import select
import signal
import threading
import time
from contextvars import copy_context

from dartwing_jobs.engine.board import Board, Work
from dartwing_jobs.engine.observing import journal

LOOK_SECONDS = 0.05
# what a handler gets after its deadline to clean up, before its process is killed
GRACE_SECONDS = 2
# of a lease that was not renewed; the rest is for the process to end before another may have its job
SURE_SHARE = 0.9
# for a drain that has not come to read the settings
FIRST_LEASE_SECONDS = 30
# how many leases the engine may stay in one statement of its own, or in what is done after a commit
STUCK_LEASES = 2
# how long after its drain a watchdog ends, in addition to a lease, whatever it still waits for
LAST_WORDS_SECONDS = 600


class DrainProcess:
	"""A process that is known by more than its number: another one may get that number later.

	Made by the drain itself, before it has a watchdog.
	"""

	def __init__(self):
		self.pid, self.worker = os.getpid(), os.getppid()
		self.descriptor = os.pidfd_open(self.pid)

	def kill(self) -> None:
		with contextlib.suppress(ProcessLookupError):
			signal.pidfd_send_signal(self.descriptor, signal.SIGKILL)

	def has_ended(self) -> bool:
		return bool(select.select([self.descriptor], [], [], 0)[0])

	def has_lost_its_worker(self) -> bool:
		"""When a worker dies, the system gives its horse another parent."""
		return _parent_of(self.pid) not in (self.worker, None)

	def forget(self) -> None:
		os.close(self.descriptor)


class Guard:
	def __init__(self, drain: DrainProcess, board: Board):
		self.drain, self.board = drain, board
		# the lease that was renewed last, and when that was asked for
		self.renewed: tuple[str, float] = ("", 0.0)
		self.overdue: tuple[str, str] | None = (
			None  # the lease and the name of a job that was killed at its deadline
		)

	@property
	def lease_seconds(self) -> float:
		return self.board.lease_seconds or FIRST_LEASE_SECONDS

	def start(self) -> None:
		"""With the site of this thread: for the log."""
		threading.Thread(target=copy_context().run, args=(self._watch,), daemon=True).start()

	def note_renewal(self, token: str, asked_at: float) -> None:
		"""A beat counts when it was written, and from when it was asked for: not a moment too long."""
		self.renewed = token, asked_at

	def renewed_at(self, work: Work) -> float:
		token, asked_at = self.renewed
		return max(asked_at, work.held.since) if token == work.token else work.held.since

	def has_found_overdue(self, token: str, job_name: str) -> bool:
		return self.overdue == (token, job_name)

	def reason_to_end(self) -> str | None:
		"""Why the drain must not go on."""
		is_handling = self.board.is_handling  # before the job is read: what is read then is what it handles
		work = self.board.read()
		now = time.monotonic()
		if self.drain.has_lost_its_worker():
			return "its worker has gone"
		if not is_handling:
			is_stuck = now - self.board.moved_at > STUCK_LEASES * self.lease_seconds
			return "the engine waits in vain for an answer" if is_stuck else None
		number = work.running() if work else None
		if number is None:
			return None
		job = work.held.jobs[number]
		if now - work.since[number] > job.seconds + GRACE_SECONDS:
			self.overdue = work.token, job.name
			return f"{job.name} did not end at its deadline"
		if now - self.renewed_at(work) > SURE_SHARE * self.lease_seconds:
			return f"the lease of {job.name} could not be renewed"
		return None

	def _watch(self) -> None:
		while not (self.drain.has_ended() or self.board.has_left):
			if reason := self.reason_to_end():
				self.drain.kill()
				_log(self.drain.pid, reason, self.board.read())
				select.select([self.drain.descriptor], [], [])
			time.sleep(LOOK_SECONDS)
		time.sleep(self.lease_seconds + LAST_WORDS_SECONDS)
		os._exit(1)


def _log(pid: int, reason: str, work: Work | None) -> None:
	with contextlib.suppress(Exception):  # a full disk must not keep the guard from its work
		number = work.running() if work else None
		about = {"name": work.held.jobs[number].name} if number is not None else None
		journal.say(f"Drain {pid} is killed: {reason}", logging.ERROR, about)


def _parent_of(pid: int) -> int | None:
	"""None when the system does not say: the process has gone."""
	with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/stat") as stat:
		return int(stat.read().rpartition(")")[2].split()[1])
	return None
