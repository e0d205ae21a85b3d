"""Work that must never fail the work it tells of: notifications, and what else a site declares to be so."""

import logging
from collections.abc import Callable

import frappe

from dartwing_jobs.engine import database
from dartwing_jobs.engine.intake import payload
from dartwing_jobs.engine.observing import reports
from dartwing_jobs.engine.rules import policies

SAVEPOINT = "dartwing_best_effort"


def is_best_effort(job_type) -> bool:
	return bool(policies.category_of(job_type).best_effort)


def attempt(submit: Callable, job_type: str):
	"""What `submit` returns; None when something refuses it: that is logged, and leaves no other trace."""
	messages = len(frappe.local.message_log)
	frappe.db.savepoint(SAVEPOINT)
	try:
		submitted = submit()
	except Exception as error:
		# then the caller's own work is gone, too, and silence would lose it
		if database.has_lost_transaction(error):
			raise
		frappe.db.rollback(save_point=SAVEPOINT)
		del frappe.local.message_log[messages:]
		_tell(job_type, error)
		return None
	frappe.db.release_savepoint(SAVEPOINT)
	return submitted


def _tell(job_type: str, error: Exception) -> None:
	about = {**payload.here(), "job_type": job_type}
	reports.to_log(f"{job_type} could not be submitted", error, logging.WARNING, about)
	reports.to_error_log(f"{job_type} could not be submitted", error)
