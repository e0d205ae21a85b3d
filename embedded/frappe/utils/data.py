"""Conversions between what people, JSON and the database write for the same value."""

import datetime
import re
from contextlib import suppress
from urllib.parse import quote, urljoin, urlsplit
from zoneinfo import ZoneInfo

import frappe
from dateutil import parser

DATE_FORMAT, DATETIME_FORMAT = "%Y-%m-%d", "%Y-%m-%d %H:%M:%S.%f"


def cint(s, default: int = 0) -> int:
	for convert in (int, float):
		with suppress(TypeError, ValueError, OverflowError):
			return int(convert(s))
	return default


def flt(s, precision: int | None = None) -> float:
	with suppress(TypeError, ValueError):
		number = float(s.replace(",", "") if isinstance(s, str) else s)
		return number if precision is None else round(number, precision)
	return 0.0


def cstr(s) -> str:
	return "" if s is None else s.decode() if isinstance(s, bytes) else str(s)


def cast(fieldtype: str, value):
	kind = frappe.db.type_map[fieldtype][0]
	if kind in ("date", "timestamp"):
		return (getdate if kind == "date" else get_datetime)(value or "0001-01-01")
	return {"decimal": flt, "bigint": cint, "smallint": cint}.get(kind, cstr)(value)


def get_system_timezone() -> str:
	# a site that is being made has no settings yet
	settings = {} if frappe.flags.in_install_db else frappe.get_cached_doc("System Settings")
	return settings.get("time_zone") or "Asia/Kolkata"


def now_datetime() -> datetime.datetime:
	return datetime.datetime.now(ZoneInfo(get_system_timezone())).replace(tzinfo=None)


def now() -> str:
	return now_datetime().strftime(DATETIME_FORMAT)


def nowdate() -> str:
	return now_datetime().strftime(DATE_FORMAT)


def getdate(string_date=None) -> datetime.date | None:
	if isinstance(string_date, datetime.date) and not isinstance(string_date, datetime.datetime):
		return string_date
	try:
		moment = get_datetime(string_date or None)
	except parser.ParserError:
		frappe.throw(frappe._("{0} is not a date").format(string_date))
	return moment and moment.date()


def get_datetime(datetime_str=None) -> datetime.datetime | None:
	if datetime_str is None:
		return now_datetime()
	if isinstance(datetime_str, datetime.date):
		is_day = not isinstance(datetime_str, datetime.datetime)
		return datetime.datetime.combine(datetime_str, datetime.time()) if is_day else datetime_str
	return parser.parse(datetime_str) if datetime_str and not datetime_str.startswith("0000-00-00") else None


def get_url(uri: str) -> str:
	host, port = frappe.conf.host_name or f"http://{frappe.local.site}", frappe.conf.webserver_port
	return urljoin(host if urlsplit(host).port or not port else f"{host}:{port}", uri)


def get_url_to_form(doctype: str, name: str) -> str:
	slug, quoted = doctype.lower().replace(" ", "-"), quote(name, safe="~@#$&()*!+=:;,.?/'")
	return get_url(f"/app/{slug}/{quoted}")


def sanitize_html(text):
	"""Escapes whatever looks like a tag; JSON stays as it is."""
	if not isinstance(text, str) or not re.search(r"<[/!]?[a-zA-Z]|<!--", text):
		return text
	with suppress(ValueError):
		frappe.parse_json(text)
		return text
	return text.replace("<", "&lt;").replace(">", "&gt;")
