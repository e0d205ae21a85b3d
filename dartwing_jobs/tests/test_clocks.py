"""A job's story does not depend on the clocks of workers, nor on any clock that is set back.

With real workers whose clocks are shifted by two hours (package `faketime` of Debian), and with a clock that
is set back in the middle of a job.
"""

import os
import subprocess
from datetime import datetime, timedelta
from glob import glob
from zoneinfo import ZoneInfo

import frappe
import pytest

from dartwing_jobs import TransientError, clock, job_handler, lookout, submit
from dartwing_jobs.engine import attempt, control, database, naming, story, sweep
from dartwing_jobs.testing import lose_worker, run_job, start_job
from dartwing_jobs.tests import workers
from dartwing_jobs.tests.test_story import check
from dartwing_jobs.tests.world import REPEATABLE, make_job_type, make_queue

FAKETIME = "/usr/lib/*/faketime/libfaketimeMT.so.1"
HOURS = 2
JOBS = 30
STEPS = ["job.created", "job.enqueued", "job.started", "job.succeeded"]


@job_handler
def fail_once(parameters: dict, context) -> None:
	context.log("tried")
	if context.attempt == 1:
		raise TransientError("not yet")


@pytest.fixture
def set_clock(monkeypatch):
	"""From here on this process hears a clock that is so much ahead; put right afterwards."""
	hear = clock.set_by

	def setting(shift: timedelta) -> None:
		def hear_shifted(utc: datetime, is_certain: bool = False) -> None:
			hear(utc + shift, is_certain)

		monkeypatch.setattr(clock, "set_by", hear_shifted)
		clock.set_by(database.utc_now(), is_certain=True)

	yield setting
	hear(database.utc_now(), is_certain=True)


def start_worker_with_clock(shift: str, library: str) -> subprocess.Popen:
	shifted = {"LD_PRELOAD": library, "FAKETIME": shift, "DONT_FAKE_MONOTONIC": "1"}
	shifted[lookout.VARIABLE] = "0"  # libfaketime breaks the wait of its starter
	return workers.start_worker(environment={**os.environ, **shifted})


def events_of(job: str) -> list[str]:
	rows = frappe.get_all(
		"Job Execution Log", {"background_job": job}, ["event"], order_by=story.OLDEST_FIRST
	)
	return [row.event for row in rows]


def test_workers_whose_clocks_differ_by_hours_tell_one_story(world):
	libraries = glob(FAKETIME)
	if not libraries:
		pytest.skip("Install Debian's package faketime to shift the clocks of real workers")
	queue = workers.make_queue()
	crew = [start_worker_with_clock(f"{sign}{HOURS}h", libraries[0]) for sign in ("+", "-")]
	try:
		job_type = make_job_type(handler_method=f"{__name__}.fail_once", backoff_base_seconds=1).name
		names = [submit(job_type, None, world.a, job_queue=queue).name for _ in range(JOBS)]
		frappe.db.commit()
		workers.wait_until(lambda: _all_completed(names), 60)
	finally:
		for worker in crew:
			workers.stop_worker(worker)
		workers.retire_queue(queue)
	for name in names:
		check(name, status="Completed")
		job = frappe.get_doc("Background Job", name)
		assert job.created_at <= job.started_at <= job.completed_at
		assert abs(clock.now() - job.completed_at) < timedelta(minutes=2)
		assert events_of(name)[-1] == "job.succeeded"
	runs = frappe.get_all("Job Run", {"background_job": ["in", names]}, ["duration_seconds"])
	assert all(0 <= run.duration_seconds < 30 for run in runs)


def _all_completed(names: list[str]) -> bool:
	frappe.db.rollback()
	return frappe.db.count("Background Job", {"name": ["in", names], "status": "Completed"}) == len(names)


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_set_between_submit_and_start_changes_no_order(world, set_clock, hours):
	job = submit(REPEATABLE, {"steps": 1}, world.a, job_queue=make_queue()).name
	frappe.db.commit()
	set_clock(timedelta(hours=hours))
	run_job(job)
	check(job, status="Completed")
	assert events_of(job) == STEPS


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_set_while_a_job_runs_changes_neither_order_nor_duration(world, set_clock, hours):
	job = submit(REPEATABLE, {"steps": 1}, world.a, job_queue=make_queue()).name
	frappe.db.commit()
	started = start_job(job)
	set_clock(timedelta(hours=hours))
	attempt.run(started)
	check(job, status="Completed")
	assert events_of(job) == STEPS
	(run,) = frappe.get_all("Job Run", {"background_job": job}, ["*"])
	assert 0 <= run.duration_seconds < 30
	assert 0 <= (run.finished_at - run.started_at).total_seconds() < 30


def test_a_clock_that_is_set_back_between_attempts_changes_no_order(world, set_clock):
	job_type = make_job_type(handler_method=f"{__name__}.fail_once").name
	job = submit(job_type, None, world.a, job_queue=make_queue()).name
	frappe.db.commit()
	run_job(job)
	set_clock(timedelta(hours=-1))
	run_job(job)
	check(job, status="Completed", attempt=2)
	tried = ["job.started", "job.note", "job.failed", "job.retried", "job.started", "job.note"]
	assert events_of(job) == ["job.created", "job.enqueued", *tried, "job.succeeded"]


def test_a_cancel_by_a_process_with_another_clock_ends_the_story(world, set_clock):
	job = submit(REPEATABLE, None, world.a, job_queue=make_queue(), scheduled_for="2099-01-01").name
	frappe.db.commit()
	set_clock(timedelta(hours=-2))
	control.cancel(job, "not needed")
	frappe.db.commit()
	check(job, status="Canceled")
	assert events_of(job) == ["job.created", "job.canceled"]


def test_a_lost_attempt_is_ended_by_a_process_with_another_clock(world, set_clock):
	job = submit(REPEATABLE, None, world.a, job_queue=make_queue()).name
	frappe.db.commit()
	start_job(job)
	lose_worker(job)
	set_clock(timedelta(hours=-2))
	sweep.reap_expired()
	frappe.db.commit()
	check(job, status="Queued", retry_count=1)
	assert events_of(job)[-2:] == ["job.failed", "job.retried"]


def test_the_hour_that_comes_twice_in_autumn_changes_no_order(world, set_clock, monkeypatch):
	"""Site time goes from 02:59:59 back to 02:00:00, for people; the story goes on."""
	monkeypatch.setitem(clock._zones, frappe.local.site, (float("inf"), ZoneInfo("Europe/Berlin")))
	away = datetime(2026, 10, 25, 0, 59, 50) - database.utc_now()
	set_clock(away)
	job = submit(REPEATABLE, {"steps": 1}, world.a, job_queue=make_queue()).name
	frappe.db.commit()
	set_clock(away + timedelta(minutes=1))
	run_job(job)
	row = frappe.get_doc("Background Job", job)
	assert row.started_at < row.created_at  # what a clock on the wall showed
	check(job, status="Completed")
	assert events_of(job) == STEPS


def test_each_move_has_the_next_number(world):
	job_type = make_job_type(handler_method=f"{__name__}.fail_once").name
	job = submit(job_type, None, world.a, job_queue=make_queue()).name
	frappe.db.commit()
	run_job(job)
	run_job(job)
	rows = frappe.get_all("Job Execution Log", {"background_job": job}, ["*"], order_by=story.OLDEST_FIRST)
	numbers = [row.move_number for row in rows if row.from_status != row.to_status]
	assert numbers == list(range(len(numbers)))
	assert frappe.db.get_value("Background Job", job, "moves") == numbers[-1]


def test_time_is_the_databases(world):
	"""Whatever the wall clock of this process says: it is not asked."""
	there = database.utc_now()
	assert abs(clock.utc_now() - there) < timedelta(seconds=5)
	named = naming.moment_of_row(naming.next_row_name())
	assert abs(named - there) < timedelta(seconds=5)


def test_the_database_is_asked_once_a_minute_at_most(monkeypatch):
	clock.set_by(database.utc_now(), is_certain=True)
	monkeypatch.setattr(database, "utc_now", lambda: pytest.fail("asked again"))
	assert clock.now() <= clock.now()


def test_a_slow_answer_does_not_set_the_clock_back():
	clock.set_by(database.utc_now(), is_certain=True)
	before = clock.utc_now()
	clock.set_by(before - timedelta(seconds=1))  # it was under way for so long
	assert clock.utc_now() >= before
