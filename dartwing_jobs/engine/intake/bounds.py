"""Bounds: what a user may ask for a job, and who may ask for more.

Job Types raise them for their own jobs. System Managers and the engine itself are not bound: what a handler
submits, what a schedule makes, and what is tried again as it was.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import frappe
from frappe import _
from frappe.utils import cint

from dartwing_jobs import settings, tenancy
from dartwing_jobs.engine.intake import payload
from dartwing_jobs.engine.rules import priorities
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.messages import throw

BOUNDED = ("timeout_seconds", "max_retries", "priority")
_is_lifted: ContextVar[bool] = ContextVar("bounds_are_lifted", default=False)


@contextmanager
def lifted() -> Iterator[None]:
	"""Inside, jobs get what was granted before, whichever user acts now."""
	token = _is_lifted.set(True)
	try:
		yield
	finally:
		_is_lifted.reset(token)


def check(job, job_type, fieldnames: tuple[str, ...] = BOUNDED) -> None:
	"""Raises when a job is to have more than its submitter may give it."""
	exceeded = [_CHECKS[fieldname](job, job_type) for fieldname in fieldnames]
	for refusal in filter(None, exceeded):
		if not _is_unbound():
			throw(refusal, InvalidJobError)


def check_critical(priority: str, job_type) -> None:
	"""The same for a priority that jobs will get later."""
	check(frappe._dict(priority=priority), job_type, ("priority",))


def check_number(jobs: int) -> None:
	"""Raises when a request makes more jobs than its user may make at once."""
	user = frappe.session.user
	if tenancy.is_unrestricted(user):
		return
	most = settings.max_jobs_per_request(is_admin=_is_admin(user))
	if jobs > most:
		message = _("{0} jobs are too many for one request; at most {1} are allowed. Send several requests.")
		throw(message.format(jobs, most), InvalidJobError)


def _long_timeout(job, job_type) -> str | None:
	own = cint(job_type.default_timeout)
	if cint(job.timeout_seconds) <= own:
		return None
	most = max(own, settings.max_timeout_seconds())
	message = _("Timeout must be at most {0} seconds for Job Type {1}, not {2}.")
	is_more = cint(job.timeout_seconds) > most
	return message.format(most, job_type.name, job.timeout_seconds) if is_more else None


def _many_retries(job, job_type) -> str | None:
	own = cint(job_type.max_retries)
	if cint(job.max_retries) <= own:
		return None
	most = max(own, settings.max_retries_limit())
	message = _("Max Retries must be at most {0} for Job Type {1}, not {2}.")
	is_more = cint(job.max_retries) > most
	return message.format(most, job_type.name, job.max_retries) if is_more else None


def _critical(job, job_type) -> str | None:
	if job.priority != priorities.CRITICAL or job_type.allow_critical:
		return None
	if job_type.default_priority == priorities.CRITICAL:
		return None
	if _is_admin(frappe.session.user) and not settings.reserves_critical():
		return None
	message = _("Priority {0} is not for you with Job Type {1}: use {2}, or have the Job Type allow it.")
	return message.format(priorities.CRITICAL, job_type.name, priorities.HIGH)


_CHECKS = {"timeout_seconds": _long_timeout, "max_retries": _many_retries, "priority": _critical}


def _is_unbound() -> bool:
	is_engine = _is_lifted.get() or payload.current_job() is not None
	return is_engine or tenancy.is_unrestricted(frappe.session.user)


def _is_admin(user: str) -> bool:
	return tenancy.ADMIN_ROLE in frappe.get_roles(user)
