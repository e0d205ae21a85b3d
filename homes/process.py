"""Server processes that end with whoever started them, even when that one is killed."""

import ctypes
import os
import pwd
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_KEEPCAPS, PR_CAP_AMBIENT = 1, 8, 47
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2
CAPSET_VERSION_3 = 0x20080522


def free_port() -> int:
	with socket.socket() as probe:
		probe.bind(("127.0.0.1", 0))
		return probe.getsockname()[1]


def plain_user() -> tuple[int, int] | None:
	"""Whom to run as instead of root; None when this process is not root."""
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
		_die_with(parent, stop_signal)

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


def _become(uid: int, gid: int) -> None:
	"""Give up root but not its way through closed folders: home and wheel may lie below /root."""
	if sys.platform == "linux":
		_prctl(PR_SET_KEEPCAPS, 1)
	os.setgroups([])
	os.setgid(gid)
	os.setuid(uid)
	if sys.platform == "linux":
		_keep_file_access()


def _keep_file_access() -> None:
	mask = 1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH
	header = (ctypes.c_uint32 * 2)(CAPSET_VERSION_3, 0)
	sets = (ctypes.c_uint32 * 6)(mask, mask, mask, 0, 0, 0)
	if ctypes.CDLL(None).capset(header, sets) == 0:
		for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
			_prctl(PR_CAP_AMBIENT, 2, capability, 0, 0)


def _die_with(parent: int, stop_signal: signal.Signals) -> None:
	if sys.platform != "linux":
		return
	_prctl(PR_SET_PDEATHSIG, int(stop_signal))
	if os.getppid() != parent:
		os._exit(1)


def _prctl(*arguments: int) -> None:
	ctypes.CDLL(None).prctl(*(ctypes.c_ulong(value) for value in arguments))
