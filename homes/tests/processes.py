"""Real processes that can be found again, by a mark in their environment; terminals that can be closed."""

import contextlib
import fcntl
import os
import pty
import secrets
import shutil
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from homes.environment import ROOT

MARK = "DARTWING_TEST_MARK"


class Marked:
	"""A program and all that comes from it, however far away."""

	def __init__(self, command: list, output: Path, folder: Path | None = None, **options):
		self.mark = secrets.token_hex(8)
		self.output = output
		self.folder = folder or output.parent
		environment = {**options.pop("env", os.environ), MARK: self.mark}
		options = {"stdin": subprocess.DEVNULL, "start_new_session": True, **options}
		options["preexec_fn"] = _with_default_signals(options.get("preexec_fn"))
		with output.open("wb") as file:
			pipes = {"stdout": file, "stderr": file, **options}
			self.process = subprocess.Popen(command, env=environment, **pipes)

	def text(self) -> str:
		return self.output.read_text(errors="replace")

	def wait_for_text(self, text: str, seconds: float = 60) -> None:
		wait_for(lambda: text in self.text() or self.process.poll() is not None, seconds, self.text)
		assert text in self.text(), self.text()

	def running(self) -> list[str]:
		"""What still runs, by its command: with the mark, or, as servers write over it, in the folder."""
		return [
			_read(path / "cmdline").replace(b"\0", b" ").decode(errors="replace")
			for path in Path("/proc").glob("[0-9]*")
			if self._is_mine(path)
		]

	def _is_mine(self, path: Path) -> bool:
		with contextlib.suppress(OSError):
			marked = f"{MARK}={self.mark}".encode() in (path / "environ").read_bytes()
			return marked or (path / "cwd").readlink().is_relative_to(self.folder)
		return False

	def wait_until_all_has_ended(self, seconds: float = 30) -> None:
		with contextlib.suppress(subprocess.TimeoutExpired):
			self.process.wait(seconds)
		wait_for(lambda: not self.running(), seconds, lambda: f"{self.running()}\n{self.text()}")


@contextlib.contextmanager
def terminal(columns: int = 80, lines: int = 24) -> Iterator[tuple[int, int]]:
	"""Both ends of a terminal; closing the first is what a window does that is closed."""
	ours, theirs = pty.openpty()
	fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
	try:
		yield ours, theirs
	finally:
		for end in (ours, theirs):
			with contextlib.suppress(OSError):
				os.close(end)


def _with_default_signals(then: Callable[[], None] | None) -> Callable[[], None]:
	"""As a shell starts programs, also where the suite itself runs behind nohup or in the background."""

	def prepare() -> None:
		for number in (signal.SIGHUP, signal.SIGINT):
			signal.signal(number, signal.SIG_DFL)
		if then:
			then()

	return prepare


def take_terminal(end: int) -> Callable[[], None]:
	"""For a new session: the terminal becomes its own."""
	return lambda: fcntl.ioctl(end, termios.TIOCSCTTY, 0)


def copy_of_the_project(place: Path) -> Path:
	"""As a clone would be: without what runs have made."""
	made = (".git", ".venv*", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info")
	shutil.copytree(ROOT, place, ignore=shutil.ignore_patterns(*made))
	return place


def project_environment(**more: str) -> dict[str, str]:
	return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def wait_for(condition: Callable[[], bool], seconds: float, story: Callable[[], str] = str) -> None:
	deadline = time.monotonic() + seconds
	while not condition():
		assert time.monotonic() < deadline, f"nothing happened in time: {story()}"
		time.sleep(0.05)


def is_running(pid: str) -> bool:
	state = _read(Path("/proc", pid, "stat")).rpartition(b")")[2].split()[:1]
	return bool(state) and state != [b"Z"]


def _read(path: Path) -> bytes:
	with contextlib.suppress(OSError):
		return path.read_bytes()
	return b""
