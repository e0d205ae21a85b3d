"""How long jobs of each type are expected to take, from the last ones that this process has run: that says
how many are claimed together.

One slow run counts at once, and for a while: jobs that are claimed and not begun wait for it.
"""

from collections import deque

# of each type, so many runs are remembered; of these, this share was quicker than what is expected
REMEMBERED, SHARE = 50, 0.95
# the slowest of the last ones counts as well
LAST = 16
# what is claimed together is expected to take no longer than this, in seconds
TOGETHER = 0.04
# so many at most; and twice as many as before, for a type that is not known well
MOST, GROWTH = 32, 2


class Pace:
	def __init__(self):
		self.runs: dict[str, deque[float]] = {}
		self.room = 1  # how many jobs like the last ones fit together

	def note(self, job_type: str, seconds: float) -> None:
		runs = self.runs.setdefault(job_type, deque(maxlen=REMEMBERED))
		runs.append(seconds)
		self.room = self.most_of(job_type)

	def expected(self, job_type: str) -> float | None:
		"""Seconds; None for a type that this process has not run yet."""
		runs = self.runs.get(job_type)
		if not runs:
			return None
		usual = sorted(runs)[int(SHARE * (len(runs) - 1))]
		return max(usual, *list(runs)[-LAST:])

	def most_of(self, job_type: str) -> int:
		"""How many jobs of this type may be claimed together."""
		expected = self.expected(job_type)
		if expected is None:
			return 1
		known = GROWTH * len(self.runs[job_type])
		return max(1, min(MOST, known, int(TOGETHER / max(expected, 1e-6))))
