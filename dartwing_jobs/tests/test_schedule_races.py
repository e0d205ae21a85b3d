"""Schedulers as real processes: two at the same instant, one killed in the middle, none but a worker."""

import multiprocessing
import os
import signal
import time

import frappe
import pytest

from dartwing_jobs import schedule
from dartwing_jobs.engine import database, fires, ticks
from dartwing_jobs.errors import SubmitConflict
from dartwing_jobs.tests import workers
from dartwing_jobs.tests.processes import in_other_processes
from dartwing_jobs.tests.scheduling import (
	EVERY_MINUTE,
	MINUTE,
	NOON,
	count_jobs,
	fires_of,
	forget_all,
	jobs_of,
	make_schedule,
	plant,
	read,
	tick,
)
from dartwing_jobs.tests.world import REPEATABLE, make_job_type, make_template, stored_status

SCHEDULERS, ROUNDS, SCHEDULES = 2, 6, 20
PATIENCE_SECONDS = 60
fork = multiprocessing.get_context("fork")
together = fork.Barrier(SCHEDULERS)


@pytest.fixture(autouse=True)
def nothing_fires_afterwards(site):
	yield
	forget_all()


def make_schedules(organization: str, count: int) -> list[str]:
	template = make_template(organization)
	told = {"template": template, "cron_expression": EVERY_MINUTE}
	return [make_schedule(organization, **told).name for _ in range(count)]


def tick_at_once(rounds: int) -> int:
	"""All schedulers tick at the same moment, again and again, a minute later each time."""
	handled = 0
	for number in range(rounds):
		together.wait(PATIENCE_SECONDS)
		handled += ticks.tick(NOON + number * MINUTE)
	return handled


def tick_without_locks(rounds: int) -> int:
	"""As if nothing kept schedulers apart: both read what is due before either has written anything."""
	ticks.DUE = ticks.DUE.removesuffix(" for update skip locked")
	write_new = fires.write_new

	def write_together(planned: list) -> list:
		together.wait(PATIENCE_SECONDS)
		return write_new(planned)

	fires.write_new = write_together
	return tick_at_once(rounds)


@pytest.mark.parametrize("scheduler", [tick_at_once, tick_without_locks])
def test_schedulers_that_tick_at_the_same_instant_fire_once(world, scheduler):
	"""frappe/frappe 25340 and 26565, rq 1831 and 1854: each fire was run by every scheduler that saw it."""
	names = make_schedules(world.a, SCHEDULES)
	rounds = ROUNDS if scheduler is tick_at_once else 1
	handled = in_other_processes(scheduler, *[(rounds,)] * SCHEDULERS)
	assert tick(NOON + (rounds - 1) * MINUTE) == 0 or scheduler is tick_at_once
	expected = [(NOON + number * MINUTE, "Fired") for number in range(rounds)]
	assert [fires_of(name) for name in names] == [expected] * SCHEDULES
	assert count_jobs(*names) == SCHEDULES * rounds >= sum(handled)


def test_the_index_refuses_a_fire_that_was_handled_before(world):
	"""A scheduler with an old view of a schedule makes no second job, and the schedule goes on."""
	made = make_schedule(world.a)
	tick()
	plant(made.name, next_fire_at=NOON)
	assert tick() == 0
	assert (fires_of(made.name), count_jobs(made.name)) == ([(NOON, "Fired")], 1)
	assert read(made.name).next_fire_at > NOON


def tick_and_hang(site: str, hanging, batches_before: int) -> None:
	"""A scheduler that stops between its writes and their commit, after so many whole batches."""
	frappe.init(site, force=True)
	frappe.connect()
	settle, done = ticks._settle, []

	def settle_or_hang(*told) -> None:
		settle(*told)
		done.append(1)
		if len(done) > batches_before:
			hanging.set()
			time.sleep(PATIENCE_SECONDS)

	ticks._settle, ticks.BATCH = settle_or_hang, 10
	ticks.tick(NOON)


@pytest.mark.parametrize("batches", [0, 2])
def test_a_scheduler_that_is_killed_in_mid_tick_loses_and_doubles_nothing(world, batches):
	names = make_schedules(world.a, 40)
	hanging = fork.Event()
	frappe.db.commit()
	scheduler = fork.Process(target=tick_and_hang, args=(frappe.local.site, hanging, batches))
	scheduler.start()
	assert hanging.wait(PATIENCE_SECONDS)
	assert count_jobs(*names) == batches * 10
	# the others go on meanwhile, around what it holds
	assert tick(NOON) == 40 - (batches + 1) * 10
	os.kill(scheduler.pid, signal.SIGKILL)
	scheduler.join()
	handled = workers.wait_until(lambda: ticks.tick(NOON), sweeping=False)
	assert handled == 10
	assert [fires_of(name) for name in names] == [[(NOON, "Fired")]] * 40
	assert count_jobs(*names) == 40


def schedule_at_once(name: str, organization: str) -> str:
	together.wait(PATIENCE_SECONDS)
	try:
		made = database.own_transaction(schedule)(
			name, "0 0 * * *", job_type=REPEATABLE, organization=organization
		)
	except SubmitConflict as conflict:
		return str(conflict)
	return made.name


def test_programs_that_ask_for_the_same_schedule_at_once_make_one(world):
	name = f"at once {frappe.generate_hash(length=8)}"
	answers = in_other_processes(schedule_at_once, *[(name, world.a)] * SCHEDULERS)
	frappe.db.rollback()
	assert frappe.db.count("Job Schedule", {"schedule_name": name}) == 1
	assert len(set(answers)) == 1


@pytest.fixture
def worker(site):
	process = workers.start_worker()
	yield process
	workers.stop_worker(process)


def test_a_worker_fires_what_falls_due_without_any_scheduler(world, worker):
	"""Within about five seconds; no sweep runs here, once the worker has nothing else to do."""
	queue = workers.make_queue()
	workers.wait_for(workers.submit(world.a, queue, "dartwing_jobs.samples.do_nothing"), "Completed")
	job_type = make_job_type(job_queue=queue)
	made = make_schedule(
		world.a, None, template=make_template(world.a, job_type=job_type.name), cron_expression=EVERY_MINUTE
	)
	due = database.utc_now() + 2 * MINUTE / 60
	plant(made.name, next_fire_at=due)
	workers.wait_until(lambda: jobs_of(made.name), 30, sweeping=False)
	(job,) = jobs_of(made.name)[:1]
	workers.wait_until(lambda: stored_status(job.name) == "Completed", 30, sweeping=False)
	started = frappe.db.get_value("Background Job", job.name, "started_at")
	assert 0 <= (started - database.as_site_time(due)).total_seconds() < 5
	workers.retire_queue(queue)
