"""Sweeps where Frappe's scheduler does not: a small process beside each worker of a bench.

A worker of RQ waits for messages and does nothing else. When a ring was lost, and no scheduler sweeps, there
is no next message. bench imports `commands.py` before it starts a worker, and so starts this. Of all lookouts
of a machine one looks; another takes its place when it ends. A lookout ends with its worker.

Only the one that looks loads Frappe. It looks in a process of its own each time: nothing is left of a look.
"""

import contextlib
import fcntl
import os
import select
import subprocess
import sys
import time

# how long a site may be without a sweep; 0: no lookouts
VARIABLE, SECONDS = "DARTWING_LOOK_SECONDS", 60
COMMANDS = frozenset({"worker", "worker-pool"})
ONCE = "once"
# how often one that does not look asks whether it is to
TURN_SECONDS = 2
# a look that takes longer hangs
LONGEST_LOOK_SECONDS = 120
# sites without this app are not asked again for so long
UNCONCERNED_SECONDS = 600


def accompany(arguments: list[str]) -> None:
	"""Starts a lookout, if these are the arguments of a worker. One that is to end soon looks first."""
	seconds = float(os.environ.get(VARIABLE) or SECONDS)
	if not seconds or COMMANDS.isdisjoint(arguments):
		return
	told = [ONCE] if "--burst" in arguments else [str(os.getpid())]
	with contextlib.suppress(subprocess.TimeoutExpired):
		subprocess.run(
			[sys.executable, "-m", __name__, str(seconds), *told],
			stdin=subprocess.DEVNULL,
			timeout=LONGEST_LOOK_SECONDS,
		)


class Lookout:
	"""Of one worker, in its sites folder."""

	def __init__(self, worker: int, seconds: float):
		self.worker, self.seconds = Process(worker), seconds
		self.folder = os.open(".", os.O_RDONLY)

	def run(self) -> None:
		while not self.is_its_turn():
			if self.worker.has_ended_after(TURN_SECONDS):
				return
		pause = self.seconds / 2
		while not self.worker.has_ended_after(pause):
			self.look()
			pause = self.seconds / 4

	def is_its_turn(self) -> bool:
		"""Whether no other lookout of this machine looks; it lets go when it ends."""
		try:
			fcntl.flock(self.folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
		except BlockingIOError:
			return False
		except OSError:
			return True  # a file system without locks: all look, which does no harm
		return True

	def look(self) -> None:
		import dartwing_jobs.engine.sweep  # noqa: F401 once, and not in each process

		process = os.fork()
		if process == 0:
			look_and_exit(self.seconds)
		ends = time.monotonic() + LONGEST_LOOK_SECONDS
		while os.waitpid(process, os.WNOHANG)[0] == 0:
			if time.monotonic() > ends or self.worker.has_ended_after(0.1):
				os.kill(process, 9)
				os.waitpid(process, 0)
				return


class Process:
	"""One whose end is waited for."""

	def __init__(self, number: int):
		self.number = number
		self.handle = os.pidfd_open(number) if hasattr(os, "pidfd_open") else None

	def has_ended_after(self, seconds: float) -> bool:
		if self.handle is not None:
			return bool(select.select([self.handle], [], [], seconds)[0])
		time.sleep(seconds)
		try:
			os.kill(self.number, 0)
		except ProcessLookupError:
			return True
		return False


def look_and_exit(seconds: float, must_ring: bool = False) -> None:
	code = 1
	try:
		look_at_all(seconds, must_ring)
		code = 0
	finally:
		os._exit(code)


def look_at_all(seconds: float, must_ring: bool) -> None:
	"""Sweeps each site that was not swept for almost so long; `must_ring`: rings at the others, too."""
	import frappe
	from frappe.utils import get_sites

	from dartwing_jobs.engine.observing import reports

	for site in get_sites():
		try:
			frappe.init(site)
			look_at_site(seconds, must_ring)
		except Exception as error:  # one site's database may be away
			print(f"{site}: {reports.text_of(error)}", file=sys.stderr)
		finally:
			frappe.destroy()


def look_at_site(seconds: float, must_ring: bool) -> None:
	import frappe

	from dartwing_jobs.engine import bell, sweep

	if frappe.conf.maintenance_mode or frappe.conf.pause_scheduler:
		return  # then nothing is to begin by itself
	since = bell.seconds_since_sweep()
	is_due = since is None or since > seconds * 3 / 4
	if not (is_due or must_ring):
		return
	frappe.connect()
	if "dartwing_jobs" not in frappe.get_installed_apps():
		bell.note_sweep(UNCONCERNED_SECONDS)
	elif is_due:
		sweep.sweep()
	else:
		sweep.ring_for_waiting()
	frappe.db.commit()  # nosemgrep: a process of its own


def main(seconds: str, told: str) -> None:
	if told == ONCE:
		look_and_exit(float(seconds), must_ring=True)
	if os.fork():
		os._exit(0)  # so that a lookout is no child of its worker, which waits for other children
	os.setsid()
	with contextlib.suppress(ProcessLookupError):  # it has ended already
		Lookout(int(told), float(seconds)).run()


if __name__ == "__main__":
	main(*sys.argv[1:])
