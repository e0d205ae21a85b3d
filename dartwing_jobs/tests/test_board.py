"""The memory that a drain and its watchdog share; and who may be killed by its number."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from dartwing_jobs.engine.board import MOST_JOBS, RUNS, TAKEN_BACK, Board, Held, Job, Work
from dartwing_jobs.engine.guard import DrainProcess

KILLS = 60
LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
LONGEST = "\N{PILE OF POO}" * 140


def held(name: str, count: int = 1) -> Held:
	jobs = tuple(Job(f"{name}"[:138] + f"{number:02}", 60) for number in range(count))
	return Held("token", 0.25, False, jobs)


WHOLE = [held("one"), held(LONGEST, MOST_JOBS)]


def test_what_is_held_is_read():
	board = Board()
	assert board.read() is None
	for one in (held("first"), held("second", 5), held(LONGEST, MOST_JOBS), held('"' * 140, MOST_JOBS)):
		board.hold(one)
		assert board.read().held == one
	board.hold(None)
	assert board.read() is None


def test_what_is_announced_is_read_until_it_is_held():
	board = Board()
	board.hold(held("one"))
	board.announce(held(LONGEST, MOST_JOBS))
	assert board.following() == held(LONGEST, MOST_JOBS)
	assert board.read().held == held("one")
	board.hold(held(LONGEST, MOST_JOBS))
	assert board.following() is None


def test_a_job_is_begun_or_taken_back_and_never_both():
	board = Board()
	board.hold(held("one", 3))
	assert board.begin(0, 17)
	assert board.take_back("token") == [1, 2]
	assert not board.begin(1, 18)
	assert board.read().states == bytes([RUNS, TAKEN_BACK, TAKEN_BACK])
	assert board.read().moments[0] == 17


@pytest.mark.parametrize("turn", range(20))
def test_two_processes_that_reach_for_the_same_jobs_never_both_get_one(turn):
	board = Board()
	board.hold(held("one", MOST_JOBS))
	reading, writing = os.pipe()
	drain = _fork(lambda: _tell(writing, [number for number in range(MOST_JOBS) if board.begin(number, 1)]))
	taken = board.take_back("token")
	begun = json.loads(os.read(reading, 1000))
	os.waitpid(drain, 0)
	assert sorted([*begun, *taken]) == list(range(MOST_JOBS))


def test_a_job_that_was_shown_is_known_to_be_so_when_it_ends():
	board = Board()
	board.hold(held("one", 3))
	board.begin(0, 1)
	since = board.read().since[0]
	assert board.show("another token") is None
	assert board.show("token") == (held("one", 3).jobs[0].name, 1)
	assert board.read().since[0] == since, "its deadline would move"
	assert board.finish(0) is True
	board.begin(1, 1)
	assert board.finish(1) is False
	assert board.show("token") is None, "it has ended"


def test_records_of_ends_are_kept_however_large_until_they_are_recorded():
	board = Board()
	board.hold(held("one", 3))
	large = b"x" * 20_000_000
	for number, record in enumerate([b"first", large]):
		board.begin(number, 1)
		board.finish(number)
		board.keep(number, record)
	assert board.records_of("token") == {0: b"first", 1: large}
	board.note_recorded("another token", [0])
	board.note_recorded("token", [0])
	assert board.records_of("token") == {1: large}
	assert board.records_of("another token") == {}


def test_a_board_is_read_whenever_its_drain_was_killed():
	found = [_read_after_kill() for _ in range(KILLS)]
	assert all(one.held in WHOLE for one in found)


def test_a_drain_that_is_killed_in_its_turn_leaves_it_to_the_watchdog():
	board = Board()
	board.hold(held("one"))
	reading, writing = os.pipe()
	drain = _fork(lambda: _stay_in_turn(board, writing))
	os.read(reading, 1)
	threading.Timer(0.2, lambda: _kill(drain)).start()
	assert board.take_back("token") == [0]


def _stay_in_turn(board: Board, writing: int) -> None:
	with board._turn():
		os.write(writing, b".")
		time.sleep(60)


def _tell(writing: int, value: list) -> None:
	os.write(writing, json.dumps(value).encode())


def _read_after_kill() -> Work:
	board = Board()
	board.hold(WHOLE[0])
	pid = _fork(lambda: _hold_for_ever(board))
	time.sleep(0.003)
	_kill(pid)
	found = []
	reader = threading.Thread(target=lambda: found.append(board.read()), daemon=True)
	reader.start()
	reader.join(2)
	assert found, "it is still being read"
	return found[0]


def _hold_for_ever(board: Board) -> None:
	while True:
		for one in WHOLE:
			board.hold(one)


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
