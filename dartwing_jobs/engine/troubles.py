"""Work that the engine could not do: set aside for a while, so that it never stops the rest.

Each duty stands by itself, and so does each row that a duty is about. The first failure is logged. Every
failure is counted, and makes the pause before the next try longer. What does not fail again is forgotten.
"""

import hashlib
import json
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import TypeVar

from dartwing_jobs import clock
from dartwing_jobs.engine import database, rows, runs, statements
from dartwing_jobs.engine.observing import counters, reports

DOCTYPE = "Job Trouble"
TROUBLES = "jobs_troubles_total"
FIRST_PAUSE_SECONDS, GROWTH, LONGEST_PAUSE_SECONDS = 5, 4, 3600
# twice the longest pause: what still fails has failed again by then
FORGOTTEN_SECONDS = 2 * LONGEST_PAUSE_SECONDS
# a condition for rows that are not set aside, with the duty and the column that names the row
NOT_SET_ASIDE = """not exists (select 1 from `tabJob Trouble` trouble where trouble.duty = '{duty}'
	and trouble.about = {column} and trouble.next_try_at > utc_timestamp(6))"""

Done = TypeVar("Done")


class Duties:
	"""One round of duties, without those that failed a moment ago."""

	def __init__(self) -> None:
		found = statements.fetch(
			f"select duty from `tab{DOCTYPE}` where about = '' and next_try_at > utc_timestamp(6)"
		)
		self.set_aside = {row.duty for row in found}

	def do(self, duty: Callable[..., Done], *arguments) -> Done | None:
		"""None when the duty is set aside, or fails."""
		name = f"{duty.__module__.removeprefix('dartwing_jobs.')}.{duty.__name__}"
		return None if name in self.set_aside else alone(name, "", lambda: duty(*arguments))


def each(duty: str, names: Collection[str], act: Callable[[str], Done]) -> list[Done | None]:
	"""Does the same for each row that is not set aside. One that fails is, and the others have their turn."""
	waiting = set_aside(duty) if names else ()
	return [alone(duty, name, lambda name=name: act(name)) for name in names if name not in waiting]


def set_aside(duty: str) -> set[str]:
	"""The rows whose pause is not over."""
	found = statements.fetch(
		f"select about from `tab{DOCTYPE}` where duty = %s and next_try_at > utc_timestamp(6)", (duty,)
	)
	return {row.about for row in found}


def alone(duty: str, about: str, work: Callable[[], Done]) -> Done | None:
	"""Does one piece of work; None when it fails. Without a database it raises: nothing can be noted."""
	try:
		return work()
	except Exception as error:
		if database.is_lost_connection(error):
			raise
		database.rollback()
		note(duty, about, error)
		return None


@database.own_transaction
def note(duty: str, about: str, error: Exception) -> datetime:
	"""Sets aside what failed, until the moment (UTC) that it returns."""
	now = database.utc_now()
	is_new = _insert_if_new(duty, about, now)
	(known,) = statements.fetch(
		f"select name, failures from `tab{DOCTYPE}` where key_hash = %s for update", (_key(duty, about),)
	)
	next_try = now + timedelta(seconds=pause_after(known.failures + 1))
	seen = {"error_class": runs.class_of(error), "error_message": runs.message_of(error)}
	columns = {"failures": known.failures + 1, "next_try_at": next_try, "modified": clock.now(), **seen}
	statements.update(DOCTYPE, known.name, columns)
	counters.add({counters.Counter(TROUBLES, error_class=seen["error_class"]): 1})
	if is_new:
		reports.to_error_log(f"{duty} {about}: set aside", error)
	return next_try


def pause_after(failures: int) -> int:
	"""How many seconds to wait after so many failures in a row."""
	longest = FIRST_PAUSE_SECONDS
	for _failure in range(1, failures):
		longest = min(longest * GROWTH, LONGEST_PAUSE_SECONDS)
	return longest


def by_duty() -> dict[str, int]:
	"""How many pieces of work are set aside now."""
	found = statements.fetch(f"select duty, count(*) as troubles from `tab{DOCTYPE}` group by duty")
	return {row.duty: row.troubles for row in found}


@database.own_transaction
def forget_settled() -> None:
	"""What has not failed again is no trouble any more."""
	before = database.utc_now() - timedelta(seconds=FORGOTTEN_SECONDS)
	statements.execute(f"delete from `tab{DOCTYPE}` where next_try_at < %s", (before,))


def _insert_if_new(duty: str, about: str, now: datetime) -> bool:
	row = rows.new(
		"Administrator", clock.now(), duty=duty, about=about, failures=0, key_hash=_key(duty, about)
	)
	row |= {"first_failed_at": now, "next_try_at": now}
	return statements.insert_missing(DOCTYPE, [row]) == 1


def _key(duty: str, about: str) -> str:
	"""Databases compare texts in their own ways, digests alike."""
	return hashlib.sha256(json.dumps([duty, about]).encode()).hexdigest()
