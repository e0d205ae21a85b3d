"""Retention: jobs that ended long ago go, and what belongs to them goes along.

Short transactions of its own that take what nobody holds: workers do not notice, and two runs share the work.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import islice

import frappe

from dartwing_jobs import clock, settings
from dartwing_jobs.engine import database, statements, states, troubles
from dartwing_jobs.engine.handling import outputs
from dartwing_jobs.engine.intake import keys
from dartwing_jobs.engine.observing import counters, reports
from dartwing_jobs.engine.rules import job_types

JOB = "Background Job"
RUN = "Job Run"
GROUP = "Job Group"
BATCH = 200
# a job stays as long as it, or one of its files, cannot be deleted
DELETE, DELETE_FILES = "delete", "delete files"
# an hour's share: what is more waits for the next hour
MOST_BATCHES = 500
ENDINGS = sorted(states.TERMINAL | states.REPLACEABLE)
FIRE = "Job Schedule Fire"
BELONGINGS = ("Job Execution Log", "Job Step", FIRE)
# a key that would have expired before its job has ended is looked at again after so long
KEY_STAYS = timedelta(days=1)


@reports.masked
def clean_up(most_batches: int = MOST_BATCHES) -> dict:
	"""Every hour, from the scheduler; returns how many jobs, groups, keys and fires were deleted."""
	database.read_committed()  # deleting under a stricter level would lock the gaps that workers write into
	duties = troubles.Duties()
	return {
		"jobs": duties.do(delete_expired_jobs, clock.now(), most_batches) or 0,
		"groups": duties.do(delete_empty_groups, clock.now(), most_batches) or 0,
		"keys": duties.do(delete_expired_keys, database.utc_now(), most_batches) or 0,
		"fires": duties.do(delete_old_fires, clock.now(), most_batches) or 0,
	}


def delete_expired_jobs(now: datetime, most_batches: int = MOST_BATCHES) -> int:
	return sum(islice(_batches(now), most_batches))


def delete_empty_groups(now: datetime, most_batches: int = MOST_BATCHES) -> int:
	"""Groups that were never filled, or lost their jobs in other ways; the others go with their last job."""
	before = now - timedelta(days=settings.retention_days())
	return _until_none_is_left(lambda: _delete_groups(before), most_batches)


def delete_expired_keys(now: datetime, most_batches: int = MOST_BATCHES) -> int:
	"""Keys and windows whose own time is over; not the key of a job that has not ended."""
	deleted = 0
	for _batch in range(most_batches):
		seen, gone = _delete_keys(now)
		deleted += gone
		if seen < BATCH:
			break
	return deleted


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
	for job_type in job_types.with_jobs():
		before = now - timedelta(days=_days(job_type))
		for status in _statuses_with_old_jobs(job_type, before):
			yield from _batches_of(job_type, status, before)


def _batches_of(job_type: str, status: str, before: datetime) -> Iterator[int]:
	after = None
	while True:
		seen, deleted = _delete_batch_or_each(job_type, status, before, after)
		if seen:
			yield deleted
		if len(seen) < BATCH:
			return
		# some may have to stay: the next batch begins behind them
		after = seen[-1].modified, seen[-1].name


def _delete_batch_or_each(job_type: str, status: str, before: datetime, after) -> tuple[list, int]:
	"""The jobs that were looked at, and how many of them went. One that cannot be deleted stops no other."""
	query = expired(job_type, status, before, after)
	try:
		return _delete_and_tell(query, status)
	except Exception as error:
		if database.is_lost_connection(error) or database.is_conflict(error):
			raise
	seen = query.run(as_dict=True)
	database.rollback()
	row = frappe.qb.DocType(JOB)

	def delete_one(name: str) -> int:
		return _delete_and_tell(query.where(row.name == name), status)[1]

	return seen, sum(filter(None, troubles.each(DELETE, [job.name for job in seen], delete_one)))


def _delete_and_tell(query, status: str) -> tuple[list, int]:
	seen, deleted, failed = _delete_batch(query, status)
	for name, error in failed.items():
		troubles.note(DELETE_FILES, name, error)
	return seen, deleted


@database.own_transaction
def _delete_batch(query, status: str) -> tuple[list, int, dict]:
	"""The jobs that were looked at, how many of them went, and whose files could not be deleted."""
	seen = query.run(as_dict=True)
	names = {job.name for job in seen} - troubles.set_aside(DELETE_FILES) - troubles.set_aside(DELETE)
	names -= _needed_by_unfinished(names)
	if status in states.REPLACEABLE:
		names &= _replaced(names)
	names = _without_followers(names)
	failed = outputs.delete_of(sorted(names)) if names else {}
	names = _without_followers(names - failed.keys())
	if names:
		_delete(sorted(names))
		_delete_empty_groups({job.job_group for job in seen if job.name in names and job.job_group})
	return seen, len(names), failed


def _delete(names: list[str]) -> None:
	counters.add(counters.take(names))
	for doctype in BELONGINGS if settings.keeps_runs() else (*BELONGINGS, RUN):
		frappe.db.delete(doctype, {"background_job": ["in", names]})
	keys.forget_all_but_answers(names)
	frappe.db.delete(JOB, {"name": ["in", names]})


def _delete_empty_groups(groups: set[str]) -> None:
	if groups:
		job = frappe.qb.DocType(JOB)
		query = (
			frappe.qb.from_(job).select(job.job_group).distinct().where(job.job_group.isin(sorted(groups)))
		)
		if empty := groups - set(query.run(pluck=True)):
			frappe.db.delete(GROUP, {"name": ["in", sorted(empty)]})


def _needed_by_unfinished(names: set[str]) -> set[str]:
	"""Jobs that a job which has not ended yet waits for, or is the retry of."""
	return _referred_to(names, "depends_on", states.ACTIVE) | _referred_to(
		names, "retry_of", states.ACTIVE - states.REPLACEABLE
	)


def _without_followers(names: set[str]) -> set[str]:
	"""Those of these jobs that can go: who follows one that stays, stays too."""
	while following := _after_failures(names):
		names = names - following
	return names


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


def _days(job_type: str) -> int:
	return frappe.db.get_value("Job Type", job_type, "retention_days") or settings.retention_days()


@database.own_transaction
def _delete_groups(before: datetime) -> int:
	found = statements.fetch(
		f"""select name from `tab{GROUP}` old_group where modified < %s and not exists (
		select 1 from `tab{JOB}` job where job.job_group = old_group.name)
		order by modified limit {BATCH} for update skip locked""",
		(before,),
	)
	if found:
		frappe.db.delete(GROUP, {"name": ["in", [row.name for row in found]]})
	return len(found)


@database.own_transaction
def _delete_keys(now: datetime) -> tuple[int, int]:
	"""A batch of those that no transaction holds; returns how many it looked at, and how many are gone."""
	key = frappe.qb.DocType(keys.DOCTYPE)
	query = frappe.qb.from_(key).select(key.name, key.kind, key.background_job).where(key.expires_at < now)
	seen = query.orderby(key.expires_at).limit(BATCH).for_update(skip_locked=True).run(as_dict=True)
	needed = _unfinished({row.background_job for row in seen if row.kind == keys.IDEMPOTENCY_KEY})
	stay = [row.name for row in seen if row.kind == keys.IDEMPOTENCY_KEY and row.background_job in needed]
	if stay:
		frappe.db.set_value(
			keys.DOCTYPE, {"name": ["in", stay]}, "expires_at", now + KEY_STAYS, update_modified=False
		)
	if over := [row.name for row in seen if row.name not in stay]:
		frappe.db.delete(keys.DOCTYPE, {"name": ["in", over]})
	return len(seen), len(over)


def _unfinished(names: set[str | None]) -> set[str]:
	"""Those of these jobs that have not ended yet."""
	wanted = sorted(name for name in names if name)
	if not wanted:
		return set()
	job = frappe.qb.DocType(JOB)
	query = frappe.qb.from_(job).select(job.name).where(job.name.isin(wanted))
	return set(query.where(job.status.isin(sorted(states.ACTIVE))).run(pluck=True))


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
