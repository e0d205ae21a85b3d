"""Handlers for fault tests: each leaves an effect, and most meet an accident on their first try."""

import os
import signal
import time
from pathlib import Path

import frappe

from dartwing_jobs.engine.handling.handlers import job_handler
from dartwing_jobs.errors import TransientError
from dartwing_jobs.tests import effects

# longer than any test has patience for
FOREVER = 600


@job_handler
def work(parameters: dict, context) -> None:
	leave_effect(context)


@job_handler
def work_once(parameters: dict, context) -> None:
	"""Its effect has the job's own name: a second one would break the unique key."""
	effects.leave(context.job_name, context.job_name)


@job_handler
def hang_at_first(parameters: dict, context) -> None:
	leave_effect(context)
	context.progress(40)
	if is_first_try(context):
		time.sleep(FOREVER)


@job_handler
def work_for_a_second(parameters: dict, context) -> None:
	leave_effect(context)
	context.progress(40)
	time.sleep(1)


@job_handler
def step_at_first(parameters: dict, context) -> None:
	context.progress(40)
	while is_first_try(context):
		time.sleep(0.05)
		context.checkpoint()
	leave_effect(context)


@job_handler
def oversleep_at_first(parameters: dict, context) -> None:
	"""Says in a file when it has woken up and left its effect."""
	context.progress(40)
	if is_first_try(context):
		time.sleep(1)
		leave_effect(context)
		Path(parameters["woke"]).touch()
	else:
		leave_effect(context)


@job_handler
def lose_the_connection_at_first(parameters: dict, context) -> None:
	"""Tells which connection it has, and uses it until somebody ends it."""
	leave_effect(context)
	question = {"mariadb": "select connection_id()", "postgres": "select pg_backend_pid()"}
	context.progress(40, str(frappe.db.multisql(question)[0][0]))
	while is_first_try(context):
		time.sleep(0.05)


@job_handler
def fail_at_first(parameters: dict, context) -> None:
	leave_effect(context)
	if is_first_try(context):
		raise TransientError("not yet")


@job_handler
def kill_the_process(parameters: dict, context) -> None:
	"""While it holds its job's row, as every attempt does for a moment when it ends."""
	leave_effect(context)
	frappe.db.get_value("Background Job", context.job_name, "name", for_update=True)
	os.kill(os.getpid(), signal.SIGKILL)


@job_handler
def fail_after_the_commit(parameters: dict, context) -> None:
	leave_effect(context)
	frappe.db.after_commit.add(_fail)


def _fail() -> None:
	raise ValueError("too late to matter")


def leave_effect(context) -> None:
	"""No unique key holds a second one back: only the engine does."""
	effects.leave(frappe.generate_hash(length=20), context.job_name)


def is_first_try(context) -> bool:
	"""Attempts that were handed back are not counted, but each has a run."""
	return frappe.db.count("Job Run", {"background_job": context.job_name}) == 1


@job_handler
def leave_marks_at_first(parameters: dict, context) -> None:
	"""Leaves marks outside of the database, ten a second, for as long as its first try is let."""
	context.progress(40)
	is_first = is_first_try(context)
	frappe.db.rollback()
	leave_mark(parameters)
	until = time.monotonic() + parameters.get("seconds", FOREVER)
	while is_first and time.monotonic() < until:
		time.sleep(0.1)
		leave_mark(parameters)


@job_handler
def compute_at_first(parameters: dict, context) -> None:
	"""In C code, which hears no signal of Python and lets no other thread run."""
	context.progress(40)
	if is_first_try(context):
		sum(range(10**12))


@job_handler
def work_after_the_commit(parameters: dict, context) -> None:
	leave_effect(context)
	frappe.db.after_commit.add(lambda: _tell_and_sleep(parameters))


def _tell_and_sleep(parameters: dict) -> None:
	leave_mark(parameters)
	time.sleep(parameters["seconds"])
	leave_mark(parameters)


def leave_mark(parameters: dict) -> None:
	with Path(parameters["marks"]).open("a") as marks:
		marks.write(f"{os.getpid()} {time.monotonic()}\n")
