"""Dartwing Jobs, with measurements that need parts of its engine; a commit from elsewhere may lack those."""

import frappe

from benchmarks.systems import floor, scheduled
from benchmarks.systems.ours import Ours
from benchmarks.systems.system import WORKERS
from benchmarks.systems.work import EMPTY


class OursAndEngine(Ours):
	def floor(self, count: int) -> float:
		"""Jobs a second that would do nothing but change a row and commit, in two processes."""
		return floor.commits_a_second(WORKERS, count)

	def tick_schedules(self, count: int, due: int) -> dict[str, float | list[float]]:
		"""Seconds of a tick that fires, and of ticks that find nothing to do."""
		self.reset()
		frappe.set_user("Administrator")
		try:
			return scheduled.tick(self.organization, self.user, self.types[EMPTY], count, due)
		finally:
			frappe.set_user(self.user)
			self.reset()
