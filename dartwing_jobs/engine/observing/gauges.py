"""How things stand now: who waits, for how long, who works. Each question is answered from an index."""

from datetime import datetime, timezone

import redis
from frappe.utils.background_jobs import get_queue

from dartwing_jobs.engine import bell, database, order, statements
from dartwing_jobs.engine.observing import counters

SWEPT = counters.Counter("last_sweep")
# in line since its last move, or since its retry fell due
CAME = "greatest(job.modified, coalesce(job.next_retry_at, job.modified))"
# the band of a claim key, as `order.rank` has it
BAND = f"floor(claim_key / {order.BAND})"
PRIORITIES = {rank: priority for priority, rank in order.RANKS.items()}


def queues() -> list:
	"""The site's queues, and how long somebody may wait in each (0: as long as it takes)."""
	return statements.fetch("select name, rq_queue, max_wait_seconds from `tabJob Queue` order by name")


def waiting(organizations: list[str] | None = None) -> dict[str, dict[str, int]]:
	"""How many stand in line, by queue and priority."""
	whose, values = of_organizations(organizations)
	found = statements.fetch(
		f"""select line, {BAND} as band, count(*) as jobs from `tabBackground Job`
		where line is not null{whose} group by line, {BAND}""",
		values,
	)
	depths: dict[str, dict[str, int]] = {}
	for row in (row for row in found if not order.is_beside(row.line)):
		depths.setdefault(row.line, {})[PRIORITIES[int(row.band)]] = row.jobs
	return depths


def oldest_waiting(now: datetime, organizations: list[str] | None = None) -> dict[str, float]:
	"""For each queue in which somebody stands in line: for how many seconds the first to come has.

	In its band an organization's jobs stand in the order in which they came: only the first of each is read.
	"""
	whose, values = of_organizations(organizations)
	heads = f"""select line, organization, min(claim_key) as claim_key from `tabBackground Job`
		where line is not null{whose} group by line, organization, {BAND}"""
	found = statements.fetch(
		f"""select job.line, min({CAME}) as came
		from ({heads}) head join `tabBackground Job` job on job.line = head.line
		and job.organization = head.organization and job.claim_key = head.claim_key group by job.line""",
		values,
	)
	seconds = {row.line: max(0.0, (now - row.came).total_seconds()) for row in found}
	return {line: waited for line, waited in seconds.items() if not order.is_beside(line)}


def held(organizations: list[str] | None = None) -> dict[str, int]:
	"""How many are due, but held by a pause or a limit, by queue."""
	whose, values = of_organizations(organizations)
	statement = f"""select count(*) as jobs from `tabBackground Job`
		where job_queue = %s and held_by > ''{whose}"""
	return {queue.name: statements.fetch(statement, [queue.name, *values])[0].jobs for queue in queues()}


def running(organizations: list[str] | None = None) -> dict[str, int]:
	whose, values = of_organizations(organizations)
	found = statements.fetch(
		f"""select job_queue, count(*) as jobs from `tabBackground Job`
		where lease_expires_at is not null and status = 'Running'{whose} group by job_queue""",
		values,
	)
	return {row.job_queue: row.jobs for row in found}


def workers_alive() -> int | None:
	"""Workers of the bench that serve an RQ queue of ours; None when Redis does not answer.

	RQ keeps a set of names per queue, and a key per worker that lives as long as the worker says so.
	"""
	sets = {f"rq:workers:{get_queue(queue.rq_queue).name}" for queue in queues()}
	try:
		names = bell.client().sunion(sorted(sets)) if sets else []
		return bell.client().exists(*names) if names else 0
	except redis.RedisError:
		return None


def note_sweep() -> None:
	"""In the caller's transaction. Kept with the counters: Redis may be wiped at any moment."""
	counters.raise_to(SWEPT, _seconds(database.utc_now()))


def seconds_since_sweep() -> float | None:
	"""None when no sweep has ever run."""
	swept = counters.read(SWEPT)
	return None if swept is None else max(0.0, _seconds(database.utc_now()) - swept)


def of_organizations(organizations: list[str] | None) -> tuple[str, list[str]]:
	"""A condition for these organizations only; for all, when none are named."""
	if organizations is None:
		return "", []
	if not organizations:
		return " and 1 = 0", []
	return f" and organization in ({', '.join(['%s'] * len(organizations))})", organizations


def _seconds(utc: datetime) -> float:
	return utc.replace(tzinfo=timezone.utc).timestamp()
