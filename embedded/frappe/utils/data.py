"""Conversions between what people, JSON and the database write for the same value."""

import datetime
import html
import math
import operator
import re
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

import frappe
from dateutil import parser
from dateutil.relativedelta import relativedelta

DATE_FORMAT, TIME_FORMAT = "%Y-%m-%d", "%H:%M:%S.%f"
DATETIME_FORMAT = f"{DATE_FORMAT} {TIME_FORMAT}"
TEXT_TYPES = ("Data", "Text", "Small Text", "Long Text", "Text Editor", "Select", "Link", "Dynamic Link")
UTC = datetime.UTC

TAG = re.compile(r"<[/!]?[a-zA-Z][^<>]*>|<!--")
HARMLESS = re.compile(
	r"</?(?:a|b|i|u|s|p|br|hr|em|strong|code|pre|ul|ol|li|div|span|h[1-6]|table|thead|tbody|tr|td|th"
	r"|blockquote|small|sub|sup|dl|dt|dd|kbd|abbr|details|summary) ?/?>",
	re.IGNORECASE,
)
OPERATORS = {
	"=": operator.eq,
	"!=": operator.ne,
	">": operator.gt,
	"<": operator.lt,
	">=": operator.ge,
	"<=": operator.le,
	"^": lambda a, b: str(a).startswith(str(b)),
	"in": lambda a, b: a in b,
	"not in": lambda a, b: a not in b,
	"None": lambda a, b: a is None,
	"not None": lambda a, b: a is not None,
}


def compare(val1: Any, condition: str, val2: Any, fieldtype: str | None = None) -> bool:
	if fieldtype:
		val1, val2 = cast(fieldtype, val1), cast(fieldtype, val2)
	return condition in OPERATORS and OPERATORS[condition](val1, val2)


def cint(s: Any, default: int = 0) -> int:
	try:
		return int(s)
	except Exception:
		try:
			return int(float(s))
		except Exception:
			return default


def flt(s: Any, precision: int | None = None) -> float:
	try:
		number = float(s.replace(",", "") if isinstance(s, str) else s)
	except Exception:
		return 0.0
	return number if precision is None else rounded(number, precision)


def rounded(num: Any, precision: int = 0) -> float:
	factor = 10 ** cint(precision)
	scaled = flt(num) * factor
	whole, part = math.floor(scaled), scaled - math.floor(scaled)
	result = (
		whole + (whole % 2)
		if not precision and part == 0.5
		else math.floor(scaled + 0.5 + 1e-9 * (scaled > 0))
	)
	return result / factor if precision else result


def cstr(s: Any, encoding: str = "utf-8") -> str:
	if s is None:
		return ""
	return s.decode(encoding) if isinstance(s, bytes) else str(s)


def sbool(x: Any) -> Any:
	lowered = x.lower() if isinstance(x, str) else None
	return True if lowered in ("true", "1") else False if lowered in ("false", "0") else x


def cast(fieldtype: str, value: Any = None) -> Any:
	if fieldtype in ("Currency", "Float", "Percent"):
		return flt(value)
	if fieldtype in ("Int", "Check"):
		return cint(sbool(value))
	if fieldtype in TEXT_TYPES:
		return cstr(value)
	if fieldtype == "Date":
		return getdate(value) if value else datetime.date(1, 1, 1)
	if fieldtype == "Datetime":
		return get_datetime(value) if value else datetime.datetime(1, 1, 1)
	return get_timedelta(value) if fieldtype == "Time" else value


def get_system_timezone() -> str:
	return frappe.get_system_settings("time_zone") or "Asia/Kolkata"


def get_datetime_in_timezone(time_zone: str) -> datetime.datetime:
	return datetime.datetime.now(ZoneInfo(time_zone))


def convert_utc_to_system_timezone(utc_timestamp: datetime.datetime) -> datetime.datetime:
	aware = utc_timestamp if utc_timestamp.tzinfo else utc_timestamp.replace(tzinfo=UTC)
	return aware.astimezone(ZoneInfo(get_system_timezone()))


def now_datetime() -> datetime.datetime:
	return get_datetime_in_timezone(get_system_timezone()).replace(tzinfo=None)


def now() -> str:
	return now_datetime().strftime(DATETIME_FORMAT)


def nowdate() -> str:
	return now_datetime().strftime(DATE_FORMAT)


today = nowdate


def nowtime() -> str:
	return now_datetime().strftime(TIME_FORMAT)


def _is_no_date(value: Any) -> bool:
	return not value or str(value).startswith("0000-00-00")


def getdate(string_date: Any = None, parse_day_first: bool = False) -> datetime.date | None:
	if not string_date:
		return now_datetime().date()
	if isinstance(string_date, datetime.datetime):
		return string_date.date()
	if isinstance(string_date, datetime.date) or _is_no_date(string_date):
		return string_date if isinstance(string_date, datetime.date) else None
	try:
		return parser.parse(string_date, dayfirst=parse_day_first).date()
	except parser.ParserError:
		frappe.throw(frappe._("{0} is not a date").format(string_date))


def get_datetime(datetime_str: Any = None) -> datetime.datetime | None:
	if datetime_str is None:
		return now_datetime()
	if isinstance(datetime_str, datetime.datetime | datetime.timedelta):
		return datetime_str
	if isinstance(datetime_str, datetime.date):
		return datetime.datetime.combine(datetime_str, datetime.time())
	if _is_no_date(datetime_str):
		return None
	try:
		return datetime.datetime.strptime(datetime_str, DATETIME_FORMAT)
	except ValueError:
		return parser.parse(datetime_str)


def get_timestamp(date: Any) -> float:
	return get_datetime(date).timestamp()


def get_time(time_str: Any) -> datetime.time:
	if isinstance(time_str, datetime.datetime):
		return time_str.time()
	if isinstance(time_str, datetime.timedelta):
		return (datetime.datetime.min + time_str).time()
	return time_str if isinstance(time_str, datetime.time) else parser.parse(time_str).time()


def get_timedelta(time: Any = None) -> datetime.timedelta | None:
	if isinstance(time, datetime.timedelta):
		return time
	try:
		t = get_time(time or "0:0:0")
	except (ValueError, OverflowError):
		return None
	return datetime.timedelta(hours=t.hour, minutes=t.minute, seconds=t.second, microseconds=t.microsecond)


def get_datetime_str(datetime_obj: Any) -> str:
	return get_datetime(datetime_obj).strftime(DATETIME_FORMAT)


def get_time_str(timedelta_obj: Any) -> str:
	return str(get_timedelta(timedelta_obj))


def format_datetime(datetime_string: Any, format_string: str | None = None) -> str:
	if format_string:
		raise frappe.NotOfferedError("frappe.utils.format_datetime(format_string=...)")
	return get_datetime(datetime_string).strftime("%d-%m-%Y %H:%M:%S") if datetime_string else ""


def add_to_date(
	date: Any,
	years: int = 0,
	months: int = 0,
	weeks: int = 0,
	days: int = 0,
	hours: int = 0,
	minutes: int = 0,
	seconds: int = 0,
	as_string: bool = False,
	as_datetime: bool = False,
) -> Any:
	date = now_datetime() if date is None else date
	as_datetime = as_datetime or bool(hours)
	if isinstance(date, str):
		as_string, as_datetime = True, as_datetime or " " in date
		date = parser.parse(date)
	amounts = {"years": years, "months": months, "weeks": weeks, "days": days}
	date = date + relativedelta(**amounts, hours=hours, minutes=minutes, seconds=seconds)
	if not as_string:
		return date
	return date.strftime(DATETIME_FORMAT if as_datetime else DATE_FORMAT)


def add_days(date: Any, days: int) -> Any:
	return add_to_date(date, days=days)


def add_months(date: Any, months: int) -> Any:
	return add_to_date(date, months=months)


def add_years(date: Any, years: int) -> Any:
	return add_to_date(date, years=years)


def date_diff(string_ed_date: Any, string_st_date: Any) -> int:
	return (getdate(string_ed_date) - getdate(string_st_date)).days


def time_diff(string_ed_date: Any, string_st_date: Any) -> datetime.timedelta:
	return get_datetime(string_ed_date) - get_datetime(string_st_date)


def time_diff_in_seconds(string_ed_date: Any, string_st_date: Any) -> float:
	return time_diff(string_ed_date, string_st_date).total_seconds()


def strip(val: str, chars: str | None = None) -> str:
	return (val or "").replace("\ufeff", "").replace("\u200b", "").strip(chars)


def is_html(text: Any) -> bool:
	return isinstance(text, str) and bool(re.search(r"<[^>]+>", text))


def strip_html(text: str) -> str:
	return re.sub(r"<[^>]*>", "", text)


def escape_html(text: Any) -> Any:
	return html.escape(text) if isinstance(text, str) else text


def sanitize_html(text: Any, linkify: bool = False) -> Any:
	"""Keeps harmless tags that carry no attributes and escapes all others; JSON stays as it is."""
	if not isinstance(text, str) or not TAG.search(text):
		return text
	try:
		frappe.parse_json(text)
	except ValueError:
		return "".join(_sanitized(part) for part in re.split(f"({TAG.pattern})", text))
	return text


def _sanitized(part: str) -> str:
	if HARMLESS.fullmatch(part):
		return part
	return part.replace("<", "&lt;").replace(">", "&gt;")


def get_url(uri: str | None = None, full_address: bool = False) -> str:
	if uri and uri.startswith(("http://", "https://")):
		return uri
	conf, request = frappe.local.conf, getattr(frappe.local, "request", None)
	host = conf.host_name or conf.hostname or (request.host_url.rstrip("/") if request else frappe.local.site)
	host = host if host.startswith(("http://", "https://")) else f"http://{host}"
	port = conf.http_port or conf.webserver_port
	if port and not re.search(r":\d+$", host):
		host = f"{host}:{port}"
	return host + ("/" + uri.lstrip("/") if uri else "")


get_site_url = get_url


def get_absolute_url(doctype: str, name: str) -> str:
	return f"/app/{quote(doctype.lower().replace(' ', '-'))}/{quote(str(name))}"


def get_url_to_form(doctype: str, name: str) -> str:
	return get_url(get_absolute_url(doctype, name))


def get_url_to_list(doctype: str) -> str:
	return get_url(f"/app/{quote(doctype.lower().replace(' ', '-'))}")


def get_link_to_form(doctype: str, name: str, label: str | None = None) -> str:
	return f'<a href="{get_url_to_form(doctype, name)}">{label or name}</a>'
