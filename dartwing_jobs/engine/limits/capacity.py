"""How many jobs may wait: in a queue, and of one organization. Further ones are refused, and leave no row.

Counted by a connection of its own: this transaction may not see what others have committed since it began.
Who counts goes through a turnstile, so that two cannot both take the last place. Only where there is a limit.
"""

import frappe
from frappe import _

from dartwing_jobs.engine import database, statements
from dartwing_jobs.engine.burials import ALERT
from dartwing_jobs.engine.limits import turnstiles
from dartwing_jobs.engine.rules import policies, routes
from dartwing_jobs.errors import QueueFull

# in line, held, or waiting for their moment; children of unfinished parents wait elsewhere
IN_QUEUE = """select
	(select count(*) from (select 1 from `tabBackground Job` where line = %s limit %s) in_line) +
	(select count(*) from (select 1 from `tabBackground Job`
		where job_queue = %s and held_by is not null limit %s) held) +
	(select count(*) from (select 1 from `tabBackground Job`
		where job_queue = %s and run_at is not null limit %s) not_yet_due) as waiting"""
OF_ORGANIZATION = """select count(*) as waiting from (select 1 from `tabBackground Job`
	where organization = %s and status in ('Pending', 'Queued') limit %s) waiting_jobs"""

STILL_THERE = "select name from `tabBackground Job` where status in ('Pending', 'Queued')"
BATCH = 1000


def check(jobs: list) -> None:
	"""Raises QueueFull when these jobs, all alike, are too many for their queue or their organization."""
	job = jobs[0]
	if job.job_type == ALERT:
		return
	most = routes.most_waiting(job.job_queue)
	if most and _exceeds(turnstile_of_queue(job.job_queue), most, jobs, IN_QUEUE, (job.job_queue, most) * 3):
		message = _("Queue full: {0} takes at most {1} waiting jobs. Try again later, or use another queue.")
		frappe.throw(message.format(job.job_queue, most), QueueFull)
	most = policies.most_waiting_of(job.organization)
	turnstile, values = turnstile_of_organization(job.organization), (job.organization, most)
	if most and _exceeds(turnstile, most, jobs, OF_ORGANIZATION, values):
		message = _("Queue full: organization {0} may have at most {1} waiting jobs. Try again later.")
		frappe.throw(message.format(job.organization, most), QueueFull)


def turnstile_of_queue(job_queue: str) -> str:
	return f"waiting|queue|{job_queue}"


def turnstile_of_organization(organization: str) -> str:
	return f"waiting|organization|{organization}"


def _exceeds(turnstile: str, most: int, jobs: list, statement: str, values: tuple) -> bool:
	statements.arrive()  # their names, too
	turnstiles.enter(turnstile)
	with database.beside():
		(row,) = statements.fetch(statement, values)
	taken, free = _taken_here(), most - row.waiting - len(jobs)
	mine = taken.get(turnstile, [])
	if len(mine) > free:
		mine = _still_there(mine)
	taken[turnstile] = mine
	if len(mine) > free:
		return True
	mine += [job.name for job in jobs]
	return False


def _still_there(names: list[str]) -> list[str]:
	"""Those that wait in this transaction: a savepoint may have taken others back."""
	batches = [names[start : start + BATCH] for start in range(0, len(names), BATCH)]
	found = [
		statements.fetch(f"{STILL_THERE} and name in ({', '.join(['%s'] * len(batch))})", batch)
		for batch in batches
	]
	return [row.name for rows in found for row in rows]


def _taken_here() -> dict[str, list[str]]:
	"""Jobs to which this transaction has given places; nobody else sees them before its commit."""
	taken = getattr(frappe.local, "dartwing_places", None)
	if taken is None:
		taken = frappe.local.dartwing_places = {}
	if not taken:
		frappe.db.after_commit.add(taken.clear)
		frappe.db.after_rollback.add(taken.clear)
	return taken
