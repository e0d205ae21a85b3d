"""Arguments of the methods over HTTP: which kinds there are, and what is said of a value that is of another.

A method names the kind in its annotations, such as `job: Name, limit: PageSize = 20`. What is refused is an
InvalidJobError, in one sentence that names the argument.
"""

import json
import math
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from frappe import _

from dartwing_jobs import clock
from dartwing_jobs.document import FIRST_YEAR, LARGEST_LONG_INT, LAST_YEAR, shown
from dartwing_jobs.engine.dead_letters import Cursor
from dartwing_jobs.engine.states import ALL as STATUSES
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.messages import throw

BAR = "|"
MOST_AT_ONCE = 200
LONGEST_NAME, LONGEST_REASON, LONGEST_TEXT = 140, 2000, 65_535
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
WORDS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False, "": False}


def refuse(message: str, *values) -> None:
	throw(message.format(*values), InvalidJobError)


class Text:
	"""Text that can be stored, of a bounded length."""

	def __init__(self, longest: int = LONGEST_NAME):
		self.longest = longest

	def read(self, name: str, value) -> str:
		if not isinstance(value, str):
			refuse(_("{0} must be a text, not {1}."), name, shown(value))
		if len(value) > self.longest:
			message = _("{0} has {1} characters; at most {2} are allowed.")
			refuse(message, name, len(value), self.longest)
		if UNSTORABLE.search(value):
			refuse(_("{0} contains a character that cannot be stored (NUL or half a surrogate pair)."), name)
		return value


class Choice(Text):
	"""One of a few words; an empty text chooses nothing."""

	def __init__(self, words: Iterable[str]):
		super().__init__()
		self.words = tuple(words)

	def read(self, name: str, value) -> str | None:
		word = super().read(name, value)
		if word and word not in self.words:
			refuse(_("{0} must be one of {1}, not {2}."), name, ", ".join(self.words), shown(word))
		return word or None


class WholeNumber:
	"""A whole number, also as text; one that is too large can be taken as the largest."""

	def __init__(self, smallest: int = -LARGEST_LONG_INT, largest: int = LARGEST_LONG_INT, cut: bool = False):
		self.smallest, self.largest, self.cut = smallest, largest, cut

	def read(self, name: str, value) -> int:
		number = self._as_int(name, value)
		if number < self.smallest:
			refuse(_("{0} must be at least {1}, not {2}."), name, self.smallest, shown(value))
		if number > self.largest and not self.cut:
			refuse(_("{0} must be at most {1}, not {2}."), name, self.largest, shown(value))
		return min(number, self.largest)

	def _as_int(self, name: str, value) -> int:
		try:
			if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
				raise ValueError
			return int(value)
		except (TypeError, ValueError, OverflowError):
			return refuse(_("{0} must be a whole number, not {1}."), name, shown(value))


class FiniteNumber:
	def read(self, name: str, value) -> float:
		try:
			number = math.nan if isinstance(value, bool) else float(value)
		except (TypeError, ValueError, OverflowError):
			number = math.nan
		if not math.isfinite(number):
			refuse(_("{0} must be a number, not {1}."), name, shown(value))
		return number


class YesOrNo:
	"""Query strings have words only."""

	def read(self, name: str, value) -> bool:
		if not isinstance(value, bool | int | str) or str(value).lower() not in WORDS:
			refuse(_("{0} must be true or false, not {1}."), name, shown(value))
		return WORDS[str(value).lower()]


class WordOrNumber(Text):
	"""A priority, as a word or as other systems number it."""

	def read(self, name: str, value) -> str | int:
		is_number = isinstance(value, int) and not isinstance(value, bool)
		return value if is_number else super().read(name, value)


class Json:
	"""An object or a list, also as text of JSON."""

	def __init__(self, *kinds: type):
		self.kinds = kinds

	def read(self, name: str, value) -> dict | list:
		parsed = _parsed(name, value) if isinstance(value, str) else value
		if not isinstance(parsed, self.kinds):
			words = {dict: _("a JSON object"), list: _("a JSON list")}
			kinds = _(" or ").join(words[kind] for kind in self.kinds)
			refuse(_("{0} must be {1}, not {2}."), name, kinds, shown(value))
		return parsed


class Parameters:
	"""Parameters of jobs: `dartwing_jobs.parameters` says what those are."""

	def read(self, name: str, value) -> dict | str:
		if not isinstance(value, dict | str):
			refuse(_("{0} must be a JSON object, not {1}."), name, shown(value))
		return value


class NameOrObject(Text):
	"""A name, or an object that says more."""

	def read(self, name: str, value) -> str | dict:
		is_object = not isinstance(value, str) or value.lstrip().startswith("{")
		return Json(dict).read(name, value) if is_object else super().read(name, value)


class MomentAndName(Text):
	"""Where a page ended that is ordered by moments."""

	def __init__(self):
		super().__init__(2 * LONGEST_NAME)

	def read(self, name: str, value) -> Cursor | None:
		moment, _bar, last = super().read(name, value).partition(BAR)
		at = clock.parse(moment) if moment else None
		if value and not (isinstance(at, datetime) and FIRST_YEAR <= at.year <= LAST_YEAR and last):
			refuse(_("{0} is not where a page ended: {1}."), name, shown(value))
		return Cursor(at, last) if value else None


class NumberAndName(Text):
	"""Where a page ended that is ordered by numbers."""

	def __init__(self):
		super().__init__(2 * LONGEST_NAME)

	def read(self, name: str, value) -> tuple[int, str] | None:
		number, _bar, last = super().read(name, value).partition(BAR)
		is_number = number.isascii() and number.isdecimal() and len(number) < 19
		if value and not (is_number and last):
			refuse(_("{0} is not where a page ended: {1}."), name, shown(value))
		return (int(number), last) if value else None


def _parsed(name: str, text: str):
	try:
		return json.loads(text)
	except RecursionError:
		return refuse(_("{0} is nested too deeply."), name)
	except ValueError as error:
		return refuse(_("{0} is not valid JSON: {1}."), name, shown(error))


Name = Annotated[str, Text()]
Key = Annotated[str, Text(255)]
Reason = Annotated[str, Text(LONGEST_REASON)]
LongText = Annotated[str, Text(LONGEST_TEXT)]
Number = Annotated[int, WholeNumber()]
Count = Annotated[int, WholeNumber(1)]
PageSize = Annotated[int, WholeNumber(1, MOST_AT_ONCE, cut=True)]
Hours = Annotated[float, FiniteNumber()]
Yes = Annotated[bool, YesOrNo()]
Priority = Annotated[str, WordOrNumber()]
Status = Annotated[str, Choice(STATUSES)]
ParametersOfJob = Annotated[dict, Parameters()]
ObjectOfJson = Annotated[dict, Json(dict)]
ListOfJson = Annotated[list, Json(list)]
ObjectOrList = Annotated[list, Json(list, dict)]
Callback = Annotated[dict, NameOrObject()]
PageOfMoments = Annotated[tuple, MomentAndName()]
PageOfNumbers = Annotated[tuple, NumberAndName()]
