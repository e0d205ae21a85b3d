"""Tells errors that may go away from those that will not, by class and by HTTP status."""

import asyncio
import concurrent.futures
import http.client
import math
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from urllib.error import HTTPError

import frappe
import redis
from werkzeug.exceptions import HTTPException

from dartwing_jobs.engine import database
from dartwing_jobs.errors import PermanentError, TransientError, WorkerLost

# it may go away, it will not, and: neither its class nor a status says
TRANSIENT, PERMANENT, UNKNOWN = "Transient", "Permanent", "Unknown"
# validation errors by their base class, but about a moment and not about the input
CONFLICTS = (frappe.TimestampMismatchError, frappe.DocumentLockedError)
ABOUT_THE_INPUT = (
	PermanentError,
	frappe.ValidationError,
	frappe.PermissionError,
	frappe.AuthenticationError,
	frappe.DoesNotExistError,
	frappe.DuplicateEntryError,
)
# the network, another process, or what the machine was short of
OF_THE_MOMENT = (
	WorkerLost,
	OSError,
	MemoryError,
	http.client.HTTPException,
	asyncio.TimeoutError,
	concurrent.futures.TimeoutError,
	subprocess.TimeoutExpired,
	redis.ConnectionError,
	redis.TimeoutError,
)
# the same of libraries that may be there: a class counts once its module was loaded
OF_THE_MOMENT_ELSEWHERE = {
	"urllib3.exceptions": "HTTPError",
	"httpx": "TransportError",
	"aiohttp": "ClientConnectionError",
}
# among the classes above, but about an address or a file that the handler named
OF_THE_HANDLER = (
	ValueError,
	http.client.InvalidURL,
	FileNotFoundError,
	FileExistsError,
	IsADirectoryError,
	NotADirectoryError,
	PermissionError,
)
# errors whose `code` is an HTTP status; that of others is one if it is an HTTPStatus
HTTP_ERRORS = (HTTPError, HTTPException)
# statuses below 500 with which a server asks to come back later
COME_BACK_LATER = frozenset({408, 425, 429})
# whatever a server asks for
LONGEST_WAIT_SECONDS = 366.0 * 24 * 3600


def kind_of(error: BaseException) -> str:
	"""Whether an error may go away. Unknown is, most of all, a bug of the handler."""
	if isinstance(error, (TransientError, *CONFLICTS)):
		return TRANSIENT
	if status := http_status(error):
		return TRANSIENT if status >= 500 or status in COME_BACK_LATER else PERMANENT
	if isinstance(error, ABOUT_THE_INPUT):
		return PERMANENT
	return TRANSIENT if _is_of_the_moment(error) else UNKNOWN


def _is_of_the_moment(error: BaseException) -> bool:
	if isinstance(error, OF_THE_HANDLER):
		return False
	return isinstance(error, (*OF_THE_MOMENT, *_loaded_classes())) or database.may_go_away(error)


def _loaded_classes() -> list[type]:
	loaded = {name: sys.modules.get(name) for name in OF_THE_MOMENT_ELSEWHERE}
	return [getattr(module, OF_THE_MOMENT_ELSEWHERE[name]) for name, module in loaded.items() if module]


def http_status(error: BaseException) -> int | None:
	"""The status of an HTTP error, of our side (Frappe's classes) or of a server that we asked."""
	for status in (_asked(_asked(error, "response"), "status_code"), _code(error)):
		if _is_status(status):
			return int(status)
	own = _asked(error, "http_status_code")
	return own if isinstance(own, int) and (own >= 500 or own in COME_BACK_LATER) else None


def _code(error: BaseException):
	"""The `code` of an error whose class says that it is an HTTP status; other libraries count otherwise."""
	code = _asked(error, "code")
	return code if isinstance(error, HTTP_ERRORS) or isinstance(code, HTTPStatus) else None


def _is_status(value) -> bool:
	return isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599


def retry_after(error: BaseException, now: datetime | None = None) -> float | None:
	"""Seconds that the error itself asks to wait: its own `retry_after`, or the header of an HTTP answer."""
	own = _asked(error, "retry_after")
	if own is not None:
		return _seconds(own)
	answer, itself = _asked(_asked(error, "response"), "headers"), _asked(error, "headers")
	return _header_seconds(_header(answer) or _header(itself), now or datetime.now(timezone.utc))


def _asked(thing, name: str):
	"""What a foreign object says of itself; None when it says nothing, or fails at it."""
	try:
		return getattr(thing, name, None)
	except BaseException:  # whatever it raises, it is not the drain's
		return None


def _header(headers) -> str | None:
	"""The classes of headers have nothing in common but `get`, and some have not even that."""
	try:
		value = headers.get("Retry-After")
	except Exception:
		return None
	return value if isinstance(value, str) else None


def _header_seconds(value: str | None, now: datetime) -> float | None:
	if not value:
		return None
	seconds = _seconds(value)
	if seconds is not None:
		return seconds
	try:
		moment = parsedate_to_datetime(value)
		return _seconds((moment - now).total_seconds())
	except (TypeError, ValueError, OverflowError):  # no date, one without a zone, or none that there is
		return None


def _seconds(value) -> float | None:
	"""A number of seconds that a job can wait; None for what is none: then the usual wait follows."""
	try:
		seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
	except Exception:  # a foreign class makes a number of itself, and may fail at it in any way
		return None
	return min(max(0.0, seconds), LONGEST_WAIT_SECONDS) if math.isfinite(seconds) else None
