"""Tells errors that may go away from those that will not, by class and by HTTP status."""

from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

import frappe

from dartwing_jobs.errors import PermanentError, TransientError

# validation errors by their base class, but about a moment and not about the input
CONFLICTS = (frappe.TimestampMismatchError, frappe.DocumentLockedError)
PERMANENT = (
	PermanentError,
	frappe.ValidationError,
	frappe.PermissionError,
	frappe.AuthenticationError,
	frappe.DoesNotExistError,
	frappe.DuplicateEntryError,
)
# statuses below 500 with which a server asks to come back later
COME_BACK_LATER = frozenset({408, 425, 429})


def is_transient(error: BaseException) -> bool:
	"""What nobody classified may go away: a retry is cheap, a lost job is not."""
	if isinstance(error, (TransientError, *CONFLICTS)):
		return True
	status = http_status(error)
	if status:
		return status >= 500 or status in COME_BACK_LATER
	return not isinstance(error, PERMANENT)


def http_status(error: BaseException) -> int | None:
	"""The status of an HTTP error, of our side (Frappe's classes) or of a server that we asked."""
	answer = getattr(error, "response", None)
	for status in (getattr(answer, "status_code", None), getattr(error, "code", None)):
		if isinstance(status, int):
			return status
	own = getattr(error, "http_status_code", None)
	return own if own and (own >= 500 or own in COME_BACK_LATER) else None


def retry_after(error: BaseException, now: datetime | None = None) -> float | None:
	"""Seconds that the error itself asks to wait: its own `retry_after`, or the header of an HTTP answer."""
	own = getattr(error, "retry_after", None)
	if own is not None:
		return max(0.0, float(own))
	headers = (
		getattr(getattr(error, "response", None), "headers", None) or getattr(error, "headers", None) or {}
	)
	return _header_seconds(headers.get("Retry-After"), now or datetime.now(timezone.utc))


def _header_seconds(value: str | None, now: datetime) -> float | None:
	if not value:
		return None
	try:
		return max(0.0, float(value))
	except ValueError:
		pass
	try:
		moment = parsedate_to_datetime(value)
	except ValueError:
		return None
	return max(0.0, (moment - now).total_seconds())
