"""When a schedule fires, by walking through time minute by minute: slow, and written from the rules alone."""

from calendar import monthrange
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
NAMES = {
	name: str(number)
	for names, start in (
		("SUN MON TUE WED THU FRI SAT", 0),
		("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC", 1),
	)
	for number, name in enumerate(names.split(), start)
}


def readings(time_zone: str, start: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
	"""Each minute of UTC from `start` to `end`, with what the clock on the wall shows."""
	zone, found = ZoneInfo(time_zone), []
	while start <= end:
		shown = start.replace(tzinfo=timezone.utc).astimezone(zone)
		found.append((start, shown.replace(tzinfo=None)))
		start += MINUTE
	return found


def fires(expression: str, clock: list[tuple[datetime, datetime]]) -> list[datetime]:
	if expression.split()[1].startswith("*"):
		return [moment for moment, shown in clock if matches(expression, shown)]
	return times_of_day(expression, clock)


def times_of_day(expression: str, clock: list[tuple[datetime, datetime]]) -> list[datetime]:
	"""Each wall time once; those that the clock jumps over, when it has jumped."""
	found, reached = [], clock[0][1] - MINUTE
	for moment, shown in clock:
		new = []
		while reached < shown:
			reached += MINUTE
			new.append(reached)
		if any(matches(expression, wall) for wall in new):
			found.append(moment)
	return found


def matches(expression: str, wall: datetime) -> bool:
	minute, hour, day, month, weekday = expression.upper().split()
	for field, value, lowest in ((minute, wall.minute, 0), (hour, wall.hour, 0), (month, wall.month, 1)):
		if not any(has(item, value, lowest) for item in field.split(",")):
			return False
	on_day = any(has(item, wall.day, 1) or is_last_day(item, wall) for item in day.split(","))
	on_weekday = any(is_weekday(item, wall) for item in weekday.split(","))
	if day.startswith("*") or weekday.startswith("*"):
		return on_day and on_weekday
	return on_day or on_weekday


def has(item: str, value: int, lowest: int) -> bool:
	span, _, step = item.partition("/")
	if span == "*":
		return (value - lowest) % int(step or 1) == 0
	first, _, last = span.partition("-")
	if not NAMES.get(first, first).isdigit():
		return False
	start = int(NAMES.get(first, first))
	end = int(NAMES.get(last, last)) if last else (99 if step else start)
	return start <= value <= end and (value - start) % int(step or 1) == 0


def is_last_day(item: str, wall: datetime) -> bool:
	return item == "L" and wall.day == monthrange(wall.year, wall.month)[1]


def is_weekday(item: str, wall: datetime) -> bool:
	today = wall.isoweekday() % 7
	if item.endswith("L"):
		return has(item[:-1], today, 0) and (wall + timedelta(days=7)).month != wall.month
	if "#" in item:
		name, nth = item.split("#")
		return has(name, today, 0) and (wall.day - 1) // 7 + 1 == int(nth)
	return has(item, today, 0) or (today == 0 and "7" in item and has(item, 7, 0))
