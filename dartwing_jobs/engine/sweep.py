"""Duties that repair what was lost: leases, rings, children, alerts. Bounded, and safe to run twice."""

from datetime import datetime, timedelta

from dartwing_jobs import settings
from dartwing_jobs.engine import (
	alerts,
	bell,
	claim,
	database,
	dependents,
	job_numbers,
	lost,
	promote,
	statements,
	troubles,
)
from dartwing_jobs.engine.facts import Facts
from dartwing_jobs.engine.groups import ends as group_ends
from dartwing_jobs.engine.groups import groups
from dartwing_jobs.engine.limits import holds
from dartwing_jobs.engine.observing import counters, gauges, reports
from dartwing_jobs.engine.rules import routes
from dartwing_jobs.engine.schedules import schedules, skips, ticks

BATCH = 100
# taking back a job whose worker was lost
REAP = "reap"
# of its minute, what a sweep may spend on counting
FOLD_SECONDS = 10


@reports.masked
def sweep() -> None:
	"""Every minute, from the scheduler or a lookout. A duty that fails does not stop the others."""
	bell.note_sweep()
	duties = troubles.Duties()
	duties.do(reap_expired)
	duties.do(ticks.fire_due)
	duties.do(skips.log_due)
	duties.do(dependents.follow_left_behind)
	duties.do(groups.cancel_left_behind)
	duties.do(group_ends.settle_left_behind)
	for job_queues in routes.by_rq_queue().values():
		duties.do(holds.release_what_may_run, job_queues, Facts())
	duties.do(ring_for_waiting)
	duties.do(job_numbers.keep)
	duties.do(database.own_transaction(gauges.note_sweep))
	duties.do(counters.fold, FOLD_SECONDS)
	duties.do(alerts.call_for_recent)
	duties.do(troubles.forget_settled)


def reap_expired() -> int:
	"""Takes jobs back from workers that no longer renew their lease; returns how many."""
	tokens = {job.name: job.lease_token for job in expired_leases()}
	return sum(filter(None, troubles.each(REAP, tokens, lambda name: lost.reclaim(name, tokens[name]))))


def expired_leases() -> list:
	return statements.fetch(
		f"""select name, lease_token from `tabBackground Job` job where lease_expires_at < utc_timestamp(6)
		and {troubles.NOT_SET_ASIDE.format(duty=REAP, column="job.name")}
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
	leases = statements.fetch(
		f"""select lease_expires_at as ends from `tabBackground Job` job where lease_expires_at is not null
		and {troubles.NOT_SET_ASIDE.format(duty=REAP, column="job.name")} order by lease_expires_at limit 1"""
	)
	ends = [lease.ends for lease in leases]
	moments = [*promote.earliest_due(job_queues).values(), *ends, schedules.next_due()]
	return min((moment for moment in moments if moment), default=None)
