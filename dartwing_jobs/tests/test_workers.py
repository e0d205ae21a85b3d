"""Real workers: processes that answer the bell, die, hang and are stopped."""

import os
import signal

import frappe
import pytest

from dartwing_jobs.engine import bell, database
from dartwing_jobs.engine.order import OUT_OF_LINE
from dartwing_jobs.tests import workers
from dartwing_jobs.tests.workers import (
	horse_of,
	is_alive,
	kill_worker,
	make_queue,
	retire_queue,
	start_worker,
	wait_for,
	wait_for_progress,
	wait_until,
)
from dartwing_jobs.tests.world import make_job, plant, story

HANDLERS = "dartwing_jobs.tests.handlers"


@pytest.fixture
def queue(site):
	queue = make_queue()
	yield queue
	retire_queue(queue)


@pytest.fixture
def worker():
	process = start_worker()
	yield process
	if process.poll() is None:
		kill_worker(process)


def submit(world, queue, handler, parameters=None, **fields) -> str:
	return workers.submit(world.a, queue, f"{HANDLERS}.{handler}", parameters, **fields)


def test_a_submit_reaches_a_worker(world, queue, worker):
	job_name = submit(world, queue, "note_process")
	wait_for(job_name, "Completed")
	assert (
		frappe.parse_json(frappe.db.get_value("Job Run", {"background_job": job_name}, "output"))["pid"]
		!= os.getpid()
	)


def test_a_rolled_back_submit_rings_nothing_and_leaves_nothing(world, queue):
	bell.client().delete(bell._key(bell.WORK, "short"), bell._key("bell", "short"))
	job_name = make_job(world.a, job_queue=queue).name
	frappe.db.rollback()
	assert not frappe.db.exists("Background Job", job_name)
	assert not bell.client().exists(bell._key(bell.WORK, "short"), bell._key("bell", "short"))
	assert "short" not in bell._rings_of_this_transaction()


def test_a_killed_horse_loses_nothing(world, queue, worker):
	job_name = submit(world, queue, "kill_the_process_once")
	wait_for(job_name, "Completed")
	assert frappe.db.get_value("Background Job", job_name, "attempt") == 2


def test_a_killed_worker_takes_its_horse_along(world, queue, worker):
	job_name = submit(world, queue, "report_and_sleep", {"seconds": 60})
	wait_for_progress(job_name)
	horse = horse_of(job_name)
	worker.kill()
	worker.wait()
	wait_until(lambda: not is_alive(horse))
	# otherwise the next worker would be busy with it for a minute
	nowhere = {"run_at": None, **OUT_OF_LINE, "lease_token": None, "lease_expires_at": None}
	database.own_transaction(plant)(job_name, status="Canceled", **nowhere)


def test_a_stopped_worker_gives_its_job_back(world, queue, worker):
	"""SIGTERM in the middle of a job: at its next checkpoint it goes back, and the attempt does not count."""
	job_name = submit(world, queue, "step_for_a_minute")
	wait_for(job_name, "Running")
	worker.send_signal(signal.SIGTERM)
	assert worker.wait(timeout=20) is not None
	wait_for(job_name, "Queued")
	assert frappe.db.get_value("Background Job", job_name, "attempt") == 0
	assert story(job_name)[-2:] == [
		("Running", "Failed", "job.interrupted"),
		("Failed", "Queued", "job.requeued"),
	]
	database.own_transaction(plant)(job_name, status="Canceled", run_at=None, **OUT_OF_LINE)


def test_a_stopped_worker_ends_soon(world, queue, worker):
	job_name = submit(world, queue, "note_process")
	wait_for(job_name, "Completed")
	worker.send_signal(signal.SIGTERM)
	assert worker.wait(timeout=15) is not None
