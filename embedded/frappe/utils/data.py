"""Conversions between what people, JSON and the database write for the same value."""

import datetime
import re
from contextlib import suppress
from typing import Any
from zoneinfo import ZoneInfo

import frappe
from dateutil import parser
from dateutil.relativedelta import relativedelta

DATE_FORMAT, DATETIME_FORMAT = "%Y-%m-%d", "%Y-%m-%d %H:%M:%S.%f"


def cint(s: Any, default: int = 0) -> int:
	for convert in (int, float):
		with suppress(TypeError, ValueError, OverflowError):
			return int(convert(s))
	return default


def flt(s: Any, precision: int | None = None) -> float:
	with suppress(TypeError, ValueError):
		number = float(s.replace(",", "") if isinstance(s, str) else s)
		return number if precision is None else round(number, precision)
	return 0.0


def cstr(s: Any) -> str:
	return "" if s is None else s.decode() if isinstance(s, bytes) else str(s)


def cast(fieldtype: str, value: Any) -> Any:
	kind = frappe.db.type_map[fieldtype][0]
	if kind in ("date", "timestamp"):
		return (getdate if kind == "date" else get_datetime)(value or "0001-01-01")
	converters = {"varchar": cstr, "text": cstr, "decimal": flt, "bigint": cint, "smallint": cint}
	return converters[kind](value) if kind in converters else value


def get_system_timezone() -> str:
	return frappe.get_system_settings("time_zone") or "Asia/Kolkata"


def convert_utc_to_system_timezone(utc_timestamp: datetime.datetime) -> datetime.datetime:
	aware = utc_timestamp if utc_timestamp.tzinfo else utc_timestamp.replace(tzinfo=datetime.timezone.utc)
	return aware.astimezone(ZoneInfo(get_system_timezone()))


def now_datetime() -> datetime.datetime:
	return datetime.datetime.now(ZoneInfo(get_system_timezone())).replace(tzinfo=None)


def now() -> str:
	return now_datetime().strftime(DATETIME_FORMAT)


def nowdate() -> str:
	return now_datetime().strftime(DATE_FORMAT)


def getdate(string_date: Any = None) -> datetime.date | None:
	if isinstance(string_date, datetime.date) and not isinstance(string_date, datetime.datetime):
		return string_date
	try:
		moment = get_datetime(string_date or None)
	except parser.ParserError:
		frappe.throw(frappe._("{0} is not a date").format(string_date))
	return moment and moment.date()


def get_datetime(datetime_str: Any = None) -> datetime.datetime | None:
	if datetime_str is None:
		return now_datetime()
	if isinstance(datetime_str, datetime.date):
		is_day = not isinstance(datetime_str, datetime.datetime)
		return datetime.datetime.combine(datetime_str, datetime.time()) if is_day else datetime_str
	return parser.parse(datetime_str) if datetime_str and not datetime_str.startswith("0000-00-00") else None


def add_to_date(date: Any, as_string: bool = False, as_datetime: bool = False, **amounts: int) -> Any:
	"""Takes years, months, weeks, days, hours, minutes and seconds."""
	if isinstance(date, str):
		as_string, as_datetime = True, as_datetime or " " in date
	date = (date if isinstance(date, datetime.date) else get_datetime(date)) + relativedelta(**amounts)
	has_time = as_datetime or amounts.get("hours")
	return date.strftime(DATETIME_FORMAT if has_time else DATE_FORMAT) if as_string else date


def add_days(date: Any, days: int) -> Any:
	return add_to_date(date, days=days)


def time_diff_in_seconds(string_ed_date: Any, string_st_date: Any) -> float:
	return (get_datetime(string_ed_date) - get_datetime(string_st_date)).total_seconds()


def strip_html(text: str) -> str:
	return re.sub(r"<[^>]*>", "", text)


def sanitize_html(text: Any) -> Any:
	"""Escapes whatever looks like a tag; JSON stays as it is."""
	if not isinstance(text, str) or not re.search(r"<[/!]?[a-zA-Z]|<!--", text):
		return text
	with suppress(ValueError):
		frappe.parse_json(text)
		return text
	return text.replace("<", "&lt;").replace(">", "&gt;")
