"""How long to wait before the next attempt: policy, retry number and chance come in, seconds go out."""

import random
from collections.abc import Callable
from typing import NamedTuple

# waits lie between half and all of the exponential delay: a thousand failures do not return at once
JITTER = 0.5


class Backoff(NamedTuple):
	base_seconds: float
	cap_seconds: float

	def delay(self, retry: int, chance: Callable[[], float] = random.random) -> float:
		"""Seconds to wait before retry number `retry` (the first is 1), never more than the cap."""
		# beyond 2**60 the cap has long decided, and floats would overflow
		exponential = self.base_seconds * 2 ** min(max(retry, 1) - 1, 60)
		return min(exponential, self.cap_seconds) * (1 - JITTER * chance())
