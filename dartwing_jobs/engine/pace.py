"""How long jobs of each type are expected to take, from the last ones that this process has run: that says
how many are claimed together.

One slow run counts at once, and for a while: jobs that are claimed and not begun wait for it.
"""

from collections import deque
from itertools import islice

# of each type, so many runs are remembered; of these, this share was quicker than what is expected
REMEMBERED, SHARE = 50, 0.95
# the slowest of the last ones counts as well
LAST = 16
# what is claimed together is expected to take no longer than this, in seconds
TOGETHER = 0.04
# so many at most; and twice as many as before, for a type that is not known well
MOST, GROWTH = 32, 2
# no run is taken to be shorter, in seconds
SHORTEST = 1e-6


class Pace:
	def __init__(self):
		self.runs: dict[str, deque[float]] = {}
		self.most: dict[str, int] = {}  # by type: how many may be claimed together
		self.room = 1  # the same for the type that was run last

	def note(self, job_type: str, seconds: float) -> None:
		runs = self.runs.setdefault(job_type, deque(maxlen=REMEMBERED))
		runs.append(seconds)
		known = GROWTH * len(runs)
		self.room = self.most[job_type] = max(1, min(MOST, known, int(TOGETHER / _expected(runs))))

	def most_of(self, job_type: str) -> int:
		"""How many jobs of this type may be claimed together: one, if this process has not run any yet."""
		return self.most.get(job_type, 1)


def _expected(runs: deque[float]) -> float:
	"""How many seconds the next one takes, above nothing."""
	usual = sorted(runs)[int(SHARE * (len(runs) - 1))]
	return max(usual, *islice(runs, max(0, len(runs) - LAST), None), SHORTEST)
