"""Server processes that end with the one that started them, even when that one is killed."""

import contextlib
import ctypes
import os
import pwd
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Set
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_SECUREBITS, PR_SET_CHILD_SUBREAPER, PR_CAP_AMBIENT = 1, 28, 36, 47
SECBIT_NO_SETUID_FIXUP = 1 << 2
CAP_DAC_OVERRIDE = 1
CAPSET_VERSION_3 = 0x20080522


def free_port() -> int:
	with socket.socket() as probe:
		probe.bind(("127.0.0.1", 0))
		return probe.getsockname()[1]


def why_not_free(port: int) -> str:
	"""The system's reason why a server cannot have this port of 127.0.0.1; empty if it can."""
	with socket.socket() as probe:
		probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
		try:
			probe.bind(("127.0.0.1", port))
			probe.listen()
		except OSError as error:
			return os.strerror(error.errno)
	return ""


def plain_user() -> tuple[int, int] | None:
	"""The user to run as instead of root; None when this process is not root."""
	if os.geteuid() != 0:
		return None
	entry = pwd.getpwnam("nobody")
	return entry.pw_uid, entry.pw_gid


def spawn(
	command: list[str], log: Path, stop_signal: signal.Signals, drop_root: bool = False, cwd: str | Path = "/"
) -> subprocess.Popen:
	user = plain_user() if drop_root else None
	parent = os.getpid()

	def prepare() -> None:
		if user:
			_become(*user)
		if not end_with(parent, stop_signal):
			os._exit(1)

	with log.open("ab") as output:
		return subprocess.Popen(
			command,
			stdin=subprocess.DEVNULL,
			stdout=output,
			stderr=output,
			cwd=cwd,
			start_new_session=True,
			preexec_fn=prepare,  # nothing else can change capabilities between fork and exec
		)


def stop(process: subprocess.Popen, stop_signal: signal.Signals, patience: float = 20) -> None:
	if process.poll() is not None:
		return
	process.send_signal(stop_signal)
	try:
		process.wait(patience)
	except subprocess.TimeoutExpired:
		process.kill()
		process.wait()


def wait_until(ready: Callable[[], bool], process: subprocess.Popen, log: Path, seconds: float = 30) -> None:
	deadline = time.monotonic() + seconds
	while not ready():
		if process.poll() is not None or time.monotonic() > deadline:
			stop(process, signal.SIGKILL)
			raise RuntimeError(f"{process.args[0]} did not start; its last words:\n{log.read_text()[-2000:]}")
		time.sleep(0.02)


def end_with(parent: int, stop_signal: signal.Signals) -> bool:
	"""This process gets the signal when its parent ends, in any way. False if the parent has ended before."""
	if sys.platform == "linux":
		_prctl(PR_SET_PDEATHSIG, int(stop_signal))
	return os.getppid() == parent


def adopt_orphans() -> None:
	"""What outlives its parent below this process becomes this one's child."""
	if sys.platform == "linux":
		_prctl(PR_SET_CHILD_SUBREAPER, 1)


def descendants(spare: Set[int] = frozenset()) -> set[int]:
	"""All processes below this one, without those to spare and what is below them."""
	parents = {}
	for stat in Path("/proc").glob("[0-9]*/stat"):
		with contextlib.suppress(OSError):  # it has ended meanwhile
			parents[int(stat.parent.name)] = int(stat.read_bytes().rpartition(b")")[2].split()[1])
	found: set[int] = set()
	level = {os.getpid()}
	while level:
		level = {pid for pid, parent in parents.items() if parent in level} - spare
		found |= level
	return found


def _become(uid: int, gid: int) -> None:
	"""Give up root but not its way through closed folders: home and wheel may lie below /root, or be root's.

	One capability is kept. Without the securebit the call `access` would not count it, and initdb asks that.
	"""
	if sys.platform == "linux":
		_prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP)
	os.setgroups([])
	os.setgid(gid)
	os.setuid(uid)
	if sys.platform == "linux":
		_keep_file_access()


def _keep_file_access() -> None:
	mask = 1 << CAP_DAC_OVERRIDE
	header = (ctypes.c_uint32 * 2)(CAPSET_VERSION_3, 0)
	sets = (ctypes.c_uint32 * 6)(mask, mask, mask, 0, 0, 0)
	if ctypes.CDLL(None).capset(header, sets) == 0:
		_prctl(PR_CAP_AMBIENT, 2, CAP_DAC_OVERRIDE, 0, 0)


def _prctl(*arguments: int) -> None:
	ctypes.CDLL(None).prctl(*(ctypes.c_ulong(value) for value in arguments))
