"""Duties that repair what was lost: leases, rings, children, alerts. Bounded, and safe to run twice."""

from datetime import datetime, timedelta

from dartwing_jobs import settings
from dartwing_jobs.engine import alerts, bell, claim, database, dependents, lost, promote, statements
from dartwing_jobs.engine.facts import Facts
from dartwing_jobs.engine.groups import ends as group_ends
from dartwing_jobs.engine.groups import groups
from dartwing_jobs.engine.limits import holds
from dartwing_jobs.engine.observing import counters, gauges
from dartwing_jobs.engine.rules import routes
from dartwing_jobs.engine.schedules import schedules, ticks

BATCH = 100
# of its minute, what a sweep may spend on counting
FOLD_SECONDS = 10


def sweep() -> None:
	"""Every minute, from the scheduler."""
	reap_expired()
	ticks.fire_due()
	dependents.follow_left_behind()
	groups.cancel_left_behind()
	group_ends.settle_left_behind()
	for job_queues in routes.by_rq_queue().values():
		holds.release_what_may_run(job_queues, Facts())
	ring_for_waiting()
	database.own_transaction(gauges.note_sweep)()
	counters.fold(FOLD_SECONDS)
	alerts.call_for_recent()


def reap_expired() -> int:
	"""Takes jobs back from workers that no longer renew their lease; returns how many."""
	return sum(lost.record_loss(job.name, job.lease_token) for job in expired_leases())


def expired_leases() -> list:
	return statements.fetch(
		f"""select name, lease_token from `tabBackground Job` where lease_expires_at < utc_timestamp(6)
		order by lease_expires_at limit {BATCH}"""
	)


def ring_for_waiting() -> None:
	"""Rings for every queue that has something to do, or soon will have, in case its ring was lost."""
	if not settings.is_online():
		return
	soon = database.utc_now() + timedelta(seconds=bell.HORIZON_SECONDS)
	for rq_queue, job_queues in routes.by_rq_queue().items():
		due = promote.earliest_due(job_queues).values()
		if claim.is_waiting(job_queues) or min(due, default=soon) < soon:
			bell.ring(rq_queue)
	if (fire := schedules.next_due()) and fire < soon:
		bell.ring(routes.rq_queue_of(schedules.queue_of_next()))


def next_duty(job_queues: list[str]) -> datetime | None:
	"""The next moment (UTC) at which something of these queues is due, a lease ends or a schedule fires."""
	(lease,) = statements.fetch("select min(lease_expires_at) as ends from `tabBackground Job`")
	moments = [*promote.earliest_due(job_queues).values(), lease.ends, schedules.next_due()]
	return min((moment for moment in moments if moment), default=None)
