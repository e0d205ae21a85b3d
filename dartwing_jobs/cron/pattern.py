"""A cron expression as a pattern of wall-clock times, in a calendar without zones."""

from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from dartwing_jobs.cron import fields

# 29 February falls on one weekday every 28 years, or 40 around a year such as 2100
YEARS_TO_SEARCH = 41
LAST_YEAR = 9998


@dataclass(frozen=True)
class Pattern:
	minutes: tuple[int, ...]
	hours: tuple[int, ...]
	days: frozenset
	months: frozenset
	weekdays: frozenset
	either_day: bool
	is_rhythm: bool

	@classmethod
	def of(cls, minute: str, hour: str, day: str, month: str, weekday: str) -> "Pattern":
		return cls(
			minutes=tuple(sorted(fields.MINUTE.values(minute))),
			hours=tuple(sorted(fields.HOUR.values(hour))),
			days=fields.DAY.values(day),
			months=fields.MONTH.values(month),
			weekdays=fields.WEEKDAY.values(weekday),
			either_day=not (day.startswith("*") or weekday.startswith("*")),
			is_rhythm=hour.startswith("*"),
		)

	def first_match(self, wall: datetime) -> datetime | None:
		"""The first whole minute that matches, at or after this time; None if there is none in sight."""
		start = wall.replace(second=0, microsecond=0)
		if start < wall:
			start += timedelta(minutes=1)
		for day in self._dates(start.date()):
			found = self._first_time(start.time() if day == start.date() else time.min)
			if found:
				return datetime.combine(day, found)
		return None

	def _first_time(self, earliest: time) -> time | None:
		for hour in self.hours:
			if hour > earliest.hour:
				return time(hour, self.minutes[0])
			if hour == earliest.hour and self.minutes[-1] >= earliest.minute:
				return time(hour, next(minute for minute in self.minutes if minute >= earliest.minute))
		return None

	def _dates(self, earliest: date) -> Iterator[date]:
		for year in range(earliest.year, min(earliest.year + YEARS_TO_SEARCH, LAST_YEAR) + 1):
			for month in sorted(self.months):
				if (year, month) >= (earliest.year, earliest.month):
					first = earliest.day if (year, month) == (earliest.year, earliest.month) else 1
					yield from self._dates_of_month(year, month, first)

	def _dates_of_month(self, year: int, month: int, first: int) -> Iterator[date]:
		weekday_of_first, length = monthrange(year, month)
		for day in range(first, length + 1):
			# Monday is 0 for Python and 1 for cron
			if self._has(day, (weekday_of_first + day) % 7, length):
				yield date(year, month, day)

	def _has(self, day: int, weekday: int, length: int) -> bool:
		by_day = day in self.days or (fields.LAST in self.days and day == length)
		by_weekday = weekday in self.weekdays or self._has_nth(day, weekday, length)
		return by_day or by_weekday if self.either_day else by_day and by_weekday

	def _has_nth(self, day: int, weekday: int, length: int) -> bool:
		is_last = day + 7 > length
		nth = (day + 6) // 7
		return (weekday, nth) in self.weekdays or (is_last and (weekday, fields.LAST) in self.weekdays)
