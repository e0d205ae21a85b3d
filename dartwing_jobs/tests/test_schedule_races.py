"""Schedulers as real processes: two at the same instant, one killed in the middle, none but a worker."""

import multiprocessing
import os
import signal
import time

import frappe
import pytest

from dartwing_jobs import schedule, submit
from dartwing_jobs.engine import database, drain, sweep
from dartwing_jobs.engine.limits import capacity, turnstiles
from dartwing_jobs.engine.rules import policies
from dartwing_jobs.engine.schedules import fires, ticks
from dartwing_jobs.engine.schedules.ticker import TICK_SECONDS, Ticker
from dartwing_jobs.errors import SubmitConflict
from dartwing_jobs.tests import workers
from dartwing_jobs.tests.processes import connect_anew, in_other_processes
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
from dartwing_jobs.tests.world import (
	REPEATABLE,
	expel,
	make_job_type,
	make_organization,
	make_queue,
	make_template,
	make_user,
	stored_status,
)

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
	assert tick(NOON + (rounds - 1) * MINUTE) == 0
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
	connect_anew(site)
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


@pytest.fixture
def busy(world):
	"""An organization with a limit in which somebody has submitted and works on; and how they end."""
	organization, own = make_organization(), frappe.local.db
	policy = {"doctype": "Job Organization Policy", "organization": organization, "max_waiting": 1000}
	frappe.get_doc(policy).insert()
	frappe.db.commit()
	policies.forget()
	frappe.connect(set_admin_as_user=False)
	theirs = frappe.local.db
	turnstiles.enter(capacity.turnstile_of_organization(organization))
	frappe.local.db = own
	yield organization, theirs.rollback
	theirs.close()


def test_a_long_transaction_of_one_organization_stops_no_schedule_of_others(world, busy):
	"""Its own schedules stay due, and are not waited for one after another."""
	organization, end = busy
	held, free = [make_schedule(organization).name for _ in range(5)], make_schedule(world.a)
	began = time.monotonic()
	assert tick() == 1
	assert time.monotonic() - began < turnstiles.WAIT_SECONDS
	assert fires_of(free.name) == [(NOON, "Fired")]
	assert [(fires_of(name), read(name).next_fire_at) for name in held] == [([], NOON)] * 5
	end()
	assert tick() == 5


def test_schedules_that_cannot_be_fired_end_no_drain_and_no_sweep(world, monkeypatch):
	"""Whatever it is: jobs that wait have nothing to do with it."""

	def fail(now):
		raise SubmitConflict("met another transaction")

	monkeypatch.setattr(ticks, "tick", fail)
	made, queue = make_schedule(world.a), make_queue()
	waiting = submit(make_job_type(job_queue=queue).name, None, world.b)
	frappe.db.commit()
	assert drain.drain([queue]) == 1
	assert stored_status(waiting.name) == "Completed"
	swept = []
	monkeypatch.setattr(sweep, "ring_for_waiting", lambda: swept.append(1))
	sweep.sweep()
	assert (swept, fires_of(made.name)) == ([1], [])


def leave_organization(user: str, organization: str) -> None:
	expel(user, organization)
	frappe.db.commit()


def test_a_worker_that_lingers_sees_rights_that_were_taken_away_elsewhere(world):
	user = make_user("owner", ["Dartwing Admin"], [world.a])
	frappe.set_user(user)
	made = make_schedule(world.a, cron_expression=EVERY_MINUTE)
	frappe.set_user("Administrator")
	assert tick() == 1  # and this process remembers whose organization it is
	in_other_processes(leave_organization, (user, world.a))
	plant(made.name, next_fire_at=database.utc_now().replace(microsecond=0))
	drain.Drain("short", None).look()
	assert [outcome for _at, outcome in fires_of(made.name)] == ["Fired", "Failed", "Disabled"]


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
	"""Within about five seconds; no sweep runs here."""
	queue = workers.make_queue()
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


def test_a_schedule_fires_while_its_only_worker_is_busy(world, worker, tmp_path):
	"""It was found when the job had ended, and had missed its time if that took longer than five minutes."""
	queue = workers.make_queue()
	path = tmp_path / "go on"
	long_job = workers.submit(
		world.a, queue, "dartwing_jobs.tests.handlers.wait_for_file", {"path": str(path)}
	)
	workers.wait_until(lambda: stored_status(long_job) == "Running", 30, sweeping=False)
	made = make_schedule(world.a, database.utc_now().replace(microsecond=0))
	workers.wait_until(lambda: fires_of(made.name), 2 * TICK_SECONDS, sweeping=False)
	assert stored_status(long_job) == "Running"
	path.touch()
	workers.wait_for(long_job, "Completed")
	workers.retire_queue(queue)


def test_a_tick_beside_a_job_waits_until_that_is_long_and_the_last_tick_is_over(world):
	"""And whoever asks for it goes on at once, with the connection that it had."""
	made = make_schedule(world.a, database.utc_now().replace(microsecond=0))
	ticker, now = Ticker(), time.monotonic()
	ticker.tick_beside(now)
	assert ticker.pid is None
	ticker.tick_beside(now - TICK_SECONDS)
	first = ticker.pid
	ticker.tick_beside(now - TICK_SECONDS)
	assert first and ticker.pid == first
	workers.wait_until(lambda: fires_of(made.name), 20, sweeping=False)
	workers.wait_until(lambda: not ticker._is_ticking(), 20, sweeping=False)
