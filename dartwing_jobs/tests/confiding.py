"""Handlers and messages that end in errors which carry secrets, in their words and in their variables."""

import frappe

from dartwing_jobs import PermanentError, job_handler
from dartwing_jobs.engine import outcomes
from dartwing_jobs.engine.observing import reports

# never written in one piece: a traceback shows the lines of the source
SECRET = "-".join(["hunter2", "x9", "Zq7"])
ADDRESS = f"https://ann:{SECRET}@files.example.com/report.csv"


@job_handler
def cannot_be_recorded(parameters: dict, context) -> None:
	"""Fails, and breaks what would write that down, in this process alone."""
	outcomes.failed = _refuse_to_record
	note = {"text": f"password={SECRET}"}
	raise PermanentError(f"The service refused {note}")


def _refuse_to_record(attempt, error: BaseException, *details) -> None:
	words = str(error)
	raise RuntimeError(f"Could not write: {words}")


@job_handler
def leave(parameters: dict, context) -> None:
	raise SystemExit(f"password={SECRET}")


@job_handler
def fail_after_the_commit(parameters: dict, context) -> None:
	frappe.db.after_commit.add(_fail)


def _fail() -> None:
	note = f"password={SECRET}"
	raise ValueError(note)


@job_handler
def refer_to_an_output(parameters: dict, context) -> None:
	context.output_reference = ADDRESS


@reports.masked
def message(kind: str) -> None:
	"""What a message in Redis calls."""
	note = f"password={SECRET}"
	if kind == "exit":
		raise SystemExit(note)
	try:
		_fail()
	except ValueError as error:
		raise RuntimeError(f"Could not go on: {note}") from error
