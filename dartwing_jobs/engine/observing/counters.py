"""Counters that only grow: folded from the log into Job Metric, a batch at a time.

Nobody who moves a job touches a counter: rows of the log are born uncounted, and whoever folds takes what no
other holds. So no row is hot, every move is counted once, and what retention deletes has been counted before.
"""

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

import frappe

from dartwing_jobs import clock
from dartwing_jobs.engine import afterwards, database, rows, statements, states

DOCTYPE = "Job Metric"
BATCH = 1000
FAILED, DURATION, ATTEMPTS = "jobs_failed_total", "jobs_duration_seconds", "jobs_attempts_histogram"
# an event of the log: the counter that it adds one to
OF_EVENTS = {
	"job.enqueued": "jobs_enqueued_total",
	"job.started": "jobs_started_total",
	"job.succeeded": "jobs_succeeded_total",
	"job.retried": "jobs_retried_total",
	"job.requeued": "jobs_requeued_total",
	"job.canceled": "jobs_canceled_total",
	"job.deadlettered": "deadletter_total",
	"job.failed": FAILED,
	"job.timed_out": FAILED,
}
COUNTED = frozenset(OF_EVENTS)
ENDED_FOR_GOOD = frozenset({"job.succeeded", "job.deadlettered"})
DURATION_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
ATTEMPT_BOUNDS = (1, 2, 3, 4, 5, 10, 20)
# what a histogram's rows have in their bucket beside bounds
OVER, SUM = "+Inf", "sum"
COLUMNS = "name, event, from_status, job_type, job_queue, error_class, attempt, duration_seconds"
# what becomes of a counter that is there already
ADDED = {
	"mariadb": "on duplicate key update value = value + values(value), modified = values(modified)",
	"postgres": f"""on conflict (key_hash) do update set value = `tab{DOCTYPE}`.value + excluded.value,
		modified = excluded.modified""",
}
RAISED = {
	"mariadb": "on duplicate key update value = greatest(value, values(value)), modified = values(modified)",
	"postgres": f"""on conflict (key_hash) do update
		set value = greatest(`tab{DOCTYPE}`.value, excluded.value), modified = excluded.modified""",
}


class Counter(NamedTuple):
	"""One row of Job Metric; a label that a metric does not have is empty."""

	metric: str
	job_type: str = ""
	job_queue: str = ""
	error_class: str = ""
	bucket: str = ""


def fold(seconds: float) -> int:
	"""Counts what is uncounted, for about so long at most; returns how many rows that were.

	Each batch is a transaction of its own; many may fold at once.
	"""
	ends, folded, last = time.monotonic() + seconds, 0, ""
	while True:
		count, last = _fold_batch(last)
		folded += count
		if count < BATCH or time.monotonic() > ends:
			return folded


def take(job_names: list[str]) -> dict[Counter, float]:
	"""What the uncounted log rows of these jobs add up to; locks them, for they are about to be deleted."""
	return tally(
		statements.fetch(
			f"""select {COLUMNS} from `tabJob Execution Log` force index (idx_job_timestamp)
			where background_job in ({", ".join(["%s"] * len(job_names))}) and uncounted = 1 for update""",
			job_names,
		)
	)


def add(amounts: dict[Counter, float]) -> None:
	"""Adds to counters in the caller's transaction."""
	_write(amounts, ADDED)


def raise_to(counter: Counter, value: float) -> None:
	"""For what grows by itself, such as time: sets it, unless somebody has set it higher."""
	_write({counter: value}, RAISED)


def read(counter: Counter) -> float | None:
	found = statements.fetch(f"select value from `tab{DOCTYPE}` where key_hash = %s", (_key_hash(counter),))
	return float(found[0].value) if found else None


def add_after_commit(amounts: dict[Counter, float]) -> None:
	"""For somebody else's transaction, which may be long: nobody is to wait for it."""
	if amounts:
		afterwards.gather(_add_all, amounts)


def _add_all(many: list[dict[Counter, float]]) -> None:
	total: dict[Counter, float] = defaultdict(float)
	for amounts in many:
		for counter, amount in amounts.items():
			total[counter] += amount
	database.own_transaction(add)(total)


def tally(log_rows: list) -> dict[Counter, float]:
	amounts: dict[Counter, float] = defaultdict(float)
	for row in log_rows:
		for counter, amount in _observations(row):
			amounts[counter] += amount
	return amounts


def uncounted() -> int:
	"""How many rows of the log wait to be counted."""
	statement = "select count(*) as waiting from `tabJob Execution Log` where uncounted = 1"
	return statements.fetch(statement)[0].waiting


@database.own_transaction
def _fold_batch(after: str) -> tuple[int, str]:
	"""Behind what this fold has seen: the server may still keep what it has just counted."""
	database.begin_read_committed()
	found = statements.fetch(
		f"""select {COLUMNS} from `tabJob Execution Log` force index (idx_uncounted)
		where uncounted = 1 and name > %s order by name limit {BATCH} for update skip locked""",
		(after,),
	)
	if not found:
		return 0, after
	names = [row.name for row in found]
	add(tally(found))
	statements.execute(
		f"""update `tabJob Execution Log` set uncounted = 0
		where name in ({", ".join(["%s"] * len(names))})""",
		names,
	)
	return len(names), names[-1]


def _observations(row) -> Iterator[tuple[Counter, float]]:
	labels = {"job_type": row.job_type or "", "job_queue": row.job_queue or ""}
	ends_attempt = row.from_status == states.RUNNING
	metric = OF_EVENTS[row.event]
	if metric != FAILED:
		yield Counter(metric, **labels), 1
	if metric == FAILED or (ends_attempt and row.event == "job.deadlettered"):
		yield Counter(FAILED, **labels, error_class=row.error_class or ""), 1
	if ends_attempt:
		yield from _observed(Counter(DURATION, **labels), DURATION_BOUNDS, float(row.duration_seconds))
	if row.event in ENDED_FOR_GOOD:
		yield from _observed(Counter(ATTEMPTS, labels["job_type"]), ATTEMPT_BOUNDS, row.attempt)


def _observed(counter: Counter, bounds: tuple, value: float) -> Iterator[tuple[Counter, float]]:
	"""What a histogram keeps of a value: the first bucket that it fits into, and the sum."""
	bound = next((str(bound) for bound in bounds if value <= bound), OVER)
	yield counter._replace(bucket=bound), 1
	yield counter._replace(bucket=SUM), value


def _write(values: dict[Counter, float], if_there: dict[str, str]) -> None:
	"""In one order for all, so that no two wait for each other."""
	if not values:
		return
	now = clock.now()
	written = [_row(counter, values[counter], now) for counter in sorted(values, key=_key_hash)]
	columns = list(written[0])
	places = ", ".join([f"({', '.join(['%s'] * len(columns))})"] * len(written))
	statements.execute(
		f"""insert into `tab{DOCTYPE}` ({", ".join(f"`{column}`" for column in columns)})
		values {places} {if_there[frappe.db.db_type]}""",
		[value for row in written for value in row.values()],
	)


def _row(counter: Counter, value: float, now: datetime) -> dict:
	return rows.new("Administrator", now, **counter._asdict(), value=value, key_hash=_key_hash(counter))


def _key_hash(counter: Counter) -> str:
	"""Databases compare texts in their own ways, digests alike."""
	return hashlib.sha256(json.dumps(counter).encode()).hexdigest()
