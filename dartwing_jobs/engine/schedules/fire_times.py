"""When a schedule fires: at the times of its expression, in its own time zone, within its window.

Moments are naive UTC; the window is what people wrote, on the wall clock of the schedule's zone.
"""

from datetime import datetime, timezone
from zoneinfo import ZoneInfo

from frappe.utils import get_datetime, get_system_timezone

from dartwing_jobs import cron
from dartwing_jobs.cron import zones
from dartwing_jobs.engine import runs
from dartwing_jobs.engine.schedules.fires import TICK


def zone_of(schedule) -> str:
	"""Its own; the site's only for rows that were written past the document."""
	return schedule.time_zone or get_system_timezone()


def next_after(schedule, moment: datetime) -> datetime | None:
	"""The first fire behind a moment; None when the schedule has none left."""
	start, end = window_of(schedule)
	# whoever starts at nine fires at nine
	after = max(moment, start - TICK) if start else moment
	fire = cron.next_fire(schedule.cron_expression, zone_of(schedule), after)
	return fire if fire and (end is None or fire <= end) else None


def last_of(schedule, after: datetime, until: datetime, most: int) -> list[datetime]:
	"""The last fires behind one moment, up to another and with it; oldest first."""
	return cron.last_fires(
		schedule.cron_expression, zone_of(schedule), *_within(schedule, after, until), most
	)


def count_of(schedule, after: datetime, until: datetime, most: int) -> int:
	"""How many fires that are; whoever was away for years is told of `most`."""
	after, until = _within(schedule, after, until)
	return len(cron.fires(schedule.cron_expression, zone_of(schedule), after, until, most))


def upcoming(schedule, moment: datetime, count: int) -> list[datetime]:
	"""The next fires behind a moment, at most so many."""
	found = []
	while len(found) < count and (fire := next_after(schedule, found[-1] if found else moment)):
		found.append(fire)
	return found


def window_of(schedule) -> tuple[datetime | None, datetime | None]:
	"""Both belong to it; an hour that comes twice is in it both times."""
	zone = ZoneInfo(zone_of(schedule))
	start = schedule.start_at and zones.first_moment(get_datetime(schedule.start_at), zone)
	end = schedule.end_at and _last_moment(get_datetime(schedule.end_at), zone)
	return start or None, end or None


def untold(error: Exception) -> str:
	"""What to say of a schedule whose expression or zone was written past the document."""
	return f"Its fire times cannot be told: {runs.message_of(error)}"


def on_the_wall(value, time_zone: str):
	"""A border of a window as it is stored: what comes with an offset becomes a wall time of the zone."""
	try:
		moment = value if isinstance(value, datetime) else get_datetime(value)
		return moment.astimezone(ZoneInfo(time_zone)).replace(tzinfo=None) if moment.tzinfo else value
	except (
		Exception
	):  # Frappe, dateutil and zoneinfo raise a dozen classes; whoever checks the value says why
		return value


def _within(schedule, after: datetime, until: datetime) -> tuple[datetime, datetime]:
	start, end = window_of(schedule)
	return max(after, start - TICK) if start else after, min(until, end) if end else until


def _last_moment(wall: datetime, zone: ZoneInfo) -> datetime:
	"""When the clock shows this for the last time, or, if it jumps over it, when it has jumped."""
	moment = wall.replace(tzinfo=zone, fold=1).astimezone(timezone.utc).replace(tzinfo=None)
	return moment if zones.wall(moment, zone) == wall else zones.first_moment(wall, zone)
