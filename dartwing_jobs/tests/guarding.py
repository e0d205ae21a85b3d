"""A drain that only sleeps, below a worker of its own, and the guard of its watchdog, without a database."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from dartwing_jobs.engine.board import ENTRIES_AT, HELD, MOVED_AT, SECONDS, Board, Held, Job
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


class Handled(NamedTuple):
	held: Held
	since: float


def handled_for(seconds: float, timeout: float, held_for: float = 0) -> Handled:
	"""A job whose handler has run for so many seconds, with a lease that is so old."""
	now = time.monotonic()
	held = Held("its token", now - held_for, True, (Job("a job", timeout),))
	return Handled(held, now - seconds)


@contextmanager
def guarded(
	lease_seconds: float, work: Handled | None, is_handling: bool = True, still_for: float = 0
) -> Iterator[Guarded]:
	board = Board()
	if work:
		_let_it_run(board, work)
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


def _let_it_run(board: Board, work: Handled) -> None:
	board.hold(work.held)
	board.begin(0, 0)
	SECONDS.pack_into(board.memory, board._place(HELD) + ENTRIES_AT, work.since)


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
