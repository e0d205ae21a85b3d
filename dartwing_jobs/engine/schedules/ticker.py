"""Ticks beside a long job: its worker cannot, and while all workers are busy nobody else does.

In a process of its own each time: a tick may take seconds, or wait for somebody, and the watchdog that asks
for it has heartbeats and deadlines to keep.
"""

import contextlib
import os
import signal
import time

import frappe

from dartwing_jobs.engine import database
from dartwing_jobs.engine.observing import reports, tracing
from dartwing_jobs.engine.schedules import ticks

# soon enough for a fire to be on time, and rare enough to cost nothing
TICK_SECONDS = 10
# a tick that takes longer waits in vain
LONGEST_TICK_SECONDS = 300


class Ticker:
	def __init__(self, *not_for_children: int):
		self.not_for_children = not_for_children  # open files of the watchdog
		self.ticked_at = 0.0
		self.pid: int | None = None

	def tick_beside(self, started: float) -> None:
		"""If the job that started then has run for long by now, and no tick is under way."""
		now = time.monotonic()
		if now - max(started, self.ticked_at) > TICK_SECONDS and not self._is_ticking():
			self.ticked_at = now
			self.pid = os.fork()
			if self.pid == 0:
				_tick_and_end(self.not_for_children)

	def _is_ticking(self) -> bool:
		with contextlib.suppress(ChildProcessError):
			return self.pid is not None and os.waitpid(self.pid, os.WNOHANG)[0] == 0
		return False


def _tick_and_end(not_for_children: tuple[int, ...]) -> None:
	"""The process: never returns, never raises into the watchdog's code."""
	code = 1
	try:
		for number in not_for_children:
			os.close(number)
		signal.signal(signal.SIGALRM, signal.SIG_DFL)
		signal.alarm(LONGEST_TICK_SECONDS)
		database.be_patient()
		database.leave_to_parent()
		site = frappe.local.site
		frappe.init(site, force=True)
		frappe.connect()
		ticks.fire_due()
		tracing.flush()
		frappe.db.close()  # a connection that just ends is counted, and told, as one that broke
		code = 0
	except BaseException as error:
		reports.to_log("Could not tick beside a long job", error)
	finally:
		os._exit(code)
