"""Retention: jobs that ended long ago go, and what belongs to them goes along.

Short transactions of its own that take what nobody holds: workers do not notice, and two runs share the work.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import islice

import frappe

from dartwing_jobs import clock, settings
from dartwing_jobs.engine import database, statements, states
from dartwing_jobs.engine.handling import outputs
from dartwing_jobs.engine.observing import counters

JOB = "Background Job"
RUN = "Job Run"
KEY = "Job Idempotency Key"
BATCH = 200
# an hour's share: what is more waits for the next hour
MOST_BATCHES = 500
ENDINGS = sorted(states.TERMINAL | states.REPLACEABLE)
FIRE = "Job Schedule Fire"
BELONGINGS = ("Job Execution Log", "Job Step", KEY, FIRE)


def clean_up(most_batches: int = MOST_BATCHES) -> dict:
	"""Every hour, from the scheduler; returns how many jobs, keys and fires were deleted."""
	database.read_committed()  # deleting under a stricter level would lock the gaps that workers write into
	return {
		"jobs": delete_expired_jobs(clock.now(), most_batches),
		"keys": delete_expired_keys(database.utc_now(), most_batches),
		"fires": delete_old_fires(clock.now(), most_batches),
	}


def delete_expired_jobs(now: datetime, most_batches: int = MOST_BATCHES) -> int:
	return sum(islice(_batches(now), most_batches))


def delete_expired_keys(now: datetime, most_batches: int = MOST_BATCHES) -> int:
	"""Idempotency keys whose own time is over, whatever their job does."""
	return _until_none_is_left(lambda: _delete_keys(now), most_batches)


def delete_old_fires(now: datetime, most_batches: int = MOST_BATCHES) -> int:
	"""Fires without a job, kept as long as jobs are; the others go with their jobs."""
	before = now - timedelta(days=settings.retention_days())
	return _until_none_is_left(lambda: _delete_fires(before), most_batches)


def _until_none_is_left(delete_batch: Callable[[], int], most_batches: int) -> int:
	deleted = 0
	for _batch in range(most_batches):
		count = delete_batch()
		deleted += count
		if count < BATCH:
			break
	return deleted


def expired(job_type: str, status: str, before: datetime, after: tuple[datetime, str] | None = None):
	"""The query for a batch of old jobs, oldest first, from the one that was looked at last on."""
	job = frappe.qb.DocType(JOB)
	query = (
		frappe.qb.from_(job)
		.select(job.name, job.modified, job.job_group)
		.where((job.job_type == job_type) & (job.status == status) & (job.modified < before))
		.orderby(job.modified, job.name)
		.limit(BATCH)
		.for_update(skip_locked=True)
	)
	if after:
		moment, name = after
		later = (job.modified > moment) | ((job.modified == moment) & (job.name > name))
		query = query.where((job.modified >= moment) & later)
	return query


def _batches(now: datetime) -> Iterator[int]:
	"""Deletes batch after batch as it is asked for them; yields how many jobs went with each."""
	for job_type in _types_with_jobs():
		before = now - timedelta(days=_days(job_type))
		for status in _statuses_with_old_jobs(job_type, before):
			yield from _batches_of(job_type, status, before)


def _batches_of(job_type: str, status: str, before: datetime) -> Iterator[int]:
	after = None
	while True:
		seen, deleted = _delete_batch(job_type, status, before, after)
		if seen:
			yield deleted
		if len(seen) < BATCH:
			return
		# some may have to stay: the next batch begins behind them
		after = seen[-1].modified, seen[-1].name


@database.own_transaction
def _delete_batch(job_type: str, status: str, before: datetime, after) -> tuple[list, int]:
	seen = expired(job_type, status, before, after).run(as_dict=True)
	names = {job.name for job in seen}
	names -= _needed_by_unfinished(names)
	if status in states.REPLACEABLE:
		names &= _replaced(names)
	names -= _after_failures(names)
	if names:
		_delete(sorted(names))
		_delete_empty_groups({job.job_group for job in seen if job.name in names and job.job_group})
	return seen, len(names)


def _delete(names: list[str]) -> None:
	counters.add(counters.take(names))
	outputs.delete_of(names)
	for doctype in BELONGINGS if settings.keeps_runs() else (*BELONGINGS, RUN):
		frappe.db.delete(doctype, {"background_job": ["in", names]})
	frappe.db.delete(JOB, {"name": ["in", names]})


def _delete_empty_groups(groups: set[str]) -> None:
	if groups:
		job = frappe.qb.DocType(JOB)
		query = (
			frappe.qb.from_(job).select(job.job_group).distinct().where(job.job_group.isin(sorted(groups)))
		)
		if empty := groups - set(query.run(pluck=True)):
			frappe.db.delete("Job Group", {"name": ["in", sorted(empty)]})


def _needed_by_unfinished(names: set[str]) -> set[str]:
	"""Jobs that a job which has not ended yet waits for, or is the retry of."""
	return _referred_to(names, "depends_on", states.ACTIVE) | _referred_to(
		names, "retry_of", states.ACTIVE - states.REPLACEABLE
	)


def _after_failures(names: set[str]) -> set[str]:
	"""Whose failed predecessor is still there: without them it would look as if it were to be tried again."""
	if not names:
		return set()
	rows = statements.fetch(
		f"""select job.name, failed.name as before_it from `tabBackground Job` job
		join `tabBackground Job` failed on failed.name = job.retry_of
		where job.name in ({", ".join(["%s"] * len(names))}) and failed.status in ('Failed', 'Timed Out')""",
		sorted(names),
	)
	return {row.name for row in rows if row.before_it not in names}


def _replaced(names: set[str]) -> set[str]:
	return _referred_to(names, "retry_of", states.ALL)


def _referred_to(names: set[str], link: str, statuses) -> set[str]:
	if not names:
		return set()
	job = frappe.qb.DocType(JOB)
	links = frappe.qb.from_(job).select(job[link]).distinct().where(job[link].isin(sorted(names)))
	return set(links.where(job.status.isin(sorted(statuses))).run(pluck=True))


def _statuses_with_old_jobs(job_type: str, before: datetime) -> list[str]:
	"""Asked at once for all: most types have nothing that is old enough."""
	oldest = "(select min(modified) from `tabBackground Job` where job_type = %s and status = %s)"
	columns = ", ".join(f"{oldest} as oldest{number}" for number in range(len(ENDINGS)))
	values = [value for status in ENDINGS for value in (job_type, status)]
	(row,) = statements.fetch(f"select {columns}", values)
	return [
		status for status, moment in zip(ENDINGS, row.values(), strict=True) if moment and moment < before
	]


def _types_with_jobs() -> Iterator[str]:
	"""Each type that jobs have, even one that is gone: a step through the index per type, not per job."""
	job = frappe.qb.DocType(JOB)
	first = frappe.qb.from_(job).select(job.job_type).orderby(job.job_type).limit(1)
	found = first.run(pluck=True)
	while found:
		yield found[0]
		found = first.where(job.job_type > found[0]).run(pluck=True)


def _days(job_type: str) -> int:
	return frappe.db.get_value("Job Type", job_type, "retention_days") or settings.retention_days()


@database.own_transaction
def _delete_keys(now: datetime) -> int:
	key = frappe.qb.DocType(KEY)
	return _delete_first(KEY, key.expires_at < now, key.expires_at)


@database.own_transaction
def _delete_fires(before: datetime) -> int:
	fire = frappe.qb.DocType(FIRE)
	return _delete_first(FIRE, fire.background_job.isnull() & (fire.creation < before), fire.creation)


def _delete_first(doctype: str, condition, order) -> int:
	"""Deletes a batch of those that nobody holds; returns how many."""
	row = frappe.qb.DocType(doctype)
	query = frappe.qb.from_(row).select(row.name).where(condition).orderby(order).limit(BATCH)
	names = query.for_update(skip_locked=True).run(pluck=True)
	if names:
		frappe.db.delete(doctype, {"name": ["in", names]})
	return len(names)
