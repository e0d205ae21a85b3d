"""Without Frappe's scheduler: stock workers find by themselves what was lost, and what has fallen due."""

import os
import signal
import subprocess
import sys
import time

import frappe
import pytest
from frappe.utils.background_jobs import get_queue

from dartwing_jobs import lookout
from dartwing_jobs import submit as submit_job
from dartwing_jobs.engine import bell, statements
from dartwing_jobs.testing import fall_due, lose_worker, start_job
from dartwing_jobs.tests import workers
from dartwing_jobs.tests.workers import (
	COMMAND,
	OUTPUT,
	children_of,
	horse_of,
	is_alive,
	make_queue,
	retire_queue,
	wait_for_progress,
	wait_until,
)
from dartwing_jobs.tests.world import REPEATABLE, stored_status

HANDLERS = "dartwing_jobs.tests.lookout_handlers"
# instead of a minute
QUICK = 2


@pytest.fixture
def queue(site):
	queue = make_queue()
	forget_everything()
	yield queue
	retire_queue(queue)


def forget_everything() -> None:
	"""As a Redis that was wiped: no message, no ring, nothing that any drain has noted."""
	frappe.db.rollback()
	get_queue("short").empty()
	for key in bell.client().scan_iter(f"{bell.PREFIX}:*"):
		bell.client().delete(key)


def start_worker(*options: str, seconds: float = QUICK) -> subprocess.Popen:
	environment = {**os.environ, lookout.VARIABLE: str(seconds)}
	command = [*COMMAND, "short", *options]
	return subprocess.Popen(command, start_new_session=True, stdout=OUTPUT, stderr=OUTPUT, env=environment)


@pytest.fixture
def start():
	started = []

	def start_one(*options: str, **given) -> subprocess.Popen:
		started.append(start_worker(*options, **given))
		return started[-1]

	yield start_one
	for worker in started:
		if worker.poll() is None:
			workers.kill_worker(worker)


def kill_together(worker: subprocess.Popen, horse: int) -> None:
	"""A machine that loses its power: worker, drain and watchdog end in the same moment."""
	processes = [worker.pid, horse, *children_of(horse)]
	for how in (signal.SIGSTOP, signal.SIGKILL):
		for process in processes:
			os.kill(process, how)
	worker.wait()
	wait_until(lambda: not any(map(is_alive, processes)), 10, sweeping=False)


def lookouts() -> list[int]:
	"""The processes that are lookouts in this sites folder."""
	found = []
	for process in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
		try:
			with open(f"/proc/{process}/cmdline", "rb") as file:
				is_lookout = lookout.__name__.encode() in file.read().split(b"\0")
			if is_lookout and os.readlink(f"/proc/{process}/cwd") == os.getcwd():
				found.append(process)
		except OSError:
			continue  # it has ended
	return [process for process in found if is_alive(process)]


def look_once() -> None:
	seconds = str(lookout.SECONDS)
	done = subprocess.run([sys.executable, "-m", lookout.__name__, seconds, lookout.ONCE])
	assert done.returncode == 0
	frappe.db.rollback()


def test_what_a_lost_machine_ran_is_run_again_by_the_next_worker(world, queue, start):
	worker = start(seconds=0)
	job = workers.submit(world.a, queue, f"{HANDLERS}.report_and_sleep_once", {"seconds": 60})
	wait_for_progress(job)
	kill_together(worker, horse_of(job))
	lose_worker(job)
	forget_everything()
	assert stored_status(job) == "Running"
	start()
	wait_until(lambda: stored_status(job) == "Completed", 30, sweeping=False)
	assert frappe.db.get_value("Background Job", job, "attempt") == 2


def test_an_idle_worker_finds_a_job_whose_ring_was_lost(world, queue, start):
	start()
	time.sleep(QUICK)  # it has started, and looked in vain
	job = submit_job(REPEATABLE, {"steps": 1}, world.a, job_queue=queue).name
	statements.commit()  # without what follows a commit: the process was killed in between
	frappe.db.after_commit.reset()
	wait_until(lambda: stored_status(job) == "Completed", 30, sweeping=False)


def test_workers_that_end_when_nothing_is_left_bring_retries_that_fall_due_later(world, queue, start):
	job = workers.submit(world.a, queue, f"{HANDLERS}.fail_once", {"retry_after": 600})
	start("--burst").wait(30)
	frappe.db.rollback()
	assert (stored_status(job), get_queue("short").count) == ("Queued", 0)
	fall_due(job)
	forget_everything()
	start("--burst").wait(30)
	frappe.db.rollback()
	assert stored_status(job) == "Completed"


def test_a_lookout_ends_with_its_worker_and_another_takes_its_place(queue, start):
	first, second = start(), start()
	wait_until(lambda: len(lookouts()) == 2, 20, sweeping=False)
	bell.client().delete(bell._swept())
	workers.kill_worker(first)
	wait_until(lambda: len(lookouts()) == 1, 10, sweeping=False)
	wait_until(lambda: bell.seconds_since_sweep() is not None, 20, sweeping=False)
	workers.stop_worker(second)
	wait_until(lambda: not lookouts(), 10, sweeping=False)


def test_a_site_that_was_just_swept_is_not_swept_again(world, queue):
	job = submit_job(REPEATABLE, {}, world.a, job_queue=queue).name
	frappe.db.commit()
	start_job(job)
	bell.note_sweep()
	lose_worker(job)
	look_once()
	assert stored_status(job) == "Running"
	bell.client().delete(bell._swept())
	look_once()
	assert stored_status(job) != "Running"


def test_it_knows_how_long_ago_a_sweep_was():
	bell.client().delete(bell._swept())
	assert bell.seconds_since_sweep() is None
	bell.note_sweep()
	assert 0 <= bell.seconds_since_sweep() < 5
	bell.note_sweep(600)
	assert -600 <= bell.seconds_since_sweep() < -590


@pytest.mark.parametrize("setting", ["maintenance_mode", "pause_scheduler"])
def test_a_site_where_nothing_is_to_begin_by_itself_is_left_alone(world, queue, monkeypatch, setting):
	bell.client().delete(bell._swept())
	monkeypatch.setitem(frappe.local.conf, setting, 1)
	lookout.look_at_site(QUICK, must_ring=True)
	assert bell.seconds_since_sweep() is None


@pytest.mark.long
def test_a_stock_worker_looks_within_a_minute_of_its_start(world, queue, start):
	job = submit_job(REPEATABLE, {"steps": 1}, world.a, job_queue=queue).name
	frappe.db.commit()
	forget_everything()
	start(seconds=lookout.SECONDS)
	wait_until(lambda: stored_status(job) == "Completed", 60, sweeping=False)
