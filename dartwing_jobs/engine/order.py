"""The order of the queue as one number: a band per priority, and in each band a fair tag per organization.

In a band each organization's jobs get tags one apart, from the one behind the head of the band on. Whoever
has a thousand jobs waiting has taken a thousand tags; a newcomer stands near the head. Never at the head
itself: while anybody waits there it does not move, and those who come and go would keep the others from it.
A higher priority is a lower band, and goes first. So that a low one does not wait for ever, every so often a
worker takes its next job from a low band, each of them in its turn (`engine/claim.py`).
"""

from dartwing_jobs.engine import statements
from dartwing_jobs.engine.rules import priorities

BAND = 2**40
RANKS = {word: rank for rank, word in enumerate(reversed(priorities.ALL))}


OUT_OF_LINE = {"line": None, "claim_key": 0}
# what a job that is held by a brake has beside (`engine/limits/holds.py`)
NOT_HELD = {"held_by": None, "held_reason": None, "held_key": 0}
REASON_LENGTH = 140
HEAD = """(select min(claim_key) from `tabBackground Job`
	where line = %s and claim_key >= {start} and claim_key < {end})"""
OWN = """(select max(claim_key) from `tabBackground Job`
	where line = %s and organization = %s and claim_key >= {start} and claim_key < {end})"""
FIRST_PLACE = f"""greatest({{start}},
	1 + mod(least(coalesce({HEAD}, {{end}}), coalesce({HEAD}, {{end}})), {{end}}),
	1 + coalesce({OWN}, 0), 1 + coalesce({OWN}, 0))"""


def beside(job_queue: str) -> str:
	"""The line of those who are held beside a queue: claims do not see them, newcomers stand behind them."""
	return f"|{job_queue}"[:140]


def is_beside(line: str) -> bool:
	return line.startswith("|")


class Places:
	"""Hands out places in one queue, inside the transaction that puts the jobs there."""

	def __init__(self, job_queue: str):
		self.job_queue = job_queue
		self.last: dict[tuple[str, str], int] = {}

	def next(self, organization: str, priority: str) -> dict:
		"""The columns that put a job in line. What is not in line has no `line`: whoever looks into one finds
		nobody else, however many have been there."""
		key = organization, priority
		known = key in self.last
		place = self.last[key] + 1 if known else statements.value(*first_place(self.job_queue, *key))
		self.last[key] = place
		return {"line": self.job_queue, "claim_key": place}

	def begin_at(self, place: int, organization: str, priority: str) -> None:
		"""The first place of an organization, for those who have asked for it (`first_place`)."""
		self.last[organization, priority] = place - 1


def rank(claim_key: int) -> int:
	return claim_key // BAND


def band(rank: int) -> tuple[int, int]:
	"""The first claim key of a band, and the first one behind it. 0 means: not in the queue."""
	return rank * BAND + 1, (rank + 1) * BAND


def first_place(job_queue: str, organization: str, priority: str) -> tuple[str, tuple]:
	"""SQL for it, with its values.

	Behind the head of the band, and behind the organization's own last job: four looks into an index.

	Those who are held count too: otherwise later ones would overtake them for ever.
	"""
	start, end = band(RANKS[priority])
	held = beside(job_queue)
	place = FIRST_PLACE.format(start=start, end=end)
	return place, (job_queue, held, job_queue, organization, held, organization)
