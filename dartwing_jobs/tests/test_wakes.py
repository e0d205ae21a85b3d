"""Who comes back for what falls due: real workers that are needed elsewhere, or killed. Nobody sweeps."""

import multiprocessing
import time
from datetime import timedelta

import frappe
import pytest
from frappe.utils.background_jobs import get_queue

from dartwing_jobs import clock, submit
from dartwing_jobs.engine import bell, database
from dartwing_jobs.tests.processes import beside
from dartwing_jobs.tests.scheduling import fires_of, forget_all, make_schedule
from dartwing_jobs.tests.workers import (
	children_of,
	kill_worker,
	make_queue,
	retire_queue,
	start_worker,
	stop_worker,
	wait_until,
)
from dartwing_jobs.tests.world import REPEATABLE, stored_status

# of a worker that is asked for while it has nothing to do; it may have to start a process twice
PROMPT_SECONDS = 5
# longer than anybody lingers without a reason, or works before looking at other queues
LATER_SECONDS = 120
fork = multiprocessing.get_context("fork")
is_held, is_enough = fork.Event(), fork.Event()


@pytest.fixture
def queue(site):
	queue = make_queue("short")
	yield queue
	retire_queue(queue)


@pytest.fixture
def queue_behind(site):
	"""Served by the same worker, when nothing waits in the other."""
	queue = make_queue("long")
	yield queue
	retire_queue(queue)


@pytest.fixture
def worker():
	yield from _working("short")


@pytest.fixture
def worker_of_two():
	yield from _working("short,long")


def _working(rq_queues: str):
	forget_messages(rq_queues.split(","))
	process = start_worker(rq_queues)
	yield process
	if process.poll() is None:
		stop_worker(process)


def forget_messages(rq_queues: list[str]) -> None:
	"""What an earlier worker left on its way: this one would go after it, and wait at another queue."""
	for name in rq_queues:
		get_queue(name).empty()
		bell.client().delete(*(bell._key(kind, name) for kind in (bell.WORK, "bell", "awake")))


def submit_due_in(seconds: float, world, queue) -> str:
	due = clock.now() + timedelta(seconds=seconds)
	name = submit(REPEATABLE, {"steps": 1}, world.a, job_queue=queue, scheduled_for=due).name
	frappe.db.commit()
	return name


def assert_started_in_time(job_name: str) -> None:
	wait_until(lambda: stored_status(job_name) == "Completed", 30, sweeping=False)
	job = frappe.db.get_value("Background Job", job_name, ["scheduled_for", "started_at"], as_dict=True)
	assert 0 <= (job.started_at - job.scheduled_for).total_seconds() < PROMPT_SECONDS


def wait_for_one_that_lingers(rq_queue: str = "short") -> None:
	wait_until(lambda: bell.client().exists(bell._key("awake", rq_queue)), 30, sweeping=False)


def send_native(rq_queue: str, count: int = 1) -> list[str]:
	"""Messages that have nothing to do with this app."""
	sent = [frappe.enqueue("frappe.get_all", doctype="Job Queue", queue=rq_queue) for _ in range(count)]
	return [message.id for message in sent]


def is_taken(message: str, rq_queue: str) -> bool:
	return message not in get_queue(rq_queue).get_job_ids()


def test_one_that_others_need_at_once_comes_back_behind_them(world, queue, worker):
	name = submit_due_in(10, world, queue)
	send_native("short", 10)
	assert_started_in_time(name)


def test_one_that_waits_for_what_falls_due_keeps_nobody_waiting_in_the_queues_behind(
	world, queue, worker_of_two
):
	"""It came back to its own queue, which is served first, before those for whom it had left."""
	submit_due_in(LATER_SECONDS, world, queue)
	wait_for_one_that_lingers()
	(message,) = send_native("long")
	wait_until(lambda: is_taken(message, "long"), PROMPT_SECONDS, sweeping=False)
	# and somebody waits on, at either queue
	wait_until(lambda: any(map(_is_awake, ("short", "long"))), PROMPT_SECONDS, sweeping=False)


def _is_awake(rq_queue: str) -> bool:
	return bool(bell.client().exists(bell._key("awake", rq_queue)))


def test_one_that_waits_for_what_falls_due_leaves_for_work_of_its_site_in_another_queue(
	world, queue, queue_behind, worker_of_two
):
	submit_due_in(LATER_SECONDS, world, queue)
	wait_for_one_that_lingers()
	name = submit(REPEATABLE, {"steps": 1}, world.a, job_queue=queue_behind).name
	frappe.db.commit()
	wait_until(lambda: stored_status(name) == "Completed", PROMPT_SECONDS, sweeping=False)


def test_what_falls_due_in_a_queue_that_nobody_waits_at_is_started_in_time(
	world, queue, queue_behind, worker_of_two
):
	"""A worker that waits at one of its queues rings for the other."""
	name = submit_due_in(10, world, queue)
	wait_for_one_that_lingers()
	send_native("long")
	wait_for_one_that_lingers("long")
	assert_started_in_time(name)


def test_one_that_is_killed_while_it_waits_for_what_falls_due_is_followed_by_another(world, queue, worker):
	name = submit_due_in(15, world, queue)
	wait_for_one_that_lingers()
	kill_worker(worker)
	another = start_worker()
	try:
		assert_started_in_time(name)
	finally:
		stop_worker(another)


def hold(schedule: str) -> None:
	"""As somebody does who has saved it, and has more to do before the commit."""
	frappe.db.sql("select name from `tabJob Schedule` where name = %s for update", schedule)
	is_held.set()
	is_enough.wait(60)


def processes_of(worker, seconds: float) -> int:
	"""How many messages a worker answers meanwhile, each in a process of its own."""
	seen, until = set(), time.monotonic() + seconds
	while time.monotonic() < until:
		seen.update(children_of(worker.pid))
		time.sleep(0.01)
	return len(seen)


def test_a_worker_is_not_sent_to_and_fro_by_what_somebody_holds(world, queue, queue_behind, worker_of_two):
	"""It is due for each of its queues, and neither can do anything about it."""
	due = database.utc_now() + timedelta(seconds=6)
	made = make_schedule(world.a, due)
	with beside(hold, (made.name,)) as held:
		is_held.wait(30)
		for each in (queue, queue_behind):
			submit(REPEATABLE, {"steps": 1}, world.a, job_queue=each)
		frappe.db.commit()
		wait_for_one_that_lingers("long")
		wait_until(lambda: database.utc_now() > due, 30, sweeping=False)
		answered = processes_of(worker_of_two, 8)
		is_enough.set()
		held.get(30)
	wait_until(lambda: fires_of(made.name), 2 * bell.RING_SECONDS, sweeping=False)
	forget_all()
	assert answered <= 4
