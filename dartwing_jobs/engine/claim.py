"""Claiming: takes the first job that waits, in order, and locks it until the caller's commit."""

from datetime import datetime
from functools import lru_cache

import frappe

from dartwing_jobs.engine import log, order, statements, states

# every so often the lowest priority that waits gets a turn, so that none waits for ever
LOW_TURN = 8
# MariaDB would rather sort a whole line, when it believes that hardly anybody stands in it
FIRST = """force index (idx_line) where line = %s and claim_key >= %s
	order by claim_key, name limit 1 for update skip locked"""
# what an attempt needs to know of its job
COLUMNS = (
	"name",
	"status",
	"job_queue",
	"priority",
	"claim_key",
	"attempt",
	"retry_count",
	"max_retries",
	"timeout_seconds",
	"owner_user",
	"cost_cents",
	"traceparent",
	"job_template",
	"job_group",
	"idempotency_key",
	*log.FROM_THE_JOB,
)


class Turns:
	"""Whose turn it is: between the queues that a worker serves, and now and then for the lowest priority."""

	def __init__(self, job_queues: list[str], taken: int = 0):
		self.job_queues = list(job_queues)
		self.taken = taken

	def serve(self, job_queues: list[str]) -> None:
		"""Goes on with these queues, keeping the order of turns."""
		kept = [queue for queue in self.job_queues if queue in job_queues]
		self.job_queues = kept + [queue for queue in job_queues if queue not in kept]

	def take_next(self):
		"""The next job, locked; None when nothing waits that is not somebody else's already."""
		for queue, key in self._candidates():
			if job := _first_of(queue, key):
				self.taken += 1
				# the one that was served goes behind the others
				self.job_queues.remove(queue)
				self.job_queues.append(queue)
				return job
		return None

	def _candidates(self) -> list[tuple[str, int]]:
		"""Queues to try, each with the claim key to begin at."""
		if self.taken % LOW_TURN == LOW_TURN - 1:
			return self._lowest_first()
		if len(self.job_queues) == 1:
			return [(self.job_queues[0], 1)]
		ranks = _ranks("min", self.job_queues)
		return [(queue, 1) for queue in sorted(ranks, key=ranks.get)]

	def _lowest_first(self) -> list[tuple[str, int]]:
		"""Each queue from its lowest band on, the lowest of all first."""
		ranks = _ranks("max", self.job_queues)
		queues = sorted(ranks, key=ranks.get, reverse=True)
		return [(queue, order.band(ranks[queue])[0]) for queue in queues]


def _first_of(queue: str, key: int):
	"""The first job in line from a claim key on. What cannot start is taken out: it would stop all others."""
	while job := _read(FIRST, (queue, key)):
		if job.status == states.QUEUED:
			return job
		statements.update("Background Job", job.name, order.OUT_OF_LINE)
	return None


def take(job_name: str):
	"""This one job, locked, whatever waits before it; None when it is not in line."""
	return _read("where name = %s and line = job_queue for update", (job_name,))


def read_held(job_name: str, lease_token: str):
	"""A job that is held by a lease, locked; None when it is not."""
	return _read("where name = %s and lease_token = %s for update", (job_name, lease_token))


def _read(which: str, values: tuple):
	packed = statements.value(f"({_select(frappe.db.db_type)} {which})", values)
	if not packed:
		return None
	job = statements.unpack(packed)
	job.claimed_at = datetime.fromisoformat(job.claimed_at)
	return job


@lru_cache
def _select(database: str) -> str:
	parameters = "concat(input_parameters, '')" if database == "mariadb" else "input_parameters"
	row = statements.packed(COLUMNS, input_parameters=parameters, claimed_at="utc_timestamp(6)")
	return f"select {row} from `tabBackground Job`"


def _ranks(end: str, job_queues: list[str]) -> dict[str, int]:
	"""For each queue in which somebody waits: the rank of the first one ("min") or the last one ("max")."""
	if not job_queues:
		return {}
	found = f"(select {end}(claim_key) from `tabBackground Job` where line = %s and claim_key >= 1)"
	columns = ", ".join(f"{found} as key{number}" for number in range(len(job_queues)))
	(row,) = statements.fetch(f"select {columns}", job_queues)
	return {queue: order.rank(key) for queue, key in zip(job_queues, row.values(), strict=True) if key}


def is_waiting(job_queues: list[str]) -> bool:
	"""Whether anything could be claimed in these queues."""
	return bool(_ranks("min", job_queues))
