"""Real workers: processes that answer the bell, die, hang and are stopped."""

import os
import signal
import subprocess
import sys
import time

import frappe
import pytest

from dartwing_jobs.engine import bell, database, sweep
from dartwing_jobs.tests.world import make_job, make_job_type, plant, stored_status, story

HANDLERS = "dartwing_jobs.tests.handlers"


@pytest.fixture
def queue(site):
	"""A queue of its own for each test, committed: other processes must see it."""
	name = f"q:test-{frappe.generate_hash(length=8)}"
	frappe.get_doc({"doctype": "Job Queue", "queue_name": name, "rq_queue": "short"}).insert()
	frappe.db.commit()
	return name


@pytest.fixture
def worker():
	process = start_worker()
	yield process
	if process.poll() is None:
		process.kill()
		process.wait()


def start_worker() -> subprocess.Popen:
	command = [
		sys.executable,
		"-m",
		"frappe.utils.bench_helper",
		"frappe",
		"worker",
		"--queue",
		"short",
	]
	return subprocess.Popen(
		command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
	)


def submit(world, queue, handler, parameters=None, **fields) -> str:
	job_type = make_job_type(
		handler_method=f"{HANDLERS}.{handler}", backoff_base_seconds=1, backoff_cap_seconds=1
	)
	job = make_job(world.a, job_type=job_type.name, job_queue=queue, input_parameters=parameters, **fields)
	frappe.db.commit()
	return job.name


def wait_until(condition, seconds: float = 60):
	"""Waits for something; meanwhile the sweep runs, as often as a test has patience for."""
	deadline, sweep_at = time.monotonic() + seconds, time.monotonic() + 3
	while time.monotonic() < deadline:
		frappe.db.rollback()
		if time.monotonic() > sweep_at:
			sweep.sweep()
			sweep_at = time.monotonic() + 3
		if value := condition():
			return value
		time.sleep(0.05)
	raise AssertionError("waited in vain")


def wait_for(job_name: str, status: str, seconds: float = 60) -> None:
	wait_until(lambda: stored_status(job_name) == status, seconds)


def test_a_submit_reaches_a_worker(world, queue, worker):
	job_name = submit(world, queue, "note_process")
	wait_for(job_name, "Completed")
	assert (
		frappe.parse_json(frappe.db.get_value("Job Run", {"background_job": job_name}, "output"))["pid"]
		!= os.getpid()
	)


def test_a_rolled_back_submit_rings_nothing_and_leaves_nothing(world, queue):
	rings = bell.get_redis_conn().exists(bell._key("sent", "short"))
	job_name = make_job(world.a, job_queue=queue).name
	frappe.db.rollback()
	assert not frappe.db.exists("Background Job", job_name)
	assert bell.get_redis_conn().exists(bell._key("sent", "short")) == rings


def test_progress_is_seen_while_the_handler_runs(world, queue, worker):
	job_name = submit(world, queue, "report_and_sleep", {"seconds": 3})
	wait_until(lambda: frappe.db.get_value("Background Job", job_name, "progress") == 40)
	assert stored_status(job_name) == "Running"


@pytest.mark.parametrize("handler", ["sleep", "swallow_everything", "hold_the_gil", "read_a_silent_socket"])
def test_a_timeout_ends_any_handler(world, queue, worker, handler):
	job_name = submit(world, queue, handler, timeout_seconds=1, max_retries=0)
	wait_for(job_name, "Dead Letter")
	assert "job.timed_out" in [event for _before, _after, event in story(job_name)]
	after = submit(world, queue, "note_process")
	bell.ring(queue)
	wait_for(after, "Completed")


def test_a_killed_horse_loses_nothing(world, queue, worker):
	job_name = submit(world, queue, "kill_the_process_once")
	wait_for(job_name, "Running")
	wait_until(lambda: _expire_lease_of_the_dead(job_name))
	second = start_worker()
	try:
		bell.answered("short")
		bell.ring(queue)
		wait_for(job_name, "Completed")
	finally:
		second.kill()
		second.wait()
	assert frappe.db.get_value("Background Job", job_name, "attempt") == 2


def _expire_lease_of_the_dead(job_name: str) -> bool:
	"""Plants the time that would pass until the reaper comes."""
	if stored_status(job_name) != "Running":
		return True
	database.own_transaction(plant)(job_name, lease_expires_at="2020-01-01 00:00:00")
	return True


def test_a_killed_worker_takes_its_horse_along(world, queue, worker):
	job_name = submit(world, queue, "report_and_sleep", {"seconds": 60})
	wait_until(lambda: frappe.db.get_value("Background Job", job_name, "progress") == 40)
	horse = int(frappe.db.get_value("Job Run", {"background_job": job_name}, "worker").rpartition(":")[2])
	worker.kill()
	worker.wait()
	wait_until(lambda: not _is_alive(horse))
	# otherwise the next worker would be busy with it for a minute
	nowhere = {"run_at": None, "claim_key": 0, "lease_token": None, "lease_expires_at": None}
	database.own_transaction(plant)(job_name, status="Canceled", **nowhere)


def _is_alive(pid: int) -> bool:
	try:
		os.kill(pid, 0)
	except ProcessLookupError:
		return False
	with open(f"/proc/{pid}/stat") as stat:
		return stat.read().rpartition(")")[2].split()[0] != "Z"


def test_a_stopped_worker_gives_its_job_back(world, queue, worker):
	"""SIGTERM in the middle of a job: at its next checkpoint it goes back, and the attempt does not count."""
	job_name = submit(world, queue, "step_for_a_minute")
	wait_for(job_name, "Running")
	worker.send_signal(signal.SIGTERM)
	assert worker.wait(timeout=20) is not None
	wait_for(job_name, "Queued")
	assert frappe.db.get_value("Background Job", job_name, "attempt") == 0
	assert story(job_name)[-2:] == [("Running", "Failed", "job.failed"), ("Failed", "Queued", "job.retried")]
	database.own_transaction(plant)(job_name, status="Canceled", run_at=None, claim_key=0)


def test_a_stopped_worker_ends_soon(world, queue, worker):
	job_name = submit(world, queue, "note_process")
	wait_for(job_name, "Completed")
	worker.send_signal(signal.SIGTERM)
	assert worker.wait(timeout=15) is not None
