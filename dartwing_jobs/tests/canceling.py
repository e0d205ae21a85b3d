"""Handlers that are canceled while they run, and then end in another way, for tests."""

import frappe

from dartwing_jobs import PermanentError, Snooze, TransientError, job_handler
from dartwing_jobs.engine import control, database
from dartwing_jobs.errors import JobTimeout, WorkerStopping

runs: list[str] = []


def cancel_meanwhile(context) -> None:
	"""As a person does, on another connection."""
	user = frappe.session.user
	with database.beside():
		frappe.set_user("Administrator")
		control.cancel(context.job_name, "not needed any more")
		frappe.db.commit()
	frappe.set_user(user)


def snooze() -> Snooze:
	return Snooze(60)


def fail() -> None:
	raise TransientError("The service is busy")


def fail_at_once() -> None:
	raise TransientError("The service is busy", retry_after=0)


def fail_for_good() -> None:
	raise PermanentError("No such thing")


def time_out() -> None:
	raise JobTimeout("The job ran longer than its 1 seconds")


def hand_back() -> None:
	raise WorkerStopping("The worker was stopped")


ENDS = {end.__name__: end for end in (snooze, fail, fail_at_once, fail_for_good, time_out, hand_back)}


@job_handler
def end_as_told(parameters: dict, context):
	"""Is canceled in its first attempt, if it is to be."""
	runs.append(context.job_name)
	if parameters.get("canceled"):
		cancel_meanwhile(context)
	return ENDS[parameters["end"]]()
