"""Claiming: takes the first job that waits, in order, and locks it until the caller's commit."""

import time
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache, partial

import frappe

from dartwing_jobs import clock
from dartwing_jobs.engine import log, order, statements, states

# every so often a low priority that waits gets a turn, so that none waits for ever: the lowest, then the
# first that is not above the next, and so on. Only the highest needs no such turn.
LOW_TURN = 8
LOWEST = max(order.RANKS.values())
ALL_TURNS = LOW_TURN * LOWEST
# MariaDB would rather sort a whole line, when it believes that hardly anybody stands in it. It removes the
# entries of those who were taken much later, and never while somebody reads from an old snapshot: who locks
# walks over them slowly, one by one. Who only reads does not, and so says where to begin.
FIRST = """force index (idx_line) where line = %s and claim_key >= {head}
	order by claim_key, name limit 1 for update skip locked"""
HEAD = "(select min(claim_key) from `tabBackground Job` where line = %s and claim_key >= %s)"
# by a statement of its own: newer servers let none lock what was changed since it began to read
HEAD_GIVEN = "@dartwing_head"
FOUND = "(select {}(claim_key) from `tabBackground Job` where line = %s and claim_key >= 1)"
# for as long a worker knows what it has asked for one job before
FORESEEN_SECONDS = 0.1
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
	*log.FROM_THE_JOB,
)


# of its contract
MOMENTS = ("created_utc", "scheduled_utc")


class Turns:
	"""Whose turn it is: between the queues that a worker serves, and now and then for low priorities."""

	def __init__(self, job_queues: list[str], taken: int = 0):
		self.job_queues = list(job_queues)
		self.taken = taken
		self.foreseen: Ranks | None = None

	def serve(self, job_queues: list[str]) -> None:
		"""Goes on with these queues, keeping the order of turns."""
		kept = [queue for queue in self.job_queues if queue in job_queues]
		self.job_queues = kept + [queue for queue in job_queues if queue not in kept]

	def take_next(self):
		"""The next job, locked; None when nothing waits that is not somebody else's already."""
		for queue, key in self._candidates():
			self._foresee()
			if job := _first_of(queue, key):
				self._note_served(queue)
				return job
		return None

	def _note_served(self, queue: str) -> None:
		"""The one that was served goes behind the others."""
		self.taken += 1
		self.job_queues.remove(queue)
		self.job_queues.append(queue)

	def _candidates(self) -> Iterator[tuple[str, int]]:
		"""Where to look, one after the other: a queue, and the claim key to begin at."""
		if self._is_low(self.taken):
			yield from self._lowest_first()
		queues = self.job_queues if len(self.job_queues) == 1 else self._highest_first()
		for queue in queues:
			yield queue, 1

	def _highest_first(self) -> Iterator[str]:
		"""By what was foreseen; if nobody is found there, somebody may have come since."""
		yield from self._ordered(self._foreseen("min"))
		yield from self._ordered(_ranks("min", self.job_queues))

	def _lowest_first(self) -> list[tuple[str, int]]:
		"""Each queue from its lowest band on, or from the one whose turn it is, the lowest of all first."""
		found = self._foreseen("max") or _ranks("max", self.job_queues)
		lowest = LOWEST - self.taken // LOW_TURN % LOWEST
		ranks = {queue: min(rank, lowest) for queue, rank in found.items()}
		queues = self._ordered(ranks, is_lowest_first=True)
		return [(queue, order.band(ranks[queue])[0]) for queue in queues]

	def _ordered(self, ranks: dict[str, int], is_lowest_first: bool = False) -> list[str]:
		"""Queues in which somebody waits; among equals it is the turn of who was served longest ago."""
		waiting = [queue for queue in self.job_queues if queue in ranks]
		return sorted(waiting, key=ranks.get, reverse=is_lowest_first)

	def _is_low(self, turn: int) -> bool:
		return turn % LOW_TURN == LOW_TURN - 1

	def _foreseen(self, end: str) -> dict[str, int]:
		foreseen, self.foreseen = self.foreseen, None
		return foreseen.known if foreseen and foreseen.are(end, self.job_queues) else {}

	def _foresee(self) -> None:
		"""What the next turn needs to know is asked along with this one's job.

		Not if a low turn follows that one: who came too late to be foreseen would wait for both.
		"""
		is_low, is_before_low = (self._is_low(self.taken + ahead) for ahead in (1, 2))
		if is_low or (len(self.job_queues) > 1 and not is_before_low):
			self.foreseen = Ranks("max" if is_low else "min")
			self.foreseen.ask(self.job_queues)


class Ranks:
	"""For each queue in which somebody waits: the rank of the first one ("min") or the last one ("max")."""

	def __init__(self, end: str):
		self.end, self.known, self.queues = end, {}, set()
		self.asked_at = time.monotonic()

	def ask(self, job_queues: list[str]) -> None:
		"""At once, or along with what is asked next (`statements.in_one_go`)."""
		self.queues = set(job_queues)
		for queue in job_queues:
			statements.value_later(FOUND.format(self.end), (queue,), partial(self._note, queue))

	def are(self, end: str, job_queues: list[str]) -> bool:
		"""Whether they are these, and still to be trusted."""
		is_new = time.monotonic() - self.asked_at < FORESEEN_SECONDS
		return is_new and self.end == end and self.queues == set(job_queues)

	def _note(self, queue: str, key: int | None) -> None:
		if key:
			self.known[queue] = order.rank(key)


def _first_of(queue: str, key: int):
	"""The first job in line from a claim key on. What cannot start is taken out: it would stop all others."""
	while job := _read_first(queue, key):
		if job.status == states.QUEUED:
			return job
		statements.update("Background Job", job.name, order.OUT_OF_LINE)
	return None


def _read_first(queue: str, key: int):
	if frappe.db.db_type == "mariadb":
		head = statements.Given(HEAD_GIVEN, HEAD, (queue, key))
		return _read(FIRST.format(head=HEAD_GIVEN), (queue,), head)
	return _read(FIRST.format(head=HEAD), (queue, queue, key))


def take(job_name: str):
	"""This one job, locked, whatever waits before it; None when it is not in line."""
	return _read("where name = %s and line = job_queue for update", (job_name,))


def read_held(job_name: str, lease_token: str):
	"""A job that is held by a lease, locked; None when it is not."""
	return _read("where name = %s and lease_token = %s for update", (job_name, lease_token))


def _read(which: str, values: tuple, given: statements.Given | None = None):
	asked_at = time.monotonic()
	packed = statements.value(f"({_select(frappe.db.db_type)} {which})", values, given)
	if not packed:
		return None
	job = statements.unpack(packed)
	job.held_since = asked_at  # if it gets a lease now, that ends no earlier than it would from here on
	job.claimed_at = datetime.fromisoformat(job.claimed_at)
	clock.set_by(job.claimed_at)
	return job


@lru_cache
def _select(database: str) -> str:
	parameters = "concat(input_parameters, '')" if database == "mariadb" else "input_parameters"
	claimed_at = statements.written("utc_timestamp(6)")
	moments = {column: statements.written(f"`{column}`") for column in MOMENTS}
	row = statements.packed(COLUMNS, input_parameters=parameters, claimed_at=claimed_at, **moments)
	return f"select {row} from `tabBackground Job`"


def _ranks(end: str, job_queues: list[str]) -> dict[str, int]:
	ranks = Ranks(end)
	with statements.in_one_go():
		ranks.ask(job_queues)
	return ranks.known


def is_waiting(job_queues: list[str]) -> bool:
	"""Whether anything could be claimed in these queues."""
	return bool(_ranks("min", job_queues))
