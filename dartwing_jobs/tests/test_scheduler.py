"""Frappe's scheduler process and one stock worker alone: no lookout, no lingering drain, no submit."""

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import frappe
import pytest
from frappe.utils import scheduler as frappe_scheduler
from frappe.utils.background_jobs import get_queue

from dartwing_jobs import clock, hooks, lookout
from dartwing_jobs import submit as submit_job
from dartwing_jobs.engine import bell, database, retention
from dartwing_jobs.testing import lose_worker, run_job, start_job
from dartwing_jobs.tests import workers
from dartwing_jobs.tests.scheduling import count_jobs, forget_all, make_schedule
from dartwing_jobs.tests.workers import COMMAND, OUTPUT, make_queue, retire_queue, wait_until
from dartwing_jobs.tests.world import REPEATABLE, make_job_type, plant, stored_status

pytestmark = pytest.mark.long

HANDLERS = "dartwing_jobs.tests.lookout_handlers"
QUEUES = ("default", "short", "long")
BENCH = [sys.executable, "-m", "frappe.utils.bench_helper", "frappe"]
# instead of a minute
TICK_SECONDS = 5
LONG_AGO = timedelta(days=400)


@pytest.fixture
def queue(site):
	queue = make_queue()
	yield queue
	retire_queue(queue)
	forget_all()


@pytest.fixture
def bench(site):
	"""The two processes; each can be started by the test, when all is ready for them."""
	started, config = [], Path("common_site_config.json")
	before = config.read_text()
	config.write_text(json.dumps({**json.loads(before), "scheduler_tick_interval": TICK_SECONDS}))
	frappe_scheduler.enable_scheduler()
	frappe.db.commit()

	def start() -> None:
		quiet = {"start_new_session": True, "stdout": OUTPUT, "stderr": OUTPUT}
		environment = {**os.environ, lookout.VARIABLE: "0"}
		worker = [*COMMAND, ",".join(QUEUES)]
		started.extend(
			subprocess.Popen(one, env=environment, **quiet) for one in (worker, [*BENCH, "schedule"])
		)

	yield start
	for process in started:
		workers.kill_worker(process)
	config.write_text(before)
	frappe.db.rollback()
	frappe.db.set_single_value("System Settings", "enable_scheduler", 0)
	frappe.db.commit()


def forget_everything() -> None:
	"""No message, no ring, nothing that any drain has noted."""
	for name in QUEUES:
		get_queue(name).empty()
	for key in bell.client().scan_iter(f"{bell.PREFIX}:*"):
		bell.client().delete(key)


def let_all_be_due() -> None:
	"""As if the scheduler had not run for a day."""
	methods = [*hooks.scheduler_events["cron"]["* * * * *"], f"{retention.__name__}.clean_up"]
	for name in frappe.get_all("Scheduled Job Type", filters={"method": ["in", methods]}, pluck="name"):
		values = {"last_execution": clock.now() - timedelta(days=1), "stopped": 0}
		frappe.db.set_value("Scheduled Job Type", name, values)
	frappe.db.commit()


def make_retry(world, queue: str) -> str:
	"""A job that has failed once, and may be tried again by now."""
	soon = {"backoff_base_seconds": 1, "backoff_cap_seconds": 1}
	kind = make_job_type(handler_method=f"{HANDLERS}.fail_once", **soon).name
	job = submit_job(kind, {}, world.a, job_queue=queue).name
	frappe.db.commit()
	assert run_job(job).status == "Queued"
	return job


def make_lost_job(world, queue: str) -> str:
	soon = {"backoff_base_seconds": 1, "backoff_cap_seconds": 1}
	kind = make_job_type(handler_method=f"{HANDLERS}.report_and_sleep_once", **soon).name
	job = submit_job(kind, {"seconds": 60}, world.a, job_queue=queue).name
	frappe.db.commit()
	start_job(job)
	lose_worker(job)
	return job


def make_old_job(world, queue: str) -> str:
	job = submit_job(REPEATABLE, {"steps": 1}, world.a, job_queue=queue).name
	frappe.db.commit()
	run_job(job)
	plant(job, modified=clock.now() - LONG_AGO)
	frappe.db.commit()
	return job


def test_it_brings_retries_fires_lost_jobs_and_cleaning_up(world, queue, bench):
	retry, lost, old = make_retry(world, queue), make_lost_job(world, queue), make_old_job(world, queue)
	fires = make_schedule(world.a, database.utc_now() - timedelta(minutes=1)).name
	ringless = submit_job(REPEATABLE, {"steps": 1}, world.a, job_queue=queue).name
	frappe.db.commit()
	forget_everything()
	let_all_be_due()
	bench()
	for job in (retry, lost, ringless):
		wait_until(lambda job=job: stored_status(job) == "Completed", 120, sweeping=False)
	wait_until(lambda: count_jobs(fires), 120, sweeping=False)
	wait_until(lambda: not frappe.db.exists("Background Job", old), 120, sweeping=False)
