"""Handlers for tests of groups."""

import os
import signal

import frappe

from dartwing_jobs.engine.handling.handlers import job_handler
from dartwing_jobs.errors import TransientError


@job_handler
def work(parameters: dict, context) -> dict:
	return parameters


@job_handler
def work_at_the_second_try(parameters: dict, context) -> None:
	if not frappe.db.get_value("Background Job", context.job_name, "retry_count"):
		raise TransientError("not yet")


@job_handler
def die_after_the_commit(parameters: dict, context) -> None:
	"""Its process is gone as soon as its end is committed, before anybody can look at its group."""
	frappe.db.after_commit.add(lambda: os.kill(os.getpid(), signal.SIGKILL))


@job_handler
def stop_when_asked(parameters: dict, context) -> None:
	context.checkpoint()


@job_handler
def refuse_the_commit(parameters: dict, context) -> None:
	def refuse() -> None:
		raise frappe.ValidationError("refused at the commit")

	frappe.db.before_commit.add(refuse)
