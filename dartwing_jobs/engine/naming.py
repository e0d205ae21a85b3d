"""Names of jobs: JOB-<year>-<number>, from a sequence that no transaction waits for.

One sequence serves all years: the turn of the year changes the prefix and nothing else.
"""

import random
from datetime import datetime, timezone

from dartwing_jobs import clock
from dartwing_jobs.engine import job_numbers


def next_job_name(now: datetime) -> str:
	return next_job_names(1, now)[0]


def next_job_names(count: int, now: datetime) -> list[str]:
	prefix = f"JOB-{now.year}-"
	return [f"{prefix}{number:05d}" for number in job_numbers.take(count)]


def next_row_name() -> str:
	"""For rows that nobody names: in the order of time, so that each lands beside the last one."""
	return next_row_names(1)[0]


def next_row_names(count: int) -> list[str]:
	"""The same for many at once, of which no two have the same microsecond."""
	first = clock.microseconds()
	return [f"{first + number:014x}{random.getrandbits(32):08x}" for number in range(count)]


def first_row_name_of_the_last(seconds: float) -> str:
	"""Rows that were named within the last seconds have greater names than this."""
	return f"{clock.microseconds() - int(seconds * 1_000_000):014x}"


def moment_of_row(name: str) -> datetime:
	"""When a row was named, in UTC."""
	return datetime.fromtimestamp(int(name[:14], 16) / 1_000_000, timezone.utc).replace(tzinfo=None)
