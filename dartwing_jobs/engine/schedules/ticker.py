"""Ticks beside a long job: its worker cannot, and while all workers are busy nobody else does.

In a process of its own each time: a tick may take seconds, or wait for somebody, and the watchdog that asks
for it has heartbeats and deadlines to keep.
"""

import contextlib
import os
import time

import frappe

from dartwing_jobs.engine import database
from dartwing_jobs.engine.observing import tracing
from dartwing_jobs.engine.schedules import ticks

# soon enough for a fire to be on time, and rare enough to cost nothing
TICK_SECONDS = 10


class Ticker:
	def __init__(self):
		self.ticked_at = 0.0
		self.pid: int | None = None

	def tick_beside(self, started: float) -> None:
		"""If the job that started then has run for long by now, and no tick is under way."""
		now = time.monotonic()
		if now - max(started, self.ticked_at) > TICK_SECONDS and not self._is_ticking():
			self.ticked_at = now
			self.pid = os.fork()
			if self.pid == 0:
				_tick_and_end()

	def _is_ticking(self) -> bool:
		with contextlib.suppress(ChildProcessError):
			return self.pid is not None and os.waitpid(self.pid, os.WNOHANG)[0] == 0
		return False


def _tick_and_end() -> None:
	"""The process: never returns, never raises into the watchdog's code."""
	code = 1
	try:
		database.leave_to_parent()
		site = frappe.local.site
		frappe.init(site, force=True)
		frappe.connect()
		ticks.fire_due()
		tracing.flush()
		frappe.db.close()  # a connection that just ends is counted, and told, as one that broke
		code = 0
	except BaseException:
		frappe.logger("dartwing_jobs").exception("Could not tick beside a long job")
	finally:
		os._exit(code)
