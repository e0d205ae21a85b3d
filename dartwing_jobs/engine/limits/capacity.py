"""How many jobs may wait: in a queue, and of one organization. Further ones are refused, and leave no row.

Counted by a connection of its own: this transaction may not see what others have committed since it began.
Who counts goes through a turnstile and leaves a reservation, so that two cannot both take the last place; the
turnstile is free again before the jobs are written. Only where there is a limit.
"""

from typing import NamedTuple

import frappe
from frappe import _

from dartwing_jobs.engine import database
from dartwing_jobs.engine.burials import ALERT
from dartwing_jobs.engine.limits import reservations, turnstiles
from dartwing_jobs.engine.rules import policies, routes
from dartwing_jobs.errors import QueueFull
from dartwing_jobs.messages import throw

# in line, held, or waiting for their moment; children of unfinished parents wait elsewhere
IN_QUEUE = """select
	(select count(*) from (select 1 from `tabBackground Job` where line = %s limit %s) in_line) +
	(select count(*) from (select 1 from `tabBackground Job`
		where job_queue = %s and held_by is not null limit %s) held) +
	(select count(*) from (select 1 from `tabBackground Job`
		where job_queue = %s and run_at is not null limit %s) not_yet_due)"""
OF_ORGANIZATION = """select count(*) from (select 1 from `tabBackground Job`
	where organization = %s and status in ('Pending', 'Queued') limit %s) waiting_jobs"""


class Limit(NamedTuple):
	"""No more than so many may wait."""

	turnstile: str
	most: int
	count: str
	values: tuple
	refusal: str


def check(jobs: list) -> None:
	"""Raises QueueFull when these jobs, all alike, are too many for their queue or their organization."""
	limits = [] if jobs[0].job_type == ALERT else _limits_on(jobs[0])
	if not limits:
		return
	exceeded = _reserve(jobs, limits)
	if exceeded and reservations.give_back_vanished():
		exceeded = _reserve(jobs, limits)
	if exceeded:
		throw(exceeded.refusal, QueueFull)


def turnstile_of_queue(job_queue: str) -> str:
	return turnstiles.short(f"waiting|queue|{job_queue}")


def turnstile_of_organization(organization: str) -> str:
	return turnstiles.short(f"waiting|organization|{organization}")


def _limits_on(job) -> list[Limit]:
	"""In the order in which everybody counts."""
	limits = []
	if most := routes.most_waiting(job.job_queue):
		message = _("Queue full: {0} takes at most {1} waiting jobs. Try again later, or use another queue.")
		refusal = message.format(job.job_queue, most)
		values = (job.job_queue, most) * 3
		limits.append(Limit(turnstile_of_queue(job.job_queue), most, IN_QUEUE, values, refusal))
	if most := policies.most_waiting_of(job.organization):
		message = _("Queue full: organization {0} may have at most {1} waiting jobs. Try again later.")
		refusal, values = message.format(job.organization, most), (job.organization, most)
		turnstile = turnstile_of_organization(job.organization)
		limits.append(Limit(turnstile, most, OF_ORGANIZATION, values, refusal))
	return limits


def _reserve(jobs: list, limits: list[Limit]) -> Limit | None:
	"""Takes a place for each job under each limit, or none at all; returns the limit that has too few."""
	with database.beside():
		database.begin_read_committed()  # what those have left who went through before
		for limit in limits:
			turnstiles.enter(limit.turnstile)
			if reservations.taken(limit.turnstile, limit.count, limit.values) + len(jobs) > limit.most:
				return limit
		made = reservations.make([limit.turnstile for limit in limits], jobs)
		frappe.db.commit()  # nosemgrep: a connection of its own
	reservations.keep_until_the_end(made, jobs[0].name)
	return None
