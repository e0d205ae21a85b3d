"""When a schedule fires: five cron fields, read as wall-clock times of an IANA zone, answered as naive UTC.

An hour field that begins with `*` is a rhythm: it fires whenever the clock on the wall matches. Others name
times of the day: each fires once, when it comes first, or right after the clocks have jumped over it.
"""

from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from frappe import _

from dartwing_jobs.cron import zones
from dartwing_jobs.cron.pattern import Pattern
from dartwing_jobs.cron.zones import is_zone
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.messages import throw

__all__ = ["check", "fires", "is_zone", "last_fires", "next_fire"]

FIELDS = 5
# as long as a Data field; parsed ones are remembered
LONGEST = 140
RESOLUTION = timedelta.resolution


def check(expression: str, now: datetime) -> None:
	"""Raises when the expression is malformed or can never fire."""
	if _pattern(expression).first_match(now) is None:
		message = _("The cron expression {0} never fires.")
		throw(message.format(expression), InvalidJobError)


def next_fire(expression: str, time_zone: str, after: datetime) -> datetime | None:
	"""The first fire later than `after`; None if no date in sight matches."""
	pattern, zone = _pattern(expression), ZoneInfo(time_zone)
	return (_next_beat if pattern.is_rhythm else _next_time_of_day)(pattern, zone, after)


def fires(expression: str, time_zone: str, after: datetime, until: datetime, most: int) -> list[datetime]:
	"""Those later than `after` and not later than `until`: the first `most`, in order."""
	found: list[datetime] = []
	while len(found) < most:
		after = next_fire(expression, time_zone, after)
		if after is None or after > until:
			break
		found.append(after)
	return found


def last_fires(
	expression: str, time_zone: str, after: datetime, until: datetime, most: int
) -> list[datetime]:
	"""Those later than `after` and not later than `until`: the last `most`, in order."""
	near, far, start = until, after, after
	while most > 0:
		found = fires(expression, time_zone, start, until, 2 * most)
		if len(found) < most and start > after:
			near = start
		elif len(found) == 2 * most:
			far = start
		else:
			return found[-most:]
		start = far + (near - far) / 2
	return []


def _next_time_of_day(pattern: Pattern, zone: ZoneInfo, after: datetime) -> datetime | None:
	"""The next match whose first occurrence is still to come."""
	wall = zones.wall(after, zone) + RESOLUTION
	while wall := pattern.first_match(wall):
		moment = zones.first_moment(wall, zone)
		if moment > after:
			return moment
		# the clock has shown this before it was set back: go on from where it had come to
		wall = zones.change(zone, moment, after) + zones.offset(moment, zone)
	return None


def _next_beat(pattern: Pattern, zone: ZoneInfo, after: datetime) -> datetime | None:
	"""The next match by the clock as it goes now, or after its next change if that comes first."""
	start = after + RESOLUTION
	while wall := pattern.first_match(zones.wall(start, zone)):
		moment = wall - zones.offset(start, zone)
		end = min(moment, start + zones.STEADY)
		change = zones.change(zone, start, end)
		if change is None and end == moment:
			return moment
		# the clock cannot reach the matching day before that, however it is changed
		start = change or moment - zones.LONGEST_JUMP
	return None


@lru_cache(maxsize=4096)
def _pattern(expression: str) -> Pattern:
	fields = expression.split()
	if len(fields) != FIELDS or len(expression) > LONGEST:
		message = _(
			"{0} is not a cron expression: write minute, hour, day, month, weekday, such as 0 9 * * MON-FRI."
		)
		throw(message.format(expression[:LONGEST]), InvalidJobError)
	try:
		return Pattern.of(*fields)
	except ValueError as e:
		message = _("{0} is not a valid cron expression: {1}.")
		throw(message.format(expression, e), InvalidJobError)
