"""Ends a handler at its deadline, by a signal that interrupts sleeping and waiting too."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from dartwing_jobs.errors import JobTimeout


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
	def ring(_number, _frame):
		raise JobTimeout(f"The job ran longer than its {seconds:g} seconds")

	before = signal.signal(signal.SIGALRM, ring)
	# once a second after that, for handlers that swallow even this
	signal.setitimer(signal.ITIMER_REAL, seconds, 1)
	try:
		yield
	finally:
		signal.setitimer(signal.ITIMER_REAL, 0)
		signal.signal(signal.SIGALRM, before)
