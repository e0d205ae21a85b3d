"""Places under a limit that a transaction has taken and not committed: rows that everybody sees at once.

No other submit waits for the transaction itself. A reservation counts until its first job can be seen, which
is then counted as waiting. It goes with the end of the transaction, or by its date when the process was
killed.
"""

import logging
from datetime import timedelta

import frappe

from dartwing_jobs import clock
from dartwing_jobs.engine import database, rows, statements
from dartwing_jobs.engine.observing import reports

DOCTYPE = "Job Reservation"
# for so long a transaction keeps its places: as long as a job of the default timeout may run
SECONDS = 300
BATCH = 1000
# in one statement, and so at one moment: what is committed meanwhile is in one part or in the other
COUNTED = f"""select null as name, ({{count}}) as places, 0 as is_over
	union all select held.name, case when job.name is null then held.places else 0 end,
	case when held.expires_at < utc_timestamp(6) then 1 else 0 end
	from `tab{DOCTYPE}` held left join `tabBackground Job` job on job.name = held.background_job
	where held.turnstile = %s"""


def taken(turnstile: str, count: str, values: tuple) -> int:
	"""How many places are taken, with those that `count` counts; forgets what is out of date."""
	found = statements.fetch(COUNTED.format(count=count), (*values, turnstile))
	_delete(sorted(row.name for row in found if row.is_over))
	return sum(row.places for row in found if not row.is_over)


def make(turnstiles: list[str], jobs: list) -> list[str]:
	"""Takes a place for each job, at each turnstile; returns the names of the reservations."""
	expires_at = database.utc_now() + timedelta(seconds=SECONDS)
	same = {"background_job": jobs[0].name, "places": len(jobs), "expires_at": expires_at}
	made = [rows.new("Administrator", clock.now(), turnstile=name, **same) for name in turnstiles]
	statements.insert(DOCTYPE, made)
	return [row["name"] for row in made]


def keep_until_the_end(names: list[str], job_name: str) -> None:
	"""They go when this transaction ends, however it ends."""
	mine = _mine()
	if not mine:
		frappe.db.after_commit.add(lambda: _release(mine))
		frappe.db.after_rollback.add(lambda: _release(mine))
	mine.update(dict.fromkeys(names, job_name))


def give_back_vanished() -> bool:
	"""Gives back what was taken for jobs that a savepoint has taken back since; whether there were any."""
	mine = _mine()
	there = _existing(sorted(set(mine.values())))
	vanished = {name: job for name, job in mine.items() if job not in there}
	for name in vanished:
		del mine[name]
	return _release(vanished)


def _mine() -> dict[str, str]:
	"""The reservations of this transaction, and the first job of each."""
	if getattr(frappe.db, "dartwing_places", None) is None:
		frappe.db.dartwing_places = {}
	return frappe.db.dartwing_places


def _existing(names: list[str]) -> set[str]:
	found: set[str] = set()
	for start in range(0, len(names), BATCH):
		some = names[start : start + BATCH]
		places = ", ".join(["%s"] * len(some))
		there = statements.fetch(f"select name from `tabBackground Job` where name in ({places})", some)
		found |= {row.name for row in there}
	return found


def _release(reservations: dict[str, str]) -> bool:
	"""Never raises: the commit has happened. What stays here expires by itself."""
	names = sorted(reservations)
	reservations.clear()
	try:
		_delete_apart(names)
	except Exception as error:
		reports.to_log("Places stay reserved until they expire", error, logging.WARNING)
	return bool(names)


def _delete_apart(names: list[str]) -> None:
	if names:
		with database.beside():
			_delete(names)
			frappe.db.commit()  # nosemgrep: a connection of its own


def _delete(names: list[str]) -> None:
	for start in range(0, len(names), BATCH):
		some = names[start : start + BATCH]
		places = ", ".join(["%s"] * len(some))
		statements.execute(f"delete from `tab{DOCTYPE}` where name in ({places})", some)
