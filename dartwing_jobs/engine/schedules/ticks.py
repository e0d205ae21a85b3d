"""The tick: makes the jobs of all schedules that are due. Any number of processes may tick at once.

A batch of schedules is locked, decided, fired and committed together: whoever is killed in the middle leaves
nothing behind, and others pass by what is locked. Should two have the same fire in hand all the same, the
unique index of the fires lets one of them through.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial

import frappe

from dartwing_jobs import settings
from dartwing_jobs.engine import database, runs, statements, troubles
from dartwing_jobs.engine.limits import turnstiles
from dartwing_jobs.engine.observing import reports
from dartwing_jobs.engine.schedules import fire_jobs, fire_times, fires, missed, overlaps, schedules
from dartwing_jobs.engine.schedules.fires import FIRED, MISSED, Fire
from dartwing_jobs.engine.schedules.grounds import Grounds

BATCH = 500
# a batch of schedules that catch up is smaller: it is one transaction
MOST_FIRES = 1000
# of one tick; what is more waits for the next one
MOST_BATCHES = 100
COLUMNS = (
	"name",
	"organization",
	"enabled",
	"job_template",
	"run_as",
	"priority",
	"param_overrides",
	"cron_expression",
	"time_zone",
	"start_at",
	"end_at",
	"missed_run_policy",
	"overlap_policy",
	"jitter_seconds",
	"next_fire_at",
)
SELECT = f"select {', '.join(f'`{column}`' for column in COLUMNS)} from `tabJob Schedule`"
IN_ORDER = f"""where next_fire_at <= %s and {schedules.NOT_SET_ASIDE}
	order by next_fire_at, name limit %s"""
DUE = f"{SELECT} {IN_ORDER} for update skip locked"
STILL_DUE = f"{SELECT} where name = %s and next_fire_at <= %s for update skip locked"


def fire_due(prepare: Callable[[], object] | None = None) -> int:
	"""What drains and sweeps ask all the time: one look at an index, and nearly always that is all.

	They have other duties: what fails here is told, and tried again when they come back. `prepare` is called
	if something is due.
	"""
	try:
		(row,) = statements.fetch(
			"select min(next_fire_at) as due, utc_timestamp(6) as now from `tabJob Schedule`"
		)
		if not row.due or row.due > row.now:
			return 0
		if prepare:
			prepare()
		return tick(row.now)
	except Exception as error:
		reports.to_log("Schedules could not be fired", error)
		database.rollback()
		return 0


def tick(now: datetime) -> int:
	"""Fires all that is due at a moment (UTC, the database's clock); returns how many fires were handled."""
	due = schedules.next_due()
	if due is None or due > now or not settings.is_online():
		return 0
	database.read_committed()  # a stricter level would lock the gaps that other schedulers write into
	with _as_engine(), turnstiles.in_a_hurry():
		return _fire_batches(now)


def _fire_batches(now: datetime) -> int:
	handled = 0
	for _batch in range(MOST_BATCHES):
		taken, count = _fire_batch_or_each(now)
		handled += count
		if not taken:
			break
	return handled


def _fire_batch_or_each(now: datetime) -> tuple[int, int]:
	"""If one of a batch fails for a reason that nobody foresaw, the others must not wait for it."""
	try:
		return _fire_batch(DUE, (now, BATCH), now)
	except Exception as error:
		if database.is_lost_connection(error):
			raise
	due = statements.fetch(f"select name from `tabJob Schedule` {IN_ORDER}", (now, BATCH))
	handled = sum(_fire_alone(schedule.name, now) for schedule in due)
	return len(due) if handled else 0, handled


def _fire_alone(name: str, now: datetime) -> int:
	"""Tried once: one that meets another transaction stays due, and the next one has its turn."""
	try:
		handled = _fire_some(STILL_DUE, (name, now), now)[1]
		frappe.db.commit()  # nosemgrep: the engine's own transaction
		return handled
	except Exception as error:
		is_lost = database.is_lost_connection(error)
		database.rollback()
		if is_lost:
			raise
		if database.is_conflict(error):
			return 0
		# without its row it cannot even go on at its next fire time
		return troubles.alone(schedules.FIRE, name, partial(_give_up_on, name, now, error)) or 0


def _fire_some(statement: str, values: tuple, now: datetime) -> tuple[int, int]:
	"""Returns how many schedules were due, and how many fires were handled."""
	grounds, due, planned = Grounds(), [], []
	taken = statements.fetch(statement, values)
	grounds.read_templates_of(taken)
	for schedule in taken:
		due.append(schedule)
		planned += _plan(schedule, now, grounds)
		if len(planned) > MOST_FIRES:
			break  # the rest stays due
	written = fires.write_new(planned)
	_fire([fire for fire in written if fire.outcome == FIRED], grounds, now)
	_settle(due, written)
	return len(due), len(written)


_fire_batch = database.own_transaction(_fire_some)


@database.own_transaction
def _give_up_on(name: str, now: datetime, error: Exception) -> int:
	"""The schedule goes on at its next fire time."""
	due = statements.fetch(STILL_DUE, (name, now))
	for schedule in due:
		reports.to_log(f"Schedule {name} could not be fired", error)
		fire = Fire(schedule, schedule.next_fire_at)
		fire.fail(runs.message_of(error))
		schedule.following = fire_times.next_after(schedule, now)
		_settle(due, fires.write_new([fire]))
	return len(due)


def _plan(schedule, now: datetime, grounds: Grounds) -> list[Fire]:
	"""What is to become of the due fires of a schedule, before anything is written."""
	if not schedule.enabled:
		return []  # disabled past the document, which would have taken its next fire away
	try:
		planned, schedule.following = missed.plan(schedule, now)
	except Exception as error:  # an expression or a zone that was written past the document
		schedule.broken = fire_times.untold(error)
		planned = [Fire(schedule, schedule.next_fire_at)]
	if planned[-1].outcome == FIRED:
		_refuse(planned, grounds)
	return planned


def _refuse(planned: list[Fire], grounds: Grounds) -> None:
	"""Marks the fires that must not become jobs."""
	schedule = planned[0].schedule
	refusal = None if schedule.broken else grounds.refusal(schedule, schedule.run_as)
	reason = schedule.broken or (refusal and refusal.reason)
	if refusal and refusal.is_final:
		schedule.broken = refusal.reason
	for fire in planned if reason else ():
		if fire.outcome == FIRED:
			fire.fail(reason)


def _fire(fired: list[Fire], grounds: Grounds, now: datetime) -> None:
	"""Makes the jobs of fires, or says why there are none; their schedules go on either way."""
	first = overlaps.first_without_others(fired)
	free = [fire for fire in fired if not overlaps.is_limited(fire.schedule)]
	fire_jobs.make_all(free + first, grounds, now)
	made = {fire.name for fire in free + first}
	if rest := [fire for fire in fired if fire.name not in made]:
		_tell_all(first)  # now: the next fires of these schedules look for them
	for fire in rest:
		_fire_unless_in_the_way(fire, grounds)


def _tell_all(fired: list[Fire]) -> None:
	trip = statements.Trip()
	for fire in fired:
		fires.tell(fire, trip)
	trip.send()


def _fire_unless_in_the_way(fire: Fire, grounds: Grounds) -> None:
	unfinished = overlaps.unfinished_jobs(fire.schedule.name)
	if not overlaps.is_in_the_way(fire, unfinished):
		fire_jobs.make_or_tell(fire, grounds, unfinished[0] if unfinished else None)
		_tell_all([fire])  # now: the next fire of this schedule looks for it


def _settle(due: list, written: list[Fire]) -> None:
	"""Tells what became of the fires, and when their schedules fire next."""
	last_fires = {fire.schedule.name: fire.fire_at for fire in written}
	trip = statements.Trip()
	for fire in written:
		if fire.outcome != MISSED:
			fires.tell(fire, trip)
	for schedule in due:
		columns = {"next_fire_at": schedule.following}
		if schedule.name in last_fires:
			columns["last_fire_at"] = last_fires[schedule.name]
		trip.update(schedules.DOCTYPE, schedule.name, columns)
	trip.send()
	for schedule in due:
		if schedule.broken:
			schedules.disable(schedule, schedule.broken)


@contextmanager
def _as_engine() -> Iterator[None]:
	"""Jobs are made in the name of many: only the engine may."""
	user = frappe.session.user
	if user == "Administrator":
		yield
		return
	frappe.set_user("Administrator")
	try:
		yield
	finally:
		frappe.set_user(user)
