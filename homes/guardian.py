"""Everything ends with the program that started it: on Ctrl-C, SIGTERM, a closed terminal, and kill -9.

`watched` splits a program in two. The process that was started waits, and passes signals on. Its child, the
guardian, does the work, and outlives it for as long as the end takes: servers and folders belong to the
guardian's `with` blocks. Both adopt what their descendants leave behind, so that if one is killed, the other
one ends everything.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Set
from typing import Any

from homes import process

ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# how long the command has to end after a signal, and then what it left behind, before they are killed
COMMAND_SECONDS = 5
POLITE_SECONDS = 2
KILLING_SECONDS = 10


def watched(work: Callable[[], int]) -> int:
	"""Returns in both processes, with the same exit code, when nothing runs any more below them."""
	sys.stdout.flush()
	process.adopt_orphans()
	starter = os.getpid()
	if guardian := os.fork():
		return _wait_for(guardian)
	# in a group of its own: what is sent to the starter's whole group, SIGKILL too, does not reach it
	os.setpgid(0, 0)
	_at_the_end(_leave)
	process.adopt_orphans()
	if not process.end_with(starter, signal.SIGTERM):
		sys.exit(1)
	try:
		return work()
	finally:
		_at_the_end(signal.SIG_IGN)
		end_descendants()


def call(command: list, **options: Any) -> int:
	"""Runs a command at the starter's terminal, then ends what it left behind; the exit code is a shell's."""
	earlier = process.descendants()
	group = os.getpgid(os.getppid())
	child = subprocess.Popen(command, preexec_fn=lambda: _join(group), **options)
	_at_the_end(lambda number, _frame: _pass_on(number, child, group))
	_reap_until_gone(child)
	_at_the_end(signal.SIG_IGN)
	end_descendants(spare=earlier)
	return _exit_code(child.returncode)


def end_descendants(spare: Set[int] = frozenset()) -> None:
	"""Ends all that runs below this process: politely at first."""
	asked: set[int] = set()
	begin = time.monotonic()
	while (
		left := process.descendants(spare)
	) and time.monotonic() < begin + POLITE_SECONDS + KILLING_SECONDS:
		if time.monotonic() > begin + POLITE_SECONDS:
			_send(signal.SIGKILL, left)
		_send(signal.SIGTERM, left - asked)
		asked |= left
		_reap()
		time.sleep(0.02)


def _wait_for(guardian: int) -> int:
	_at_the_end(lambda number, _frame: _send(number, {guardian}))
	_, status = os.waitpid(guardian, 0)
	_at_the_end(signal.SIG_IGN)
	end_descendants()
	return _exit_code(os.waitstatus_to_exitcode(status))


def _at_the_end(action: Any) -> None:
	for number in ENDS:
		# what nohup or a shell's & has switched off stays so
		if number == signal.SIGTERM or signal.getsignal(number) != signal.SIG_IGN:
			signal.signal(number, action)


def _leave(number: int, _frame: object) -> None:
	_at_the_end(signal.SIG_IGN)
	sys.exit(128 + number)


def _pass_on(number: int, child: subprocess.Popen, group: int) -> None:
	# A terminal's Ctrl-C reaches the whole group by itself; twice would mean "at once" to many programs.
	if number == signal.SIGINT and _has_terminal(group):
		return
	child.send_signal(number)
	if number != signal.SIGINT:
		signal.signal(signal.SIGALRM, lambda *_: child.kill())
		signal.alarm(COMMAND_SECONDS)


def _has_terminal(group: int) -> bool:
	with contextlib.suppress(OSError), open("/dev/tty") as terminal:
		return os.tcgetpgrp(terminal.fileno()) == group
	return False


def _join(group: int) -> None:
	# if the starter's group is gone, the end is near anyway
	with contextlib.suppress(OSError):
		os.setpgid(0, group)


def _reap_until_gone(child: subprocess.Popen) -> None:
	while child.returncode is None:
		pid, status = os.wait()
		if pid == child.pid:
			child.returncode = os.waitstatus_to_exitcode(status)


def _reap() -> None:
	with contextlib.suppress(ChildProcessError):
		while os.waitpid(-1, os.WNOHANG)[0]:
			pass


def _send(number: int, pids: Set[int]) -> None:
	for pid in pids:
		with contextlib.suppress(ProcessLookupError, PermissionError):
			os.kill(pid, number)


def _exit_code(returned: int) -> int:
	return 128 - returned if returned < 0 else returned
