"""Errors that neither their class nor an HTTP status explains: most are bugs, which a retry does not mend."""

import asyncio
import errno
import http.client
import io
import subprocess
from email.message import Message
from urllib.error import HTTPError, URLError

import frappe
import pytest
import redis
import requests

from dartwing_jobs import PermanentError, TransientError, job_handler, submit
from dartwing_jobs.api import jobs as api
from dartwing_jobs.engine.handling import declared, handlers
from dartwing_jobs.engine.rules import classification
from dartwing_jobs.errors import WorkerLost
from dartwing_jobs.testing import run_job
from dartwing_jobs.tests.test_story import check
from dartwing_jobs.tests.world import make_job_type, make_queue

BUGS = {"KeyError": KeyError, "TypeError": TypeError, "AttributeError": AttributeError}


@job_handler
def fail_as_told(parameters: dict, context) -> None:
	"""Raises, in each attempt, what stands in the list; the last word of it for ever."""
	words = parameters["errors"]
	word = words[min(context.attempt, len(words)) - 1]
	if word == "busy":
		raise TransientError("The service is busy")
	if word != "done":
		raise BUGS[word]("customer")


def submitted(world, errors: list[str], **fields) -> str:
	job_type = make_job_type(handler_method=f"{__name__}.fail_as_told", **fields)
	job = submit(job_type.name, {"errors": errors}, world.a, job_queue=make_queue())
	frappe.db.commit()
	return job.name


def run_to_its_end(job: str, most: int = 10):
	"""Runs a job, or its successors, until nothing is left to run; returns the last of them."""
	for _attempt in range(most):
		run_job(job)
		job = frappe.db.get_value("Background Job", {"retry_of": job}) or job
		if frappe.db.get_value("Background Job", job, "status") not in ("Pending", "Queued"):
			break
	return frappe.get_doc("Background Job", job)


@pytest.mark.parametrize("bug", list(BUGS))
def test_a_bug_is_tried_once_more_and_not_five_times(world, bug):
	job = run_to_its_end(submitted(world, [bug], max_retries=5))
	assert (job.status, job.attempt, job.retry_count) == ("Dead Letter", 2, 1)
	assert (job.error_type, job.error_class) == ("Permanent", f"builtins.{bug}")
	check(job.name, status="Dead Letter", error_class=f"builtins.{bug}")


@pytest.mark.parametrize(
	("mode", "attempts", "kind"),
	[("Never", 1, "Permanent"), ("Once", 2, "Permanent"), ("As Transient", 4, "Transient")],
)
def test_a_type_says_how_often(world, mode, attempts, kind):
	job = run_to_its_end(submitted(world, ["KeyError"], retry_unknown_errors=mode, max_retries=3))
	assert (job.status, job.attempt, job.error_type) == ("Dead Letter", attempts, kind)
	runs = frappe.get_all("Job Run", {"background_job": job.name}, ["error_class", "traceback"])
	assert [run.error_class for run in runs] == ["builtins.KeyError"] * attempts
	assert all("fail_as_told" in run.traceback for run in runs)


def test_never_more_often_than_max_retries(world):
	job = run_to_its_end(submitted(world, ["KeyError"], max_retries=0))
	assert (job.status, job.attempt) == ("Dead Letter", 1)


def test_retries_for_other_reasons_do_not_count_as_the_one(world):
	job = run_to_its_end(submitted(world, ["busy", "busy", "KeyError", "busy", "TypeError"], max_retries=9))
	assert (job.status, job.attempt, job.error_class) == ("Dead Letter", 5, "builtins.TypeError")


def test_what_succeeds_the_second_time_keeps_no_error(world):
	job = run_to_its_end(submitted(world, ["KeyError", "done"]))
	assert (job.status, job.attempt) == ("Completed", 2)
	assert (job.error_class, job.error_message, job.error_type) == (None, None, None)


def test_a_chain_of_new_jobs_counts_as_one(world):
	first = submitted(world, ["KeyError"], retry_mode="New Job", max_retries=5)
	last = run_to_its_end(first)
	assert (last.status, last.retry_of, last.retry_count) == ("Dead Letter", first, 1)


def test_the_log_says_why_it_was_not_tried_again(world):
	job = run_to_its_end(submitted(world, ["KeyError"]))
	events = {row["event"]: row for row in api.history(job.name)}
	assert events["job.deadlettered"]["details"]["error_class"] == "builtins.KeyError"
	assert events["job.deadlettered"]["details"]["not_retried"] == "Retry Unknown Errors is Once"


def test_the_class_of_an_error_is_shown(world):
	job = run_to_its_end(submitted(world, ["KeyError"]))
	assert api.status(job.name)["error_class"] == "builtins.KeyError"
	field = frappe.get_meta("Background Job").get_field("error_class")
	assert not field.hidden and field.read_only


def http_error(status: int) -> HTTPError:
	return HTTPError("http://example.com", status, "as told", Message(), io.BytesIO())


@pytest.mark.parametrize(
	"error",
	[
		TransientError("busy"),
		WorkerLost("gone"),
		frappe.TimestampMismatchError("edited"),
		frappe.QueryDeadlockError("deadlock"),
		http_error(503),
		http_error(429),
		URLError("refused"),
		http.client.RemoteDisconnected("closed"),
		ConnectionResetError("reset"),
		TimeoutError("slow"),
		asyncio.TimeoutError("slow"),
		subprocess.TimeoutExpired("convert", 60),
		redis.ConnectionError("refused"),
		OSError(errno.ENOSPC, "No space left on device"),
		MemoryError(),
	],
	ids=lambda error: type(error).__name__,
)
def test_what_is_of_the_moment_is_transient(error):
	assert classification.kind_of(error) == "Transient"


@pytest.mark.parametrize(
	"error",
	[
		PermanentError("no"),
		frappe.ValidationError("no"),
		frappe.PermissionError("no"),
		frappe.DoesNotExistError("no"),
		http_error(404),
	],
	ids=lambda error: type(error).__name__,
)
def test_what_is_about_the_input_is_permanent(error):
	assert classification.kind_of(error) == "Permanent"


@pytest.mark.parametrize(
	"error",
	[
		KeyError("customer"),
		KeyError(0),
		TypeError("no"),
		AttributeError("no"),
		ZeroDivisionError("no"),
		ValueError("no"),
		RuntimeError("no"),
		AssertionError("no"),
		NotImplementedError("no"),
		FileNotFoundError(errno.ENOENT, "No such file or directory"),
		io.UnsupportedOperation("not writable"),
		http.client.InvalidURL("no port"),
		subprocess.CalledProcessError(1, "convert"),
	],
	ids=lambda error: type(error).__name__,
)
def test_what_nothing_explains_is_unknown(error):
	assert classification.kind_of(error) == "Unknown"


def test_errors_of_the_library_that_frappe_brings():
	kinds = [
		classification.kind_of(error)
		for error in (
			requests.ConnectionError("refused"),
			requests.ReadTimeout("slow"),
			requests.exceptions.MissingSchema("no scheme"),
		)
	]
	assert kinds == ["Transient", "Transient", "Unknown"]


@pytest.mark.parametrize("statement", ["select no_such_column from `tabUser`", "selct 1"])
def test_wrong_sql_is_a_bug(statement):
	with pytest.raises(Exception) as caught:
		frappe.db.sql(statement)
	frappe.db.rollback()
	assert classification.kind_of(caught.value) == "Unknown"


def test_a_connection_that_was_cut_is_of_the_moment():
	own = "connection_id()" if frappe.db.db_type == "mariadb" else "pg_backend_pid()"
	number = frappe.db.sql(f"select {own}")[0][0]
	beside = frappe.local.db
	frappe.connect()
	try:
		kill = "kill {}" if frappe.db.db_type == "mariadb" else "select pg_terminate_backend({})"
		frappe.db.sql(kill.format(int(number)))
		frappe.db.close()
	finally:
		frappe.local.db = beside
	with pytest.raises(Exception) as caught:
		frappe.db.sql("select 1")
	frappe.db.close()
	frappe.connect()
	assert classification.kind_of(caught.value) == "Transient"


def test_a_handler_declares_it(monkeypatch):
	@job_handler(job_type="test_declares_unknown_errors", retry_unknown_errors="Never")
	def handler(parameters: dict, context) -> None: ...

	fields = declared._as_fields(handlers.declaration_of(handler), handler)
	assert fields["retry_unknown_errors"] == "Never"


def test_other_words_are_refused():
	with pytest.raises(frappe.ValidationError):
		make_job_type(retry_unknown_errors="Sometimes")
