"""Which of the fires that are due become jobs, and which were missed: the missed-run policies."""

from datetime import datetime, timedelta

from dartwing_jobs import settings
from dartwing_jobs.engine.schedules import fire_times
from dartwing_jobs.engine.schedules.fires import MISSED, TICK, Fire

SKIP, ONCE, ALL = "Skip", "Once", "All"
# each takes a while to compute; whoever was away for longer does not need the number
MOST_COUNTED = 1000


def plan(schedule, now: datetime) -> tuple[list[Fire], datetime | None]:
	"""What is to become of everything that is due, oldest first; and the fire that comes next.

	What was announced (`next_fire_at`) fires, whatever time zone data say of it meanwhile.
	"""
	announced = schedule.next_fire_at
	following = fire_times.next_after(schedule, announced)
	on_time, missed, count = [], [], 0
	if following and following <= now:
		on_time, missed, count = _behind(schedule, announced, now)
		following = fire_times.next_after(schedule, now)
	if announced < _too_late(now):
		missed, count = [announced, *missed], count + 1
	else:
		on_time = [announced, *on_time]
	if missed:
		policy = POLICIES[schedule.missed_run_policy or SKIP]
		return policy(schedule, missed, on_time, count), following
	return [Fire(schedule, moment) for moment in on_time], following


def _behind(schedule, announced: datetime, now: datetime) -> tuple[list, list, int]:
	"""Fires behind the announced one: those on time, the last ones that were missed, and how many were."""
	border = _too_late(now) - TICK
	on_time = fire_times.last_of(schedule, max(announced, border), now, MOST_COUNTED)
	# of those that do not become jobs the last one is to be told
	most = settings.most_missed_fires() + 1 if schedule.missed_run_policy == ALL else 1
	missed = fire_times.last_of(schedule, announced, border, most)
	return on_time, missed, fire_times.count_of(schedule, announced, border, MOST_COUNTED)


def _too_late(now: datetime) -> datetime:
	return now - timedelta(seconds=settings.missed_after_seconds())


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
	told = f"More than {MOST_COUNTED}" if count > MOST_COUNTED else str(count)
	message = f"{told} fire time(s) passed while nothing fired, the last one at {last} UTC"
	return Fire(schedule, last, MISSED, missed_fires=count, message=message)


POLICIES = {SKIP: _skip, ONCE: _once, ALL: _all}
