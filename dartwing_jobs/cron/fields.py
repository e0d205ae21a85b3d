"""The five fields of a cron expression, each read into the set of values that it matches."""

import re
from dataclasses import dataclass

from frappe import _

Nth = tuple[int, int]
LAST = -1
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
ITEM = re.compile(
	r"(?:\*|(?P<first>\d{1,2}|[A-Z]{3})(?:-(?P<last>\d{1,2}|[A-Z]{3}))?)(?:/(?P<step>\d{1,2}))?", re.ASCII
)
NTH = re.compile(r"(?P<weekday>\d|[A-Z]{3})(?:L|#(?P<nth>[1-5]))", re.ASCII)


@dataclass(frozen=True)
class Field:
	label: str
	lowest: int
	highest: int
	words: tuple[str, ...] = ()

	def values(self, text: str) -> frozenset[int | Nth]:
		return frozenset(value for item in text.upper().split(",") for value in self.values_of_item(item))

	def values_of_item(self, item: str):
		"""`*`, `5`, `MON-FRI`, `*/15`, `10-50/20`; `10/20` goes on to the end."""
		parts = ITEM.fullmatch(item)
		if not parts:
			self.refuse(item)
		first, last, step = parts["first"], parts["last"], parts["step"]
		start = self.number(first) if first else self.lowest
		end = self.end(first, last, step)
		if start > end or not 0 < int(step or 1) <= self.highest:
			self.refuse(item)
		return range(start, end + 1, int(step or 1))

	def end(self, first: str | None, last: str | None, step: str | None) -> int:
		if last:
			return self.number(last)
		return self.number(first) if first and not step else self.highest

	def number(self, text: str) -> int:
		value = self.words.index(text) + self.lowest if text in self.words else text
		if not str(value).isdigit() or not self.lowest <= int(value) <= self.highest:
			self.refuse(text)
		return int(value)

	def refuse(self, item: str) -> None:
		message = _("{0} is not a {1} from {2} to {3}")
		raise ValueError(message.format(item or "''", _(self.label), self.lowest, self.highest))


class DayField(Field):
	def values_of_item(self, item: str):
		"""`L`, too: the last day of a month, counted from its end."""
		return [LAST] if item == "L" else super().values_of_item(item)


class WeekdayField(Field):
	"""Monday is 1, Sunday is 0, or 7 as the end of a range."""

	def values_of_item(self, item: str):
		"""`FRI#2` and `FRIL`, too: the second and the last one of a month."""
		if parts := NTH.fullmatch(item):
			return [(self.number(parts["weekday"]) % 7, int(parts["nth"] or LAST))]
		return [value % 7 for value in super().values_of_item(item)]

	def end(self, first: str | None, last: str | None, step: str | None) -> int:
		end = super().end(first, last, step)
		if last:
			return end or (7 if self.number(first) else 0)
		return min(end, 6) if step or not first else end


MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY = DayField("day", 1, 31)
MONTH = Field("month", 1, 12, MONTHS)
WEEKDAY = WeekdayField("weekday", 0, 7, WEEKDAYS)
