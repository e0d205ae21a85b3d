"""The memory that a drain and its watchdog share; and who may be killed by its number."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from dartwing_jobs.engine.board import Board, Work
from dartwing_jobs.engine.guard import DrainProcess

KILLS = 60
LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
LONGEST = "\N{PILE OF POO}" * 140


def work(name: str) -> Work:
	return Work(name, "token", 60, 1.5, 0.25, (f"behind {name}", "its token"))


def test_what_is_written_is_read():
	board = Board()
	assert board.read() is None
	for name in ("first", "second", LONGEST):
		board.write(work(name))
		assert board.read() == work(name)
	board.write(None)
	assert board.read() is None


def test_a_board_is_read_whenever_its_drain_was_killed():
	whole = [work("one"), work(LONGEST)]
	found = [_read_after_kill(whole) for _ in range(KILLS)]
	assert all(one in whole for one in found)


def _read_after_kill(written: list[Work]) -> Work:
	board = Board()
	board.write(written[0])
	pid = _fork(lambda: _write_for_ever(board, written))
	time.sleep(0.003)
	_kill(pid)
	found = []
	reader = threading.Thread(target=lambda: found.append(board.read()), daemon=True)
	reader.start()
	reader.join(2)
	assert found, "it is still being read"
	return found[0]


def _write_for_ever(board: Board, written: list[Work]) -> None:
	while True:
		for one in written:
			board.write(one)


@pytest.mark.skipif(not os.access(LAST_PID, os.W_OK), reason="only root says which number comes next")
def test_a_process_that_has_got_the_number_of_a_drain_is_not_killed():
	reading, writing = os.pipe()
	waiting, go = os.pipe()
	drain = _fork(lambda: _have_a_watchdog_that_kills(waiting, writing))
	os.read(reading, 1)
	_kill(drain)
	stranger = _fork_with_number(drain)
	os.write(go, b"!")
	os.read(reading, 1)  # the watchdog has done what it does
	time.sleep(0.1)  # a signal needs a moment
	assert os.waitpid(stranger, os.WNOHANG) == (0, 0)
	_kill(stranger)


def _have_a_watchdog_that_kills(waiting: int, writing: int) -> None:
	drain = DrainProcess()
	if os.fork() == 0:
		os.write(writing, b".")
		os.read(waiting, 1)
		drain.kill()
		os.write(writing, b".")
		os._exit(0)
	time.sleep(60)


def _fork_with_number(number: int) -> int:
	for _try in range(100):
		LAST_PID.write_text(str(number - 1))
		pid = _fork(lambda: time.sleep(60))
		if pid == number:
			return pid
		_kill(pid)
	raise AssertionError(f"another process always took the number {number}")


def _fork(act) -> int:
	pid = os.fork()
	if pid == 0:
		try:
			act()
		finally:
			os._exit(0)
	return pid


def _kill(pid: int) -> None:
	os.kill(pid, signal.SIGKILL)
	os.waitpid(pid, 0)
