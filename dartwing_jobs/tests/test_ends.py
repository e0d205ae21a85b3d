"""Every end can be written: what a handler says is cleaned, what it costs is bounded, whatever it raises."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import frappe
import pytest

from dartwing_jobs import submit
from dartwing_jobs.engine import database
from dartwing_jobs.engine.handling import outputs
from dartwing_jobs.testing import run_job
from dartwing_jobs.tests import effects, odd_ends, workers
from dartwing_jobs.tests.world import make_job_type

HANDLERS = "dartwing_jobs.tests.odd_ends"


@pytest.fixture(scope="module", autouse=True)
def table(site):
	effects.create_table()
	yield
	effects.drop_table()


@pytest.fixture(autouse=True)
def frappe_is_there(site):
	"""A handler of these may have taken it away."""
	yield
	if getattr(frappe.local, "site", None) != os.environ["SITE"] or not frappe.local.db:
		frappe.init(os.environ["SITE"], force=True)
		frappe.connect()


def submitted(world, handler: str, parameters: dict | None = None, **fields) -> str:
	fields = {"max_retries": 3, "backoff_base_seconds": 5, "backoff_cap_seconds": 5, **fields}
	job_type = make_job_type(handler_method=f"{HANDLERS}.{handler}", **fields).name
	job = submit(job_type, parameters, world.a)
	frappe.db.commit()
	return job.name


def run(world, handler: str, parameters: dict | None = None, **fields):
	job_name = submitted(world, handler, parameters, **fields)
	done = run_job(job_name)
	frappe.set_user("Administrator")
	return done


def last_run(job_name: str):
	return frappe.get_last_doc("Job Run", {"background_job": job_name})


def events(job_name: str) -> list[tuple]:
	rows = frappe.get_all(
		"Job Execution Log", {"background_job": job_name}, ["event", "message"], order_by="timestamp, name"
	)
	return [(row.event, row.message) for row in rows]


@pytest.mark.parametrize(
	("error", "status", "message"),
	[
		("permanent_half", "Dead Letter", "caf?.csv"),
		("permanent_nul", "Dead Letter", "bad \ufffd byte"),
		("transient_half", "Queued", "caf?.csv"),
		("transient_nul", "Queued", "bad \ufffd byte"),
		("mute", "Dead Letter", "Mute (its text cannot be read)"),
		("mute_for_a_moment", "Queued", "MuteForAMoment (its text cannot be read)"),
		("prickly", "Dead Letter", "Prickly"),
		("leaving", "Dead Letter", "leave me alone"),
		("named_oddly", "Dead Letter", "odd"),
		("exit", "Queued", "1"),
		("interrupt", "Queued", "KeyboardInterrupt"),
		("generator_exit", "Queued", "GeneratorExit"),
		("cancelled", "Queued", "CancelledError"),
	],
)
def test_whatever_a_handler_raises_is_recorded_as_what_it_is(world, error, status, message):
	job = run(world, "fail_as", {"error": error})
	assert (job.status, job.error_message) == (status, message)
	assert (job.attempt, job.retry_count) == (1, 1 if status == "Queued" else 0)
	run_row = last_run(job.name)
	assert (run_row.status, run_row.error_message) == ("Failed", message)
	assert run_row.traceback
	assert effects.left_by(job.name) == []


def test_a_reason_to_stop_is_cleaned(world):
	job = run(world, "fail_as", {"error": "stopping_half"})
	assert (job.status, job.attempt) == ("Queued", 0)
	assert ("job.interrupted", "caf?.csvbad \ufffd byte") in events(job.name)


def test_a_cancel_by_nobody_is_a_cancel(world):
	job = run(world, "fail_as", {"error": "canceled_by_nobody"})
	assert (job.status, len(job.canceled_by)) == ("Canceled", 140)


def test_texts_of_a_handler_are_cleaned(world):
	job = run(world, "say_everything")
	assert (job.status, job.progress_message) == ("Completed", "caf?.csvbad \ufffd byte")
	assert job.output_reference == "caf?.csvbad \ufffd byte"
	assert ("job.note", "caf?.csvbad \ufffd byte") in events(job.name)


@pytest.mark.parametrize("wait", odd_ends.WAITS)
def test_no_wait_is_too_long_to_be_written(world, wait):
	job = run(world, "ask_to_wait", {"wait": wait})
	assert (job.status, job.error_message) == ("Queued", "slow down")
	waits = job.run_at - database.utc_now()
	expected = 367 * 24 * 3600 if wait in odd_ends.LONG_WAITS else 5
	assert timedelta() < waits <= timedelta(seconds=expected)


@pytest.mark.parametrize(
	("cents", "kept"),
	[
		("7", 7),
		("0.4", 0),
		("2.5e20", 2147483647),
		("Infinity", 2147483647),
		("-1e99", -2147483647),
	],
)
def test_a_cost_fits_into_its_column(world, cents, kept):
	job = run(world, "cost", {"cents": cents})
	assert (job.status, job.cost_cents, last_run(job.name).cost_cents) == ("Completed", kept, kept)


def test_no_number_is_too_large_to_be_a_cost(world):
	assert run(world, "cost_too_much").cost_cents == 2147483647


def test_the_sum_of_costs_fits_into_its_column(world):
	job_name = submitted(world, "cost", {"cents": "2147483647"})
	frappe.db.set_value("Background Job", job_name, "cost_cents", 2147483647, update_modified=False)
	frappe.db.commit()
	assert run_job(job_name).cost_cents == 2147483647


@pytest.mark.parametrize(
	("handler", "parameters", "message"),
	[
		("cost", {"cents": "nan"}, "cost_cents is a number of cents"),
		("cost_a_word", {}, "cost_cents is a number of cents"),
		("refer_too_far", {}, "output_reference has at most 140 characters"),
		("snooze_for_ever", {}, "A snooze lasts from 0 to"),
	],
)
def test_what_means_nothing_is_a_permanent_failure(world, handler, parameters, message):
	job = run(world, handler, parameters)
	assert (job.status, job.error_type, job.attempt) == ("Dead Letter", "Permanent", 1)
	assert message in job.error_message


@pytest.mark.parametrize("fail", [False, True])
def test_a_handler_that_ends_frappe_has_failed_for_good(world, fail):
	job = run(world, "end_frappe", {"fail": fail})
	assert (job.status, job.attempt) == ("Dead Letter", 1)
	assert ("after the end" if fail else "frappe.destroy") in job.error_message
	assert effects.left_by(job.name) == []


def test_a_handler_whose_writes_are_guarded_may_end_frappe_too(world):
	job = run(world, "end_frappe", {"may_not_write": True}, category="Audit Enrichment")
	assert (job.status, job.attempt) == ("Dead Letter", 1)
	assert "frappe.destroy" in job.error_message


def test_a_handler_that_connects_anew_has_failed_for_good(world):
	"""What it wrote before is not part of the transaction in which its end would be recorded."""
	job = run(world, "connect_anew")
	assert (job.status, job.attempt) == ("Dead Letter", 1)
	assert "connected anew" in job.error_message
	assert effects.left_by(job.name) == []


def test_a_handler_that_goes_to_another_site_has_failed_for_good(world):
	job = run(world, "become_another_site")
	assert (job.status, frappe.local.site) == ("Dead Letter", os.environ["SITE"])
	assert "another.example" in job.error_message


@pytest.mark.parametrize("result", odd_ends.RESULTS)
def test_a_result_that_cannot_be_kept_is_a_permanent_failure_in_our_words(world, result):
	job = run(world, "give_back_what_cannot_be_kept", {"result": result})
	assert (job.status, job.error_type, job.attempt) == ("Dead Letter", "Permanent", 1)
	assert "cannot be kept as JSON" in job.error_message
	assert effects.left_by(job.name) == []


@pytest.mark.parametrize("result", odd_ends.RESULTS)
def test_a_step_that_cannot_be_kept_is_a_permanent_failure_in_our_words(world, result):
	job = run(world, "remember_what_cannot_be_kept", {"result": result})
	assert (job.status, job.attempt) == ("Dead Letter", 1)
	assert "cannot be kept as JSON" in job.error_message


def test_a_step_keeps_what_json_lacks_as_text(world):
	job = run(world, "remember_what_json_lacks")
	assert (job.status, job.output) == ("Completed", {"mean": "NaN", "name": "caf?.csv"})


def test_fifty_megabytes_are_cut_in_a_moment_and_without_secrets(world):
	job = run(world, "give_back_fifty_megabytes")
	assert (job.status, job.output["bytes"] > 50_000_000) == ("Completed", True)
	assert job.output["cut"].startswith('["password: ***')
	assert len(job.output["cut"]) <= outputs.SHOWN_LENGTH


@contextmanager
def refusing(text: str, **columns: str) -> Iterator[None]:
	"""The database refuses a text in these columns of a job and of its runs."""
	tables = {"job": "tabBackground Job", "run": "tabJob Run"}
	rules = [(tables[part], f"no_{part}_{name}", name) for part, name in columns.items()]
	for table, rule, column in rules:
		check = f"check (`{column}` not like '%%{text}%%')"
		frappe.db.sql_ddl(f"alter table `{table}` add constraint {rule} {check}")
	frappe.db.commit()
	try:
		yield
	finally:
		frappe.db.rollback()
		for table, rule, _column in rules:
			frappe.db.sql_ddl(f"alter table `{table}` drop constraint {rule}")
		frappe.db.commit()


def test_a_result_that_the_database_refuses_is_a_permanent_failure_in_our_words(world):
	text = frappe.generate_hash(length=20)
	job_name = submitted(world, "say_what_is_refused", {"text": text})
	with refusing(text, job="output"):
		job = run_job(job_name)
	assert (job.status, job.error_type, job.attempt) == ("Dead Letter", "Permanent", 1)
	assert job.error_message.startswith("The handler has ended, but its end could not be stored")
	assert "no_job_output" in job.error_message and text not in job.error_message


@pytest.mark.parametrize(("error", "status"), [("permanent", "Dead Letter"), ("transient", "Queued")])
def test_an_end_that_the_database_refuses_is_a_plain_failure_of_the_same_class(world, error, status):
	text = frappe.generate_hash(length=20)
	job_name = submitted(world, "say_what_is_refused", {"error": error, "text": text})
	with refusing(text, job="error_message", run="error_message"):
		job = run_job(job_name)
	assert (job.status, job.attempt, job.error_type) == (status, 1, error.capitalize())
	assert job.error_message.startswith("What went wrong could not be stored")
	assert last_run(job_name).status == "Failed"
	assert frappe.db.get_value("Error Log", {"method": ["like", f"%{job_name}%"]})


def test_a_real_worker_survives_all_of_it(world):
	"""Each of these ended the drain: the next one runs, and no attempt is lost."""
	queue = workers.make_queue()
	jobs = {
		name: workers.submit(world.a, queue, f"{HANDLERS}.{handler}", given, max_retries=0)
		for name, handler, given in [
			("half", "fail_as", {"error": "permanent_half"}),
			("exit", "fail_as", {"error": "exit"}),
			("cancelled", "fail_as", {"error": "cancelled"}),
			("destroyed", "end_frappe", {}),
			("texts", "say_everything", {}),
		]
	}
	worker = workers.start_worker()
	try:
		ended = {"texts": "Completed"}
		for name, job_name in jobs.items():
			workers.wait_for(job_name, ended.get(name, "Dead Letter"), 30)
	finally:
		workers.stop_worker(worker)
		workers.retire_queue(queue)
	classes = {name: last_run(job_name).error_class for name, job_name in jobs.items()}
	assert classes["half"] == "dartwing_jobs.errors.PermanentError"
	assert classes["exit"] == "builtins.SystemExit"
	assert classes["cancelled"].endswith("CancelledError")
	assert classes["destroyed"] == "dartwing_jobs.errors.FrappeEnded"
	assert {frappe.db.count("Job Run", {"background_job": job_name}) for job_name in jobs.values()} == {1}
