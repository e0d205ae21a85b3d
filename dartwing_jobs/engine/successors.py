"""Retry mode New Job: a failed job stays as it is, and a new one takes over all that hangs on it."""

import uuid
from datetime import datetime

import frappe

from dartwing_jobs import clock
from dartwing_jobs.engine import bell, database, log, naming, order, statements, states
from dartwing_jobs.engine.handling import steps
from dartwing_jobs.engine.intake import fingerprints, keys

# how a job follows another: by itself, when that one failed; or because somebody wanted it again
RETRY, REPLAY = "retry", "replay"
# what a chain has at most: a job that is retried for ever must not be read for ever
MOST_LINKS = 1000
COLUMNS = (
	"name",
	"organization",
	"owner_user",
	"status",
	"attempt",
	"retry_of",
	"created_at",
	"created_utc",
	"completed_at",
)
CHAINED = f"""select {", ".join(f"job.{column}" for column in COLUMNS)},
	run.name as run, run.status as run_status from `tabBackground Job` job
	left join `tabJob Run` run on run.name = (select newest.name from `tabJob Run` newest
	where newest.background_job = job.name order by newest.attempt desc, newest.name desc limit 1)"""
# what belongs to one job alone; everything else of the row is taken over
OWN = {
	"status": states.PENDING,
	"progress": 0,
	"progress_message": None,
	"output_reference": None,
	"error_message": None,
	"error_type": None,
	"error_class": None,
	"started_at": None,
	"completed_at": None,
	"canceled_at": None,
	"canceled_by": None,
	"cancel_requested_at": None,
	"cancel_requested_by": None,
	**order.OUT_OF_LINE,
	**order.NOT_HELD,
	"lease_token": None,
	"lease_expires_at": None,
	"cost_cents": 0,
	"snooze_count": 0,
	"uncounted_runs": 0,
	"moves": 0,
}
SUCCESSOR = """select successor.name from `tabBackground Job` successor
	join `tabBackground Job` failed on failed.name = successor.retry_of
	where successor.retry_of = %s and failed.status in ('Failed', 'Timed Out')"""


def take_over(job, due: datetime, now: datetime) -> str:
	"""Makes the successor of a job that has just failed, due at a moment; returns its name.

	Keys, group, place in it, children and the count of retries move over in the same transaction.
	"""
	(failed,) = statements.fetch("select * from `tabBackground Job` where name = %s", (job.name,))
	# PostgreSQL hands over every JSON column as an object, custom fields too
	written = {column: statements.as_text(value) for column, value in failed.items()}
	successor = frappe._dict(written, **OWN)
	successor |= {
		"name": naming.next_job_name(now),
		"job_id": str(uuid.uuid4()),
		"creation": now,
		"modified": now,
		"created_at": now,
		"created_utc": clock.utc_now(),
		"retry_of": job.name,
		"retry_count": failed.retry_count + 1,
		"next_retry_at": database.as_site_time(due),
		"run_at": due,
	}
	if not keys.is_given(failed):
		successor.idempotency_key = fingerprints.key_of_its_own(successor)
	# a unique key has one holder at a time
	statements.update(
		"Background Job", job.name, {"unique_key": None, "next_retry_at": None, "modified": now}
	)
	statements.insert("Background Job", [successor])
	_hand_over(job.name, successor["name"])
	told = {"now": now, "actor": successor.owner_user, "message": f"Retry of {job.name}"}
	log.write(successor, states.CREATION.event, None, states.PENDING, **told)
	bell.ring_when_due_after_commit(job.job_queue, due)
	return successor["name"]


def latest(job_name: str) -> str:
	"""The end of a chain: the job that now stands for this one.

	What somebody retried by hand was dead or canceled: its retry is another job, not a link of the chain.
	"""
	seen = [job_name]
	while (following := successor_of(seen[-1])) and following not in seen:
		seen.append(following)
	return seen[-1]


def latest_locked(job_name: str, seconds: int):
	"""The row of the end of a chain, as it is now, whatever this transaction has seen; None when it is gone.

	It stays as it is until the transaction ends. A wait for another transaction that takes longer than
	`seconds` ends in a conflict.
	"""
	name, seen = latest(job_name), set()
	while name not in seen and database.lock_row("Background Job", name, seconds):
		seen.add(name)
		(row,) = statements.fetch("select * from `tabBackground Job` where name = %s for update", (name,))
		following = successor_of(name, "for update") if row.status in states.REPLACEABLE else None
		if following is None:
			return row
		name = following
	return None


def successor_of(job_name: str, how: str = "") -> str | None:
	found = statements.fetch(f"{SUCCESSOR} {how}", (job_name,))
	return found[0].name if found else None


def chain(job_name: str) -> list:
	"""All jobs that `retry_of` joins to this one, from the oldest on; the same for whichever is asked for.

	Each has its last run (`run`, `run_status`) and how it follows its predecessor (`link`). A job that was
	replayed twice has two that follow it.
	"""
	members: dict[str, frappe._dict] = {}
	found = statements.fetch(f"{CHAINED} where job.name = %s", (_oldest(job_name),))
	while found and len(members) < MOST_LINKS:
		for row in found:
			row.link = _link(row, members)
			members[row.name] = row
		found = [row for row in _followers([row.name for row in found]) if row.name not in members]
	return sorted(list(members.values())[:MOST_LINKS], key=lambda row: row.created_utc)


def _oldest(job_name: str) -> str:
	"""As far back as there are jobs: retention may have taken the first ones."""
	seen = [job_name]
	while len(seen) < MOST_LINKS // 2:
		rows = statements.fetch(
			"""select failed.name from `tabBackground Job` job join `tabBackground Job` failed
			on failed.name = job.retry_of where job.name = %s""",
			(seen[-1],),
		)
		if not rows or rows[0].name in seen:
			break
		seen.append(rows[0].name)
	return seen[-1]


def _followers(names: list[str]) -> list:
	places = ", ".join(["%s"] * len(names))
	order = f"order by job.created_utc, job.name limit {MOST_LINKS}"
	return statements.fetch(f"{CHAINED} where job.retry_of in ({places}) {order}", names)


def _link(row, members: dict) -> str | None:
	"""None for the first of a chain, and where the job before it is gone."""
	before = members.get(row.retry_of)
	if before is None:
		return None
	return RETRY if before.status in states.REPLACEABLE else REPLAY


def _hand_over(old: str, new: str) -> None:
	"""Children wait for the new one, keys lead to it, and it remembers the steps that were done."""
	steps.hand_over(old, new)
	statements.execute("update `tabBackground Job` set depends_on = %s where depends_on = %s", (new, old))
	keys.hand_over(old, new)
