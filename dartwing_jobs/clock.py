"""The only reader of time, and of times that people write. Callers read it once and pass `now` on.

Time is the database's, which all processes share: the clocks of machines differ, and are set. A process
learns it from many of its questions, and counts on in between by a clock that is never set.
"""

import time
from datetime import datetime, timedelta, timezone
from typing import NamedTuple
from zoneinfo import ZoneInfo

import frappe
from frappe.utils import get_datetime, get_system_timezone

REMEMBER_SECONDS = 60
EPOCH = datetime(1970, 1, 1)
MICROSECOND = timedelta(microseconds=1)
SECOND_NS = 1_000_000_000
# goes on while a machine sleeps, where there is such a clock
COUNTING = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_zones: dict[str, tuple[float, ZoneInfo]] = {}
_readings: dict[str, "Reading"] = {}


class Reading(NamedTuple):
	"""What the database's clock said, in microseconds since 1970, and when that was, in nanoseconds."""

	microseconds: int
	counted: int

	def microseconds_now(self) -> int:
		return self.microseconds + (_counted() - self.counted) // 1000

	def now(self) -> datetime:
		return EPOCH + timedelta(microseconds=self.microseconds_now())

	def is_old(self) -> bool:
		return _counted() - self.counted > REMEMBER_SECONDS * SECOND_NS


class Stopwatch:
	"""Counts on from the moment at which it was made, whatever becomes of any clock."""

	def __init__(self):
		utc = utc_now()
		self.reading, self.elapsed = _reading_of(utc), 0
		self.started = site_time_of(utc)

	def now(self) -> datetime:
		"""Site time."""
		self.elapsed = _counted() - self.reading.counted
		return site_time_of(EPOCH + timedelta(microseconds=self.reading.microseconds + self.elapsed // 1000))

	def microseconds(self) -> int:
		"""When it was made, since 1970."""
		return self.reading.microseconds

	def seconds(self) -> float:
		"""Until it was last asked for the time: the two agree, also in the hour that comes twice."""
		return self.elapsed / SECOND_NS


def now() -> datetime:
	"""The site's local time, naive, as Frappe stores it: for people."""
	return site_time_of(utc_now())


def utc_now() -> datetime:
	"""Naive UTC; the database is asked when nothing was heard of its clock for a minute."""
	reading = _readings.get(frappe.local.site)
	if reading is None or reading.is_old():
		_ask_the_database()
	return last_known_utc()


def last_known_utc() -> datetime:
	"""As `utc_now`, but never asks: for what must not wait for a database."""
	reading = _readings.get(frappe.local.site)
	return reading.now() if reading else datetime.now(timezone.utc).replace(tzinfo=None)


def microseconds() -> int:
	"""Since 1970, as last known."""
	reading = _readings.get(frappe.local.site)
	return reading.microseconds_now() if reading else (last_known_utc() - EPOCH) // MICROSECOND


def set_by(utc: datetime, is_certain: bool = False) -> None:
	"""What the database's clock has just said. An answer takes a while: the latest of a minute counts."""
	known = _readings.get(frappe.local.site)
	if is_certain or known is None or known.is_old() or utc > known.now():
		_readings[frappe.local.site] = _reading_of(utc)


def seconds_between(started: datetime, ended: datetime) -> float:
	"""Of two moments of site time, of which the second is the later one: one hour of the year comes twice."""
	began = started.replace(tzinfo=_zone())
	end = ended.replace(tzinfo=_zone(), fold=int(ended < started))
	return max(0.0, (end.astimezone(timezone.utc) - began.astimezone(timezone.utc)).total_seconds())


def _ask_the_database() -> None:
	"""A process that cannot ask goes on with what it knows, and else with the clock of its machine."""
	from dartwing_jobs.engine import database  # it needs the time, too

	try:
		database.tell_time()
	except Exception:
		set_by(last_known_utc())


def _reading_of(utc: datetime) -> Reading:
	return Reading((utc - EPOCH) // MICROSECOND, _counted())


def _counted() -> int:
	return time.clock_gettime_ns(COUNTING)


def site_time_of(utc: datetime) -> datetime:
	"""Site time of an instant, naive UTC."""
	return utc.replace(tzinfo=timezone.utc).astimezone(_zone()).replace(tzinfo=None)


def site_time_of_microseconds(microseconds: int) -> datetime:
	"""Site time of an instant, in microseconds since 1970."""
	return site_time_of(EPOCH + timedelta(microseconds=microseconds))


def _zone() -> ZoneInfo:
	"""The site's time zone, remembered for a minute: each job's clean Frappe would fetch it again."""
	looked_at, zone = _zones.get(frappe.local.site, (0.0, None))
	if zone is None or time.monotonic() - looked_at > REMEMBER_SECONDS:
		zone = ZoneInfo(get_system_timezone())
		_zones[frappe.local.site] = time.monotonic(), zone
	return zone


def parse(value) -> datetime | None:
	"""A moment in site time, from text or a datetime, with or without an offset; None if it is neither."""
	try:
		moment = value if isinstance(value, datetime) else get_datetime(value)
		return as_site_time(moment)
	except Exception:  # Frappe and dateutil raise a dozen classes for a date they cannot read
		return None


def rfc3339(moment: datetime | None) -> str | None:
	"""A moment of site time as programs read it, with its offset."""
	return moment and moment.replace(tzinfo=ZoneInfo(get_system_timezone())).isoformat()


def rfc3339_of_utc(utc: datetime | None) -> str | None:
	"""The same of an instant, naive UTC."""
	return utc and utc.replace(tzinfo=timezone.utc).astimezone(ZoneInfo(get_system_timezone())).isoformat()


def as_utc(moment: datetime) -> datetime:
	"""The instant of a moment, naive UTC; one without an offset is site time."""
	aware = moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(get_system_timezone()))
	return aware.astimezone(timezone.utc).replace(tzinfo=None)


def has_offset(value) -> bool:
	"""Whether a moment, or a text that is one, says by itself which instant it is."""
	try:
		moment = value if isinstance(value, datetime) else get_datetime(value or None)
		return bool(value) and moment.tzinfo is not None
	except Exception:  # as in `parse`
		return False


def as_site_time(moment: datetime) -> datetime:
	if moment.tzinfo is None:
		return moment
	return moment.astimezone(ZoneInfo(get_system_timezone())).replace(tzinfo=None)
