"""Snoozes: never a hot loop, never for ever, and never a number that is no time."""

from decimal import Decimal

import frappe
import pytest

from dartwing_jobs import Snooze, clock, submit
from dartwing_jobs.engine.rules import classification, snoozes
from dartwing_jobs.errors import PermanentError, TransientError
from dartwing_jobs.testing import run_job
from dartwing_jobs.tests.world import make_job_type, make_queue, plant

HANDLER = "dartwing_jobs.tests.handlers.snooze_as_told"
NO_NUMBERS = [float("nan"), float("inf"), -1, -0.001, 1e300, "soon", "60", None, True, [], Decimal("NaN")]


@pytest.mark.parametrize("seconds", NO_NUMBERS, ids=repr)
def test_what_nobody_can_wait_for_is_an_error_of_the_handler(seconds):
	with pytest.raises(PermanentError, match="A snooze lasts from 0 to"):
		Snooze(seconds)


@pytest.mark.parametrize("seconds", [0, 0.5, 1, 60, Decimal("2.5"), 366 * 24 * 3600])
def test_numbers_of_seconds_are_snoozes(seconds):
	assert Snooze(seconds).seconds == float(seconds)


@pytest.mark.parametrize(
	("asked", "before", "waits"),
	[(0, 0, 1), (0.2, 9, 1), (0, 10, 2), (0, 25, 4), (0, 60, 60), (0, 10**9, 60), (30, 0, 30), (30, 60, 60)],
)
def test_short_snoozes_grow_up_to_a_minute(asked, before, waits):
	assert snoozes.wait(asked, before) == waits


def test_long_snoozes_stay_as_they_are():
	assert [snoozes.wait(3600, number) for number in (0, 100, 10**6)] == [3600] * 3


def snoozing_job(world, **fields) -> str:
	job_type = make_job_type(handler_method=HANDLER, job_queue=make_queue(), **fields).name
	job = submit(job_type, {"seconds": 0}, world.a)
	frappe.db.commit()
	return job.name


def run(job_name: str):
	job = run_job(job_name)
	frappe.set_user("Administrator")  # the job ran as its owner
	frappe.db.rollback()
	return job


def test_a_snooze_of_nothing_waits_a_second_and_is_counted(world):
	job_name = snoozing_job(world)
	job = run(job_name)
	assert (job.status, job.snooze_count, job.attempt) == ("Queued", 1, 0)
	told = frappe.get_all("Job Execution Log", {"background_job": job_name}, ["event", "message"])
	assert ("job.snoozed", "Snoozed for 1 seconds") in [(row.event, row.message) for row in told]


def test_a_job_that_snoozes_for_ever_becomes_a_dead_letter_that_says_why(world):
	job_name = snoozing_job(world, max_snoozes=3)
	assert [run(job_name).status for _time in range(4)] == ["Queued"] * 3 + ["Dead Letter"]
	job = frappe.get_doc("Background Job", job_name)
	assert "snoozed 3 times in a row, and may do so 3 times" in job.error_message
	assert (job.error_type, job.snooze_count, job.retry_count) == ("Permanent", 3, 0)


def test_the_settings_say_how_often_where_the_type_does_not(world):
	job_name = snoozing_job(world)
	plant(job_name, snooze_count=10_000)
	frappe.db.commit()
	assert run(job_name).status == "Dead Letter"


def test_a_snooze_that_is_no_number_ends_the_job_at_once(world):
	job_type = make_job_type(handler_method=HANDLER, job_queue=make_queue(), max_retries=5).name
	job = submit(job_type, {"seconds": -1}, world.a)
	frappe.db.commit()
	dead = run(job.name)
	assert (dead.status, dead.attempt) == ("Dead Letter", 1)
	assert "A snooze lasts from 0 to" in dead.error_message


def test_an_attempt_that_fails_begins_a_new_row_of_snoozes(world):
	job_name = snoozing_job(world, backoff_base_seconds=1, backoff_cap_seconds=1)
	run(job_name)
	plant(job_name, project_id="fail")
	frappe.db.commit()
	job = run(job_name)
	assert (job.status, job.snooze_count, job.retry_count) == ("Queued", 0, 1)


@pytest.mark.parametrize("asked", ["nan", "inf", float("nan"), float("inf"), "soon", [], 10**400])
def test_no_server_and_no_handler_makes_a_retry_wait_for_what_is_no_number(asked):
	assert classification.retry_after(TransientError("busy", retry_after=asked)) is None


def test_a_server_may_ask_for_a_year_at_most():
	error = TransientError("busy", retry_after=1e300)
	assert classification.retry_after(error) == classification.LONGEST_WAIT_SECONDS


@pytest.mark.parametrize(("cap", "most"), [(None, 24 * 3600), (60, 60)])
def test_what_an_error_asks_for_has_a_cap(world, cap, most):
	job_type = make_job_type(handler_method="dartwing_jobs.samples.fail_for_a_while").name
	if cap:
		frappe.db.set_single_value("Job Engine Settings", "max_retry_after_seconds", cap)
	try:
		job = submit(job_type, {"attempts": 2, "retry_after": 30 * 24 * 3600}, world.a)
		job = run(job.name)
	finally:
		frappe.db.set_single_value("Job Engine Settings", "max_retry_after_seconds", 24 * 3600)
		frappe.db.commit()
	wait = (job.next_retry_at - clock.now()).total_seconds()
	assert most - 30 < wait <= most
