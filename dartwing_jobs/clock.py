"""The only reader of wall time, and of times that people write. Callers read it once and pass `now` on."""

from datetime import datetime
from zoneinfo import ZoneInfo

from frappe.utils import get_datetime, get_system_timezone, now_datetime


def now() -> datetime:
	"""The site's local time, naive, as Frappe stores it: for people."""
	return now_datetime()


def parse(value) -> datetime | None:
	"""A moment in site time, from text or a datetime, with or without an offset; None if it is neither."""
	try:
		moment = value if isinstance(value, datetime) else get_datetime(value)
		return as_site_time(moment)
	except Exception:  # Frappe and dateutil raise a dozen classes for a date they cannot read
		return None


def as_site_time(moment: datetime) -> datetime:
	if moment.tzinfo is None:
		return moment
	return moment.astimezone(ZoneInfo(get_system_timezone())).replace(tzinfo=None)
