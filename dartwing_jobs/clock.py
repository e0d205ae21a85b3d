"""The only reader of wall time, and of times that people write. Callers read it once and pass `now` on."""

import time
from datetime import datetime
from zoneinfo import ZoneInfo

import frappe
from frappe.utils import get_datetime, get_system_timezone

REMEMBER_SECONDS = 60
_zones: dict[str, tuple[float, ZoneInfo]] = {}


def now() -> datetime:
	"""The site's local time, naive, as Frappe stores it: for people."""
	return datetime.now(_zone()).replace(tzinfo=None)


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


def as_site_time(moment: datetime) -> datetime:
	if moment.tzinfo is None:
		return moment
	return moment.astimezone(ZoneInfo(get_system_timezone())).replace(tzinfo=None)
