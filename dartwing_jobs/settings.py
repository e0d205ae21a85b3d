"""Reads Job Engine Settings; a value that was never saved is its field's default."""

import frappe
from frappe.utils import cint

DOCTYPE = "Job Engine Settings"


def is_online() -> bool:
	return bool(_number("online"))


def offline_reason() -> str | None:
	return frappe.get_cached_doc(DOCTYPE).offline_reason


def max_parameter_bytes() -> int:
	return _number("max_parameter_bytes")


def max_timeout_seconds() -> int:
	"""The longest timeout that users may give a job."""
	return _positive("max_timeout_seconds")


def max_retries_limit() -> int:
	"""The most retries that users may give a job."""
	return _positive("max_retries_limit")


def max_jobs_per_request(is_admin: bool) -> int:
	"""How many jobs a user may submit at once over HTTP."""
	return _positive("max_jobs_per_admin_request" if is_admin else "max_jobs_per_request")


def reserves_critical() -> bool:
	"""Whether the priority Critical is not even for Dartwing Admins."""
	return bool(_number("reserve_critical"))


def max_snoozes() -> int:
	"""How often in a row a job may snooze, unless its type says otherwise."""
	return _positive("max_snoozes")


def max_retry_after_seconds() -> int:
	"""The longest wait before a retry that an error, or the server behind it, may ask for."""
	return _positive("max_retry_after_seconds")


def lease_seconds() -> int:
	"""How long a worker that says nothing keeps its job."""
	return _positive("lease_seconds")


def linger_seconds() -> int:
	"""How long a worker that ran dry waits for more."""
	return _positive("linger_seconds")


def slice_seconds() -> int:
	"""How long a worker works on before it looks at its other queues."""
	return _positive("slice_seconds")


def retention_days() -> int:
	return _number("retention_days")


def keeps_runs() -> bool:
	return bool(_number("keep_runs"))


def missed_after_seconds() -> int:
	"""How late a fire may be and still be on time."""
	return _positive("missed_after_seconds")


def most_missed_fires() -> int:
	"""How many missed fires of one schedule are caught up at most."""
	return _positive("most_missed_fires")


def disables_broken_schedules() -> bool:
	return bool(_number("disable_broken_schedules"))


def alert_webhook_url() -> str | None:
	return frappe.get_cached_doc(DOCTYPE).get("alert_webhook_url") or None


def _number(fieldname: str) -> int:
	value = frappe.get_cached_doc(DOCTYPE).get(fieldname)
	return _default(fieldname) if value is None else cint(value)


def _positive(fieldname: str) -> int:
	"""Settings that were saved before a field existed read as 0 in it."""
	return _number(fieldname) or _default(fieldname)


def _default(fieldname: str) -> int:
	return cint(frappe.get_meta(DOCTYPE).get_field(fieldname).default)
