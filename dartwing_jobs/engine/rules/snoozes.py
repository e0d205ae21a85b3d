"""Snoozes: how long each may be, how it grows, and how many there may be in a row."""

import math
from decimal import Decimal

from dartwing_jobs import settings
from dartwing_jobs.errors import PermanentError

SHORTEST_SECONDS = 1
LONGEST_SECONDS = 366 * 24 * 3600
# after so many in a row the shortest snooze is twice as long, up to a minute: who polls is to poll slowly
STEP = 10
LARGEST_FLOOR = 60


def checked(seconds) -> float:
	"""The seconds of a snooze as a number; raises when they are none that a job can wait."""
	is_number = isinstance(seconds, int | float | Decimal) and not isinstance(seconds, bool)
	if not (is_number and math.isfinite(seconds) and 0 <= seconds <= LONGEST_SECONDS):
		shown = repr(seconds)[:40]
		raise PermanentError(f"A snooze lasts from 0 to {LONGEST_SECONDS} seconds, not {shown}.")
	return float(seconds)


def wait(seconds: float, snoozes_before: int) -> float:
	"""How long a job really waits that asks for so many seconds, after so many snoozes in a row."""
	doublings = min(snoozes_before // STEP, LARGEST_FLOOR.bit_length())
	return max(seconds, min(SHORTEST_SECONDS * 2**doublings, LARGEST_FLOOR))


def check_number(snoozes_before: int, job_type) -> None:
	"""Raises when a job has snoozed as often as it may."""
	most = (job_type and job_type.max_snoozes) or settings.max_snoozes()
	if snoozes_before >= most:
		message = f"The handler has snoozed {snoozes_before} times in a row, and may do so {most} times."
		raise PermanentError(f"{message} An administrator can allow more on the Job Type.")
