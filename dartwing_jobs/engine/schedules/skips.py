"""Fire times of disabled schedules: a line says how many were skipped, an hour apart at least.

The moment of the next look is a column of the schedule, so that a sweep reads only what it has to look at.
"""

from datetime import datetime, timedelta

from dartwing_jobs.engine import database, statements, troubles
from dartwing_jobs.engine.schedules import fire_times, fires
from dartwing_jobs.engine.schedules.fires import DISABLED, SKIPPED, TICK, Fire

LOG = "log skips"
BATCH = 100
LOOK_APART = timedelta(hours=1)
# each takes a while to compute; of more than these the number does not matter
MOST_COUNTED = 1000
# the next look at a schedule without fire times
NEVER = datetime(9999, 12, 31)
COLUMNS = "name, organization, cron_expression, time_zone, start_at, end_at, next_skip_at"
TO_LOOK_AT = f"""select name from `tabJob Schedule` where enabled = 0
	and (next_skip_at is null or next_skip_at <= %s) order by next_skip_at limit {BATCH}"""


def log_due(now: datetime | None = None) -> None:
	"""With the sweep: writes what disabled schedules have skipped."""
	now = now or database.utc_now()
	names = [row.name for row in statements.fetch(TO_LOOK_AT, (now,))]
	troubles.each(LOG, names, lambda name: _log(name, now))


@database.own_transaction
def _log(name: str, now: datetime) -> None:
	still_disabled = statements.fetch(
		f"select {COLUMNS} from `tabJob Schedule` where name = %s and enabled = 0 for update skip locked",
		(name,),
	)
	for schedule in still_disabled:
		statements.update("Job Schedule", name, {"next_skip_at": tell(schedule, now)})


def tell(schedule, now: datetime) -> datetime:
	"""Writes a line for what was skipped since the line before; returns when to look next."""
	since = _told_until(schedule) or now
	try:
		last = fire_times.last_of(schedule, since, now, 1)
		count = fire_times.count_of(schedule, since, now, MOST_COUNTED) if last else 0
		following = fire_times.next_after(schedule, now) or NEVER
	except Exception:  # an expression or a zone that was written past the document
		return NEVER
	if not last:
		return following
	count = min(count, MOST_COUNTED)
	message = f"{count} fire time(s) passed while the schedule was disabled"
	fires.write_new([Fire(schedule, last[0], SKIPPED, missed_fires=count, message=message)])
	return max(following, now + LOOK_APART)


def _told_until(schedule) -> datetime | None:
	"""The moment of the last line about a pause or a skip; None at the first look at a new schedule."""
	(row,) = statements.fetch(
		"""select max(fire_at) as moment from `tabJob Schedule Fire`
		where job_schedule = %s and outcome in (%s, %s)""",
		(schedule.name, DISABLED, SKIPPED),
	)
	return row.moment or (schedule.next_skip_at and schedule.next_skip_at - TICK)
