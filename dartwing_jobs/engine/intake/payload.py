"""The payload contract: each job says who asked for it, in which request, and as a part of what.

It inherits that from the job whose handler submits it, or else takes it from the HTTP request. What the
submitter says wins, except who the actor is.
"""

import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import frappe
from frappe import _

from dartwing_jobs.engine.intake import fingerprints
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.messages import throw

USER, SYSTEM, API_KEY = "user", "system", "api_key"
# texts of the contract, and how long they may be
LENGTHS = {
	"project_id": 140,
	"request_id": 140,
	"correlation_id": 140,
	"traceparent": 140,
	"unique_key": 140,
	"idempotency_key": fingerprints.KEY_LENGTH,
}
NO_REQUEST: Mapping = {}
INHERITED = ("request_id", "correlation_id", "traceparent")
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# W3C Trace Context: version, trace, parent, flags; no version ff, no ids of nothing but zeros
TRACEPARENT = re.compile("(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def fill_in(job) -> None:
	"""Checks what the submitter says, and fills in what was left open."""
	check(job)
	if parent := current_job():
		_inherit(job, parent)
	else:
		_take_from_request(job)
	job.idempotency_key = job.idempotency_key or fingerprints.key_of_its_own(job)


def check(job) -> None:
	"""Raises when a text of the contract cannot be what it claims to be."""
	for fieldname, length in LENGTHS.items():
		if value := job.get(fieldname):
			check_text(value, fieldname, length)
	if job.traceparent and not TRACEPARENT.fullmatch(job.traceparent):
		message = _("traceparent must be as W3C Trace Context has it, not {0}.")
		throw(message.format(job.traceparent), InvalidJobError)


def check_text(value, name: str, length: int) -> None:
	if not isinstance(value, str) or not value.strip():
		throw(_("{0} must be a text that is not empty.").format(name), InvalidJobError)
	if len(value) > length:
		message = _("{0} has {1} characters; at most {2} are allowed.")
		throw(message.format(name, len(value), length), InvalidJobError)
	if CONTROL.search(value):
		throw(_("{0} contains a control character.").format(name), InvalidJobError)


@contextmanager
def running(job) -> Iterator[None]:
	"""Around a handler: what is submitted inside is a part of this job."""
	frappe.local.dartwing_job = job
	try:
		yield
	finally:
		frappe.local.dartwing_job = None


def current_job():
	"""The job whose handler runs here; None outside of handlers."""
	return getattr(frappe.local, "dartwing_job", None)


def here():
	"""The ids of what goes on here: of the job whose handler runs, or of the request; maybe none."""
	if job := current_job():
		return job
	headers = _headers()
	if headers is NO_REQUEST:
		return {}
	known = _request_id(headers)
	return {"request_id": known, "correlation_id": _storable(headers, "X-Correlation-Id") or known}


def request_id() -> str:
	"""The HTTP request's, or one that is made for it (or for a run without any) and kept until it ends."""
	return _request_id(_headers())


def _request_id(headers: Mapping) -> str:
	known = _storable(headers, "X-Request-Id") or getattr(frappe.local, "dartwing_request_id", None)
	if known is None:
		known = frappe.local.dartwing_request_id = str(uuid.uuid4())
	return known


def _inherit(job, parent) -> None:
	for fieldname in INHERITED:
		setattr(job, fieldname, job.get(fieldname) or parent.get(fieldname))
	if parent.organization == job.organization:
		job.project_id = job.project_id or parent.project_id
	job.actor_type, job.actor_id = parent.actor_type, parent.actor_id


def _take_from_request(job) -> None:
	headers, session = _headers(), frappe.local.session
	job.request_id = job.request_id or _request_id(headers)
	job.correlation_id = job.correlation_id or _storable(headers, "X-Correlation-Id") or job.request_id
	job.traceparent = job.traceparent or _trace_in(headers)
	job.actor_type, job.actor_id = _actor_type(headers, session), session.user


def _actor_type(headers: Mapping, session) -> str:
	if headers is NO_REQUEST:
		return SYSTEM if session.user == "Administrator" else USER
	# whoever logs in has a session of its own; whoever shows a key has none, and Frappe puts the name there
	shows_key = bool(_storable(headers, "Authorization")) and session.sid == session.user
	return API_KEY if shows_key else USER


def _trace_in(headers: Mapping) -> str | None:
	given = _storable(headers, "traceparent")
	return given if given and TRACEPARENT.fullmatch(given) else None


def _storable(headers: Mapping, name: str) -> str | None:
	"""A header that can be stored; others are left out, as if nobody had sent them."""
	value = headers.get(name)
	is_storable = value and value.strip() and not CONTROL.search(value)
	return value[: LENGTHS["request_id"]] if is_storable else None


def _headers() -> Mapping:
	request = getattr(frappe.local, "request", None)
	# tests of apps put empty things there
	return NO_REQUEST if request is None else (request.headers or {})
