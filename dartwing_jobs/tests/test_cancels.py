"""A cancel that was asked for is kept, however the attempt ends, and reaches the last job of a chain."""

from collections.abc import Iterator
from contextlib import contextmanager

import frappe
import pytest

import dartwing_jobs
from dartwing_jobs import clock
from dartwing_jobs.api import jobs as api
from dartwing_jobs.engine import attempt, control, drain, successors, sweep
from dartwing_jobs.errors import InvalidJobError, SubmitConflict
from dartwing_jobs.testing import fall_due, lose_worker, run_job, start_job
from dartwing_jobs.tests import canceling
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.processes import beside
from dartwing_jobs.tests.world import REPEATABLE, make_job_type, make_queue, stored_status, story

HANDLER = "dartwing_jobs.tests.canceling.end_as_told"
MODES = ["Same Job", "New Job"]


@pytest.fixture(autouse=True)
def no_runs():
	canceling.runs.clear()


@pytest.fixture
def queue():
	return make_queue()


def submit(world, queue: str, end: str, canceled: bool = False, mode: str = "Same Job", **fields) -> str:
	fields = {"backoff_base_seconds": 1, "backoff_cap_seconds": 1, "max_retries": 3, **fields}
	job_type = make_job_type(handler_method=HANDLER, retry_mode=mode, job_queue=queue, **fields).name
	job = dartwing_jobs.submit(job_type, {"end": end, "canceled": canceled}, world.a, owner_user=world.user_a)
	frappe.db.commit()
	return job.name


def run(job_name: str) -> None:
	run_job(job_name)
	frappe.set_user("Administrator")
	frappe.db.rollback()


def successor_of(job_name: str) -> str | None:
	return frappe.db.get_value("Background Job", {"retry_of": job_name})


def check_nothing_follows(job_name: str, queue: str) -> None:
	job = frappe.get_doc("Background Job", job_name)
	assert (job.status, job.canceled_by) == ("Canceled", "Administrator")
	assert (job.run_at, job.claim_key, job.lease_token, job.next_retry_at) == (None, 0, None, None)
	assert story(job_name)[-1] == ("Running", "Canceled", "job.canceled")
	assert successor_of(job_name) is None
	assert drain.drain([queue]) == 0
	assert frappe.db.count("Job Run", {"background_job": job_name, "status": "Running"}) == 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("end", ["fail", "time_out", "snooze", "hand_back"])
def test_nothing_runs_after_a_cancel(world, queue, end, mode):
	job_name = submit(world, queue, end, canceled=True, mode=mode)
	child = dartwing_jobs.submit(REPEATABLE, None, world.a, depends_on=job_name).name
	frappe.db.commit()
	run(job_name)
	check_nothing_follows(job_name, queue)
	assert canceling.runs == [job_name]
	assert stored_status(child) == "Canceled"


@pytest.mark.parametrize("mode", MODES)
def test_nothing_runs_after_a_cancel_whose_worker_was_lost(world, queue, mode):
	job_name = submit(world, queue, "fail", mode=mode)
	start_job(job_name)
	assert control.cancel(job_name) == "Requested"
	frappe.db.commit()
	lose_worker(job_name)
	sweep.reap_expired()
	check_nothing_follows(job_name, queue)


def test_the_run_still_says_how_its_attempt_ended(world, queue):
	job_name = submit(world, queue, "fail", canceled=True)
	run(job_name)
	row = frappe.get_last_doc("Job Run", {"background_job": job_name})
	assert (row.status, row.error_message, row.uncounted) == ("Failed", "The service is busy", 0)


def test_a_last_attempt_that_was_canceled_is_no_dead_letter(world, queue):
	job_name = submit(world, queue, "fail", canceled=True, max_retries=0)
	run(job_name)
	check_nothing_follows(job_name, queue)


def test_what_failed_for_good_is_a_dead_letter_all_the_same(world, queue):
	job_name = submit(world, queue, "fail_for_good", canceled=True)
	run(job_name)
	assert stored_status(job_name) == "Dead Letter"


@pytest.mark.parametrize("mode", MODES)
def test_no_attempt_starts_after_a_cancel_however_both_meet(world, queue, mode):
	"""A process tries jobs again and again, for as long as they are not canceled."""
	jobs = [submit(world, queue, "fail_at_once", mode=mode, max_retries=1000) for _number in range(8)]
	canceled_at = {}
	with beside(drain.drain, ([queue],)) as results:
		for job_name in jobs:
			api.cancel(job_name)
			canceled_at[job_name] = clock.now()
		assert results.get(timeout=20)
	frappe.db.rollback()
	for job_name in jobs:
		assert api.status(job_name)["latest_status"] == "Canceled"
		chain = [link.name for link in successors.chain(job_name)]
		started = frappe.get_all("Job Run", {"background_job": ["in", chain]}, pluck="started_at")
		assert all(moment <= canceled_at[job_name] for moment in started)


def failed_twice(world, queue) -> tuple[str, str, str]:
	"""A chain of three jobs: two have failed, the last one waits for its turn."""
	first = submit(world, queue, "fail", mode="New Job", max_retries=2)
	run(first)
	second = successor_of(first)
	run(second)
	return first, second, successor_of(second)


def test_the_first_id_cancels_the_job_that_stands_for_it(world, queue):
	first, second, third = failed_twice(world, queue)
	frappe.set_user(world.user_a)
	assert dartwing_jobs.cancel(first, "not needed") == "Canceled"
	frappe.db.commit()
	assert [stored_status(name) for name in (first, second, third)] == ["Failed", "Failed", "Canceled"]


def test_the_first_id_asks_the_running_one_to_stop(world, queue):
	first, _second, third = failed_twice(world, queue)
	fall_due(third)
	start_job(third)
	assert Browser(world.user_a).call("dartwing_jobs.api.jobs.cancel", job=first).json["message"] == {
		"job": first,
		"status": "Requested",
	}
	frappe.db.rollback()
	assert frappe.db.get_value("Background Job", third, "cancel_requested_by") == world.user_a


def test_the_first_id_says_how_the_chain_ended(world, queue):
	first, _second, third = failed_twice(world, queue)
	told = api.status(first)
	assert (told["status"], told["latest"], told["latest_status"]) == ("Failed", third, "Pending")
	run(third)
	assert api.status(first)["latest_status"] == "Dead Letter"
	with pytest.raises(InvalidJobError, match=f"Job {third} has ended as Dead Letter"):
		control.cancel(first)


def test_the_first_id_runs_and_retries_the_job_that_stands_for_it(world, queue):
	first, _second, third = failed_twice(world, queue)
	control.run_now(first)
	frappe.db.commit()
	assert drain.drain([queue]) == 1
	assert stored_status(third) == "Dead Letter"
	assert control.retry(first).retry_of == third
	frappe.db.rollback()


@contextmanager
def snapshot() -> Iterator[None]:
	"""A request whose first question was asked before what the test does outside."""
	own = frappe.local.db
	frappe.connect(set_admin_as_user=False)
	request = frappe.local.db
	request.sql("select name from `tabBackground Job` limit 1")
	frappe.local.db = own
	try:
		yield request
	finally:
		frappe.local.db = own
		request.rollback()
		request.close()


def test_a_request_cancels_a_job_that_has_just_been_started(world, queue):
	job_name = submit(world, queue, "fail")
	with snapshot() as request:
		start_job(job_name)
		frappe.local.db = request
		assert api.cancel(job_name) == {"job": job_name, "status": "Requested"}


def test_a_request_cancels_a_job_that_waits_again(world, queue):
	"""Asked to stop while it waits, it would run once more."""
	job_name = submit(world, queue, "fail")
	running = start_job(job_name)
	with snapshot() as request:
		attempt.perform(running)
		assert stored_status(job_name) == "Queued"
		frappe.local.db = request
		assert api.cancel(job_name)["status"] == "Canceled"
	assert stored_status(job_name) == "Canceled"


def test_a_request_cancels_a_job_whose_successor_is_new(world, queue):
	job_name = submit(world, queue, "fail", mode="New Job")
	running = start_job(job_name)
	with snapshot() as request:
		attempt.perform(running)
		frappe.local.db = request
		assert api.cancel(job_name)["status"] == "Canceled"
	assert stored_status(successor_of(job_name)) == "Canceled"


def test_a_caller_in_its_own_transaction_is_told_by_a_class_to_begin_again(world, queue):
	"""Or gets its answer, where the database lets it."""
	job_name = submit(world, queue, "fail")
	with snapshot() as request:
		start_job(job_name)
		frappe.local.db = request
		try:
			assert control.cancel(job_name) == "Requested"
		except SubmitConflict:
			frappe.db.rollback()
			assert control.cancel(job_name) == "Requested"
