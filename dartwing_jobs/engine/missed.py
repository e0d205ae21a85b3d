"""Which of the fires that are due become jobs, and which were missed: the missed-run policies."""

from datetime import datetime, timedelta

from dartwing_jobs import settings
from dartwing_jobs.engine import fire_times
from dartwing_jobs.engine.fires import MISSED, Fire

SKIP, ONCE, ALL = "Skip", "Once", "All"
# whoever counts further has been away for too long to need the number
MOST_COUNTED = 10_000


def plan(schedule, now: datetime) -> tuple[list[Fire], datetime | None]:
	"""What is to become of everything that is due, oldest first; and the fire that comes next.

	What was announced (`next_fire_at`) fires, whatever time zone data say of it meanwhile.
	"""
	announced = schedule.next_fire_at
	following = fire_times.next_after(schedule, announced)
	if following is None or following > now:
		due, count = [announced], 1
	else:
		most = settings.most_missed_fires()
		# one more than may become jobs, because somebody has to tell of those that do not
		due = [announced, *fire_times.last_of(schedule, announced, now, most + 1)]
		count = 1 + fire_times.count_of(schedule, announced, now, MOST_COUNTED)
		following = fire_times.next_after(schedule, now)
	return _planned(schedule, due, count, now), following


def _planned(schedule, due: list[datetime], count: int, now: datetime) -> list[Fire]:
	too_late = now - timedelta(seconds=settings.missed_after_seconds())
	on_time = [moment for moment in due if moment >= too_late]
	missed = [moment for moment in due if moment < too_late]
	if not missed:
		return [Fire(schedule, moment) for moment in on_time]
	return POLICIES[schedule.missed_run_policy or SKIP](schedule, missed, on_time, count - len(on_time))


def _skip(schedule, missed: list, on_time: list, count: int) -> list[Fire]:
	return [_lost(schedule, missed[-1], count), *(Fire(schedule, moment) for moment in on_time)]


def _once(schedule, missed: list, on_time: list, count: int) -> list[Fire]:
	"""One job for all that is due, however much of it is late."""
	due = [*missed, *on_time]
	return [Fire(schedule, due[-1], missed_fires=count + len(on_time) - 1)]


def _all(schedule, missed: list, on_time: list, count: int) -> list[Fire]:
	"""Each of them, as far back as the settings allow; the rest is one line."""
	kept = missed[-settings.most_missed_fires() :]
	late = [Fire(schedule, moment) for moment in (*kept, *on_time)]
	if dropped := count - len(kept):
		return [_lost(schedule, missed[-len(kept) - 1], dropped), *late]
	return late


def _lost(schedule, last: datetime, count: int) -> Fire:
	told = f"{count} or more" if count >= MOST_COUNTED else str(count)
	message = f"{told} fire time(s) passed while nothing fired, the last one at {last} UTC"
	return Fire(schedule, last, MISSED, missed_fires=count, message=message)


POLICIES = {SKIP: _skip, ONCE: _once, ALL: _all}
