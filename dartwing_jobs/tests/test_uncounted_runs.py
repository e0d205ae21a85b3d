"""Snoozes and hand-backs: no retries in log and counters, and no copy of large parameters each time."""

import frappe
import pytest

from dartwing_jobs import submit
from dartwing_jobs.api import runs as api
from dartwing_jobs.engine.observing import counters
from dartwing_jobs.engine.observing.counters import Counter
from dartwing_jobs.parameters import load
from dartwing_jobs.testing import run_job
from dartwing_jobs.tests.world import make_job_type, make_queue, plant, story

HANDLERS = "dartwing_jobs.tests.handlers"
LARGE = {"seconds": 0, "text": "x" * 100_000}
SMALL = {"seconds": 0}


def submitted(world, handler: str, parameters: dict) -> str:
	job_type = make_job_type(handler_method=f"{HANDLERS}.{handler}", job_queue=make_queue()).name
	job = submit(job_type, parameters, world.a)
	frappe.db.commit()
	return job.name


def run(job_name: str, times: int = 1) -> None:
	for _time in range(times):
		run_job(job_name)
		frappe.set_user("Administrator")


def runs_of(job_name: str) -> list:
	fields = ["name", "attempt", "params_snapshot"]
	return frappe.get_all("Job Run", {"background_job": job_name}, fields, order_by="attempt, name")


def counted(metric: str, job_name: str) -> float | None:
	job = frappe.get_doc("Background Job", job_name)
	return counters.read(Counter(metric, job.job_type, job.job_queue))


@pytest.mark.parametrize(
	("handler", "event"), [("snooze_as_told", "job.snoozed"), ("hand_back", "job.interrupted")]
)
def test_what_goes_back_uncounted_was_not_retried(world, handler, event):
	job_name = submitted(world, handler, SMALL)
	run(job_name, times=3)
	counters.fold(10)
	put_back = [("Running", "Failed", event), ("Failed", "Queued", "job.requeued")]
	assert story(job_name)[-2:] == put_back
	assert "job.retried" not in [one for *_move, one in story(job_name)]
	assert (counted("jobs_retried_total", job_name), counted("jobs_requeued_total", job_name)) == (None, 3)


@pytest.mark.parametrize("handler", ["snooze_as_told", "hand_back"])
def test_large_parameters_are_copied_once(world, handler):
	job_name = submitted(world, handler, LARGE)
	run(job_name, times=4)
	runs = runs_of(job_name)
	assert [bool(row.params_snapshot) for row in runs] == [True, False, False, False]
	assert [api.get(row.name)["parameters"] for row in runs] == [LARGE] * 4


def test_small_parameters_are_copied_each_time(world):
	job_name = submitted(world, "snooze_as_told", SMALL)
	run(job_name, times=3)
	assert [load(row.params_snapshot) for row in runs_of(job_name)] == [SMALL] * 3


def test_an_attempt_that_counts_has_a_copy_of_its_own(world):
	"""A retry begins a new row of snoozes: its first run says what it was given."""
	job_name = submitted(world, "snooze_as_told", LARGE)
	run(job_name, times=2)
	plant(job_name, project_id="fail")
	frappe.db.commit()
	run(job_name)
	plant(job_name, project_id=None)
	frappe.db.commit()
	run(job_name, times=2)
	runs = runs_of(job_name)
	assert [(row.attempt, bool(row.params_snapshot)) for row in runs] == [
		(1, True),
		(1, False),
		(1, False),
		(2, True),
		(2, False),
	]
	assert {len(api.get(row.name)["parameters"]["text"]) for row in runs} == {100_000}
