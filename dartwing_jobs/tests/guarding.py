"""A drain that only sleeps, below a worker of its own, and the guard of its watchdog, without a database."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

from dartwing_jobs.engine.board import MOVED_AT, SECONDS, Board, Work
from dartwing_jobs.engine.guard import DrainProcess, Guard
from dartwing_jobs.tests.workers import is_alive

FOREVER = 600


class Guarded:
	def __init__(self, worker: int, drain: int):
		self.worker, self.drain = worker, drain

	def must_be_killed_within(self, seconds: float) -> None:
		until = time.monotonic() + seconds
		while is_alive(self.drain):
			assert time.monotonic() < until, "it is still alive"
			time.sleep(0.01)

	def must_live_for(self, seconds: float) -> None:
		time.sleep(seconds)
		assert is_alive(self.drain)


def handled_for(seconds: float, timeout: float, held_for: float = 0) -> Work:
	"""A job whose handler has run for so many seconds, with a lease that is so old."""
	now = time.monotonic()
	return Work("a job", "its token", timeout, now - seconds, now - held_for)


@contextmanager
def guarded(
	lease_seconds: float, work: Work | None, is_handling: bool = True, still_for: float = 0
) -> Iterator[Guarded]:
	board = Board()
	board.write(work)
	board.is_handling = is_handling and work is not None
	SECONDS.pack_into(board.memory, MOVED_AT, time.monotonic() - still_for)
	board.lease_seconds = lease_seconds
	reading, writing = os.pipe()
	worker = os.fork()
	if worker == 0:
		drain = os.fork() or _be_drain(writing, board)
		os.write(writing, f"{drain}\n".encode())
		_sleep()
	pids = _read_lines(reading, 2)
	try:
		yield Guarded(worker, next(pid for pid in pids if pid > 0))
	finally:
		for pid in (worker, *map(abs, pids)):
			with contextlib.suppress(ProcessLookupError):
				os.kill(pid, signal.SIGKILL)
		os.waitpid(worker, 0)


def _be_drain(writing: int, board: Board) -> None:
	drain = DrainProcess()
	watchdog = os.fork()
	if watchdog == 0:
		Guard(drain, board).start()
		_sleep()
	os.write(writing, f"{-watchdog}\n".encode())  # below zero: to be ended, not to be looked at
	_sleep()


def _read_lines(reading: int, count: int) -> list[int]:
	text = b""
	while text.count(b"\n") < count:
		text += os.read(reading, 100)
	return [int(line) for line in text.split()]


def _sleep() -> None:
	time.sleep(FOREVER)
	os._exit(0)
