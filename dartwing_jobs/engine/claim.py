"""Claiming: takes the first jobs that wait, in order, and locks them until the caller's commit."""

import time
from datetime import datetime
from functools import lru_cache

import frappe

from dartwing_jobs import clock
from dartwing_jobs.engine import log, order, statements, states

# every so often a low priority that waits gets a turn, so that none waits for ever: the lowest, then the
# first that is not above the next, and so on. Only the highest needs no such turn.
LOW_TURN = 8
LOWEST = max(order.RANKS.values())
ALL_TURNS = LOW_TURN * LOWEST
# MariaDB removes the entries of those who were taken much later, and never while an old snapshot is read:
# who locks walks over them slowly, one by one. Who only reads does not, and so says where to begin. By a
# statement of its own: newer servers let none lock what was changed since it began to read
HEAD = """(select min(claim_key) from `tabBackground Job` where line = %s and claim_key >= %s) as head"""
COUNT = """(select count(*) from (select 1 as one from `tabBackground Job`
	where line = %s and claim_key >= %s limit {most}) first_ones) as waiting"""
# MariaDB would rather sort a whole line, when it believes that hardly anybody stands in it
FIRST = """force index (idx_line) where line = %s and claim_key >= %s
	order by claim_key, name limit {most} for update skip locked"""
FOUND = "(select {}(claim_key) from `tabBackground Job` where line = %s and claim_key >= 1)"
# what an attempt needs to know of its job
COLUMNS = (
	"name",
	"status",
	"job_queue",
	"priority",
	"claim_key",
	"attempt",
	"retry_count",
	"snooze_count",
	"uncounted_runs",
	"moves",
	"max_retries",
	"timeout_seconds",
	"owner_user",
	"cost_cents",
	"traceparent",
	"job_template",
	"job_group",
	"idempotency_key",
	"job_schedule",
	"claim_alone",
	*log.FROM_THE_JOB,
)
# its unique key's collation does not fit beside the rest
MORE = {"has_unique_key": "(unique_key is not null)"}
# of its contract
MOMENTS = ("created_utc", "scheduled_utc")


class Turns:
	"""Whose turn it is: between the queues that a worker serves, and now and then for low priorities."""

	def __init__(self, job_queues: list[str], taken: int = 0):
		self.job_queues = list(job_queues)
		# jobs that were taken since the last low turn, and low turns so far
		self.since_low, self.low_turns = taken % LOW_TURN, taken // LOW_TURN
		self.workers = 1  # that serve these queues

	def serve(self, job_queues: list[str], workers: int = 1) -> None:
		"""Goes on with these queues, keeping the order of turns."""
		kept = [queue for queue in self.job_queues if queue in job_queues]
		self.job_queues = kept + [queue for queue in job_queues if queue not in kept]
		self.workers = workers

	def take_next(self):
		"""The next job, locked; None when nothing waits that is not somebody else's already."""
		jobs = self.take(1)
		return jobs[0] if jobs else None

	def take(self, most: int) -> list:
		"""The next jobs of one queue, locked; fewer than asked for where other workers need some, too."""
		if self.since_low >= LOW_TURN - 1:
			share = max(1, self.since_low // (LOW_TURN - 1))
			for queue, key in self._lowest_first():
				if jobs := _first_of(queue, key, min(most, share), self.workers):
					return self._note_served(queue, jobs)
		for queue in self._highest_first():
			if jobs := _first_of(queue, 1, most, self.workers):
				return self._note_served(queue, jobs)
		return []

	def give_up(self, count: int) -> None:
		"""So many of those that were taken last are left to others."""
		self.since_low = max(0, self.since_low - count)

	def _note_served(self, queue: str, jobs: list) -> list:
		"""The one that was served goes behind the others."""
		if self.since_low >= LOW_TURN - 1:
			self.since_low, self.low_turns = 0, self.low_turns + 1
		else:
			self.since_low += len(jobs)
		self.job_queues.remove(queue)
		self.job_queues.append(queue)
		return jobs

	def _highest_first(self) -> list[str]:
		if len(self.job_queues) == 1:
			return self.job_queues
		return self._ordered(_ranks("min", self.job_queues))

	def _lowest_first(self) -> list[tuple[str, int]]:
		"""Each queue from its lowest band on, or from the one whose turn it is, the lowest of all first."""
		lowest = LOWEST - self.low_turns % LOWEST
		ranks = {queue: min(rank, lowest) for queue, rank in _ranks("max", self.job_queues).items()}
		queues = self._ordered(ranks, is_lowest_first=True)
		return [(queue, order.band(ranks[queue])[0]) for queue in queues]

	def _ordered(self, ranks: dict[str, int], is_lowest_first: bool = False) -> list[str]:
		"""Queues in which somebody waits; among equals it is the turn of who was served longest ago."""
		waiting = [queue for queue in self.job_queues if queue in ranks]
		return sorted(waiting, key=ranks.get, reverse=is_lowest_first)


def _first_of(queue: str, key: int, most: int, workers: int) -> list:
	"""The first jobs in line from a claim key on, and no more of them than are this worker's share."""
	head, waiting = _look(queue, key, most, workers)
	while head is not None:
		share = min(most, -(-waiting // workers))
		rows = _read(FIRST.format(most=share), (queue, head))
		jobs = [job for job in rows if job.status == states.QUEUED]
		_take_out_of_line([job.name for job in rows if job.status != states.QUEUED])
		if jobs or not rows:
			return jobs
	return []


def _look(queue: str, key: int, most: int, workers: int) -> tuple[int | None, int]:
	"""Where the first one stands, and how many wait, as far as that matters."""
	if most == 1:
		return statements.fetch(f"select {HEAD}", (queue, key))[0].head, 1
	columns = f"{HEAD}, {COUNT.format(most=most * workers)}"
	(row,) = statements.fetch(f"select {columns}", (queue, key, queue, key))
	return row.head, row.waiting


def _take_out_of_line(names: list[str]) -> None:
	"""What cannot start would stop all others."""
	for name in names:
		statements.update("Background Job", name, order.OUT_OF_LINE)


def take(job_name: str):
	"""This one job, locked, whatever waits before it; None when it is not in line."""
	jobs = _read("where name = %s and line = job_queue for update", (job_name,))
	return jobs[0] if jobs else None


def read_held(job_name: str, lease_token: str):
	"""A job that is held by a lease, locked; None when it is not."""
	jobs = _read("where name = %s and lease_token = %s for update", (job_name, lease_token))
	return jobs[0] if jobs else None


def _read(which: str, values: tuple) -> list:
	asked_at = time.monotonic()
	rows = statements.fetch(f"{_select(frappe.db.db_type)} {which}", values)
	jobs = [statements.unpack(row.packed) for row in rows]
	for job in jobs:
		job.held_since = asked_at  # if it gets a lease now, that ends no earlier than it would from here on
		job.claimed_at = datetime.fromisoformat(job.claimed_at)
	if jobs:
		clock.set_by(jobs[0].claimed_at)
	return jobs


@lru_cache
def _select(database: str) -> str:
	parameters = "concat(input_parameters, '')" if database == "mariadb" else "input_parameters"
	claimed_at = statements.written("utc_timestamp(6)")
	moments = {column: statements.written(f"`{column}`") for column in MOMENTS}
	row = statements.packed(COLUMNS, input_parameters=parameters, claimed_at=claimed_at, **moments, **MORE)
	return f"select {row} as packed from `tabBackground Job`"


def _ranks(end: str, job_queues: list[str]) -> dict[str, int]:
	"""For each queue in which a job waits: the rank of the first one ("min") or the last one ("max")."""
	if not job_queues:
		return {}
	columns = ", ".join(f"{FOUND.format(end)} as key{number}" for number in range(len(job_queues)))
	(row,) = statements.fetch(f"select {columns}", job_queues)
	found = zip(job_queues, row.values(), strict=True)
	return {queue: order.rank(key) for queue, key in found if key}


def is_waiting(job_queues: list[str]) -> bool:
	"""Whether anything could be claimed in these queues."""
	return bool(_ranks("min", job_queues))
