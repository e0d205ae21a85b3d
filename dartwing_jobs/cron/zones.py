"""Wall clocks: what they show, and when they are changed. Moments are naive UTC, wall times naive."""

from datetime import datetime, timedelta, timezone
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

# a clock is not changed twice within this time: nowhere in the IANA database, and a test looks
STEADY = timedelta(days=3)
# the widest change: a whole day, where the date line was moved
LONGEST_JUMP = timedelta(days=1, hours=1)
SECOND = timedelta(seconds=1)


def is_zone(name: str) -> bool:
	"""Asked of the list of names: other files of zone data count leap seconds, or are the machine's own."""
	return name in _names()


@cache
def _names() -> set[str]:
	return available_timezones() - {"localtime", "posixrules", "Factory"}


def wall(moment: datetime, zone: ZoneInfo) -> datetime:
	return moment.replace(tzinfo=timezone.utc).astimezone(zone).replace(tzinfo=None, fold=0)


def offset(moment: datetime, zone: ZoneInfo) -> timedelta:
	return moment.replace(tzinfo=timezone.utc).astimezone(zone).utcoffset()


def first_moment(wall_time: datetime, zone: ZoneInfo) -> datetime:
	"""When the clock shows this for the first time, or, if it jumps over it, when it has jumped."""
	moment = _moment(wall_time, zone, fold=0)
	if wall(moment, zone) == wall_time:
		return moment
	return change(zone, _moment(wall_time, zone, fold=1), moment)


def change(zone: ZoneInfo, start: datetime, end: datetime) -> datetime | None:
	"""When the clock is changed between two moments that are at most STEADY apart; None if it is not."""
	before = offset(start, zone)
	if offset(end, zone) == before:
		return None
	while end - start > SECOND:
		middle = start + (end - start) / 2
		if offset(middle, zone) == before:
			start = middle
		else:
			end = middle
	return end.replace(microsecond=0)


def _moment(wall_time: datetime, zone: ZoneInfo, fold: int) -> datetime:
	return wall_time.replace(tzinfo=zone, fold=fold).astimezone(timezone.utc).replace(tzinfo=None)
