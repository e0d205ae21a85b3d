"""The order of the queue as one number: fair between organizations, a step per priority, ageing for free.

Each organization's jobs get tags one apart, from the queue's virtual time on: the tag of the job that was
claimed last. Whoever has a thousand jobs waiting has taken a thousand tags; a newcomer gets the next.
A lower priority adds a constant: it is overtaken until virtual time has moved on by that much.
"""

import frappe

from dartwing_jobs.engine import priorities

# how many claims a step of priority is worth
PRIORITY_STEP = 10_000
OFFSETS = {word: PRIORITY_STEP * rank for rank, word in enumerate(reversed(priorities.ALL))}


class Tags:
	"""Hands out claim keys for one queue, inside the promoter's transaction."""

	def __init__(self, job_queue: str):
		self.job_queue = job_queue
		self.virtual_time = frappe.db.get_value("Job Queue", job_queue, "virtual_time", for_update=True) or 0
		self.last: dict[tuple[str, str], int] = {}

	def next(self, organization: str, priority: str) -> int:
		key = organization, priority
		if key not in self.last:
			self.last[key] = _last_key(self.job_queue, organization, priority) - OFFSETS[priority]
		self.last[key] = max(self.virtual_time, self.last[key]) + 1
		return self.last[key] + OFFSETS[priority]


def tag(claim_key: int, priority: str) -> int:
	return claim_key - OFFSETS[priority]


def _last_key(job_queue: str, organization: str, priority: str) -> int:
	job = frappe.qb.DocType("Background Job")
	rows = (
		frappe.qb.from_(job)
		.select(job.claim_key)
		.where((job.job_queue == job_queue) & (job.organization == organization))
		.where((job.priority == priority) & (job.claim_key > 0))
		.orderby(job.claim_key, order=frappe.qb.desc)
		.limit(1)
		.run(pluck=True)
	)
	return rows[0] if rows else 0
