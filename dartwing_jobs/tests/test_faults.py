"""Accidents, with real processes and signals: no committed job is lost, none leaves its effect twice."""

import multiprocessing
import os
import random
import signal
import socket
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta

import frappe
import pytest

from dartwing_jobs import clock
from dartwing_jobs.engine import attempt as attempts
from dartwing_jobs.engine import bell, promote, states, sweep
from dartwing_jobs.engine.submit import submit_many
from dartwing_jobs.testing import fall_due, lose_worker, run_all_due, run_job, start_job
from dartwing_jobs.tests import effects, strangers, workers
from dartwing_jobs.tests.workers import (
	Crew,
	children_of,
	horse_of,
	is_alive,
	jobs_of,
	make_queue,
	retire_queue,
	set_times,
	stop_worker,
	wait_for,
	wait_for_progress,
	wait_until,
)
from dartwing_jobs.tests.world import make_job_type, planted, stored_status

HANDLERS = "dartwing_jobs.tests.fault_handlers"
TIMES = {"lease_seconds": 3, "linger_seconds": 1}
# after an accident a job runs again within its lease, a sweep and its backoff
RUNS_AGAIN_SECONDS = 15
ON_TIME_SECONDS = 5
SUBMIT_SECONDS = 0.5
RACES = 1000
PROCESSES, JOBS_EACH, KILLS = 4, 2000, 10


@pytest.fixture(scope="module", autouse=True)
def short_times(site):
	"""Leases of seconds, and a table for effects; as it was before, afterwards."""
	effects.create_table()
	before = set_times(TIMES)
	yield
	set_times(before)
	effects.drop_table()


@pytest.fixture(scope="module")
def crew(short_times):
	crew = Crew()
	yield crew
	crew.of(0)


@pytest.fixture
def queue(site):
	"""A queue of its own for each test; afterwards everything in it must have ended."""
	queue = make_queue()
	yield queue
	retire_queue(queue)
	assert_all_ended(queue)


@pytest.fixture
def lonely_queue(site):
	"""The same, but of an RQ queue that no worker serves."""
	queue = make_queue("long")
	yield queue
	retire_queue(queue)
	assert_all_ended(queue)


def assert_all_ended(queue: str) -> None:
	jobs = jobs_of(queue)
	assert jobs
	assert _count(queue, status=["in", list(states.TERMINAL)]) == len(jobs)
	assert _count(queue, lease_token=None, run_at=None, claim_key=0) == len(jobs)
	assert not frappe.db.count("Job Run", {"background_job": ["in", jobs], "status": "Running"})


def submit(world, queue, handler, parameters=None, **fields) -> str:
	return workers.submit(world.a, queue, f"{HANDLERS}.{handler}", parameters, **fields)


def assert_done(job_name: str, attempts: int, runs: int) -> None:
	"""Completed, with its effect once; `runs` are more than `attempts` if some did not count."""
	wait_for(job_name, "Completed")
	assert len(effects.left_by(job_name)) == 1
	assert frappe.db.get_value("Background Job", job_name, "attempt") == attempts
	assert _runs(job_name) == runs


def wait_for_second_run(job_name: str) -> None:
	wait_until(lambda: _runs(job_name) == 2, RUNS_AGAIN_SECONDS)


# processes that are killed, stopped and frozen


def test_a_killed_horse_loses_nothing(world, queue, crew):
	crew.of(1)
	job_name = submit(world, queue, "hang_at_first")
	wait_for_progress(job_name)
	os.kill(horse_of(job_name), signal.SIGKILL)
	wait_for_second_run(job_name)
	assert_done(job_name, attempts=2, runs=2)


def test_a_horse_that_is_killed_with_its_watchdog_loses_nothing(world, queue, crew):
	crew.of(1)
	job_name = submit(world, queue, "hang_at_first")
	wait_for_progress(job_name)
	horse = horse_of(job_name)
	for pid in [*children_of(horse), horse]:
		os.kill(pid, signal.SIGKILL)
	wait_for_second_run(job_name)
	assert_done(job_name, attempts=2, runs=2)


def test_a_killed_worker_loses_nothing_and_its_horse_ends(world, queue, crew):
	crew.of(2)
	job_name = submit(world, queue, "hang_at_first")
	wait_for_progress(job_name)
	horse = horse_of(job_name)
	crew.worker_of(horse).kill()
	wait_until(lambda: not is_alive(horse), RUNS_AGAIN_SECONDS)
	wait_for_second_run(job_name)
	assert_done(job_name, attempts=2, runs=2)


def test_a_stopped_worker_leaves_its_job_to_another(world, queue, crew):
	crew.of(2)
	job_name = submit(world, queue, "step_at_first")
	wait_for_progress(job_name)
	stop_worker(crew.worker_of(horse_of(job_name)))
	wait_for_second_run(job_name)
	assert_done(job_name, attempts=1, runs=2)
	assert frappe.db.get_value("Background Job", job_name, "retry_count") == 0


def test_a_frozen_worker_that_wakes_too_late_changes_nothing(world, queue, crew, tmp_path):
	crew.of(2)
	woke = tmp_path / "woke"
	job_name = submit(world, queue, "oversleep_at_first", {"woke": str(woke)})
	wait_for_progress(job_name)
	horse = horse_of(job_name)
	worker, (watchdog,) = crew.worker_of(horse), children_of(horse)
	for pid in (watchdog, horse):
		os.kill(pid, signal.SIGSTOP)
	assert_done(job_name, attempts=2, runs=2)
	ended = frappe.get_doc("Background Job", job_name).as_dict()
	os.kill(horse, signal.SIGCONT)
	wait_until(woke.exists)
	os.kill(watchdog, signal.SIGCONT)
	stop_worker(worker)  # once it has ended, its horse has done whatever it wanted to do
	assert frappe.get_doc("Background Job", job_name).as_dict() == ended
	assert_done(job_name, attempts=2, runs=2)


@pytest.mark.parametrize("meanwhile", ["waits again", "runs elsewhere", "has ended"])
def test_an_attempt_whose_lease_was_given_away_changes_nothing(world, lonely_queue, meanwhile):
	job_name = submit(world, lonely_queue, "work")
	promote.promote_due([lonely_queue])
	late = start_job(job_name)
	lose_worker(job_name)
	sweep.reap_expired()
	fall_due(job_name)
	second = start_job(job_name) if meanwhile == "runs elsewhere" else None
	if meanwhile == "has ended":
		run_job(job_name)
	attempts.run(late)
	if second:
		assert not effects.left_by(job_name)
		attempts.run(second)
	run_all_due(lonely_queue)
	assert_done(job_name, attempts=2, runs=2)


def test_a_job_that_kills_its_process_each_time_is_buried(world, queue, crew):
	crew.of(1)
	job_name = submit(world, queue, "kill_the_process", max_retries=2)
	wait_for(job_name, "Dead Letter")
	assert frappe.db.get_value("Background Job", job_name, "attempt") == _runs(job_name) == 3
	assert not effects.left_by(job_name)


def test_a_failure_after_the_commit_does_not_undo_the_job_or_stop_the_next(world, queue, crew):
	crew.of(1)
	first = submit(world, queue, "fail_after_the_commit")
	second = submit(world, queue, "work")
	for job_name in (first, second):
		assert_done(job_name, attempts=1, runs=1)


# what is due while nobody looks


def test_what_falls_due_starts_on_time_with_idle_workers_and_no_scheduler(world, queue, crew):
	crew.of(2)
	delayed = submit(world, queue, "work", scheduled_for=clock.now() + timedelta(seconds=4))
	due = {delayed: frappe.db.get_value("Background Job", delayed, "scheduled_for")}
	retried = submit(world, queue, "fail_at_first")
	due[retried] = wait_until(
		lambda: frappe.db.get_value("Background Job", retried, "next_retry_at"), sweeping=False
	)
	for job_name in (retried, delayed):
		wait_until(lambda job_name=job_name: stored_status(job_name) == "Completed", sweeping=False)
		late = frappe.db.get_value("Background Job", job_name, "started_at") - due[job_name]
		assert 0 <= late.total_seconds() < ON_TIME_SECONDS
	assert_done(retried, attempts=2, runs=2)
	assert_done(delayed, attempts=1, runs=1)


# Redis


def test_redis_wiped_before_the_ring(world, queue, crew):
	crew.of(1)
	warm = submit(world, queue, "work")
	wait_for(warm, "Completed")
	wipe_redis()
	assert_done(submit(world, queue, "work"), attempts=1, runs=1)


def test_redis_wiped_after_the_ring(world, queue, crew):
	crew.of(0)
	job_name = submit(world, queue, "work")
	wipe_redis()
	crew.of(1)
	assert_done(job_name, attempts=1, runs=1)


def test_redis_wiped_during_the_run(world, queue, crew):
	crew.of(1)
	job_name = submit(world, queue, "work_for_a_second")
	wait_for_progress(job_name)
	wipe_redis()
	assert_done(job_name, attempts=1, runs=1)
	assert_done(submit(world, queue, "work"), attempts=1, runs=1)


def wipe_redis() -> None:
	"""Everything of RQ and of the bell; a site's cache may live in the same Redis."""
	keys = list(bell.client().scan_iter("rq:*"))
	assert keys
	bell.client().delete(*keys)


@pytest.mark.parametrize("silence", ["nobody listens", "nobody answers"])
def test_a_submit_does_not_wait_for_redis(world, site, queue, lonely_queue, crew, silence):
	"""However many queues a transaction rings for; the jobs run once Redis is back."""
	crew.of(1)
	job_type = make_job_type(handler_method=f"{HANDLERS}.work").name
	frappe.db.commit()
	with socket.create_server(("127.0.0.1", 0)) as server, _other_process() as other:
		url = f"redis://127.0.0.1:{server.getsockname()[1]}"
		if silence == "nobody listens":
			server.close()
		where = (url, site, job_type, world.a, [queue, lonely_queue])
		(first, second), seconds = other.submit(strangers.submit_with_redis_at, *where).result()
	assert seconds < SUBMIT_SECONDS
	assert_done(first, attempts=1, runs=1)
	run_all_due(lonely_queue)
	assert_done(second, attempts=1, runs=1)


# the database


def test_a_lost_connection_is_a_failure_that_goes_away(world, queue, crew):
	crew.of(1)
	job_name = submit(world, queue, "lose_the_connection_at_first")
	wait_for_progress(job_name)
	_end_connection(int(frappe.db.get_value("Background Job", job_name, "progress_message")))
	wait_for_second_run(job_name)
	first = frappe.get_last_doc("Job Run", {"background_job": job_name, "attempt": 1})
	assert (first.status, first.error_type) == ("Failed", "Transient")
	assert_done(job_name, attempts=2, runs=2)


def test_two_that_race_for_one_job_never_both_get_it(world, site, lonely_queue):
	submit_in_line(world, lonely_queue, "work_once", RACES)
	queues = _give_each_its_own_queue(lonely_queue)
	processes = multiprocessing.get_context("spawn")
	barrier, won = processes.Barrier(2), processes.Queue()
	racers = [processes.Process(target=strangers.race, args=(site, queues, barrier, won)) for _ in range(2)]
	for racer in racers:
		racer.start()
	results = [won.get(timeout=120) for _ in racers]
	for racer in racers:
		racer.join()
	_bring_back(lonely_queue, queues)
	assert sum(results) == RACES
	assert min(results) > 0
	assert _count(lonely_queue, status="Completed", attempt=1) == effects.left_in(lonely_queue) == RACES


def test_thousands_of_effects_happen_once_while_horses_are_killed(world, queue, crew):
	crew.of(PROCESSES)
	total = PROCESSES * JOBS_EACH
	submit_in_line(world, queue, "work_once", total)
	killed = []
	wait_until(lambda: _count(queue, status="Completed") > 0)

	def all_have_ended() -> bool:
		done = _count(queue, status="Completed")
		if len(killed) < KILLS and done > total * (len(killed) + 1) / (KILLS + 2):
			killed.append(kill_a_horse(crew))
		return done == total

	wait_until(all_have_ended, 300, every=0.25)
	assert len(killed) == KILLS
	assert effects.left_in(queue) == total
	assert _count(queue, attempt=[">", 1]) <= KILLS * 2


def submit_in_line(world, queue: str, handler: str, number: int) -> None:
	backoff = {"backoff_base_seconds": 1, "backoff_cap_seconds": 1}
	job_type = make_job_type(handler_method=f"{HANDLERS}.{handler}", **backoff).name
	submit_many(job_type, [{}] * number, world.a, job_queue=queue)
	frappe.db.commit()


def kill_a_horse(crew: Crew) -> int:
	horse = wait_until(lambda: crew.horses() and random.choice(crew.horses()))
	os.kill(horse, signal.SIGKILL)
	return horse


def _count(queue: str, **filters) -> int:
	return frappe.db.count("Background Job", {"name": ["in", jobs_of(queue)], **filters})


def _runs(job_name: str) -> int:
	return frappe.db.count("Job Run", {"background_job": job_name})


def _other_process() -> ProcessPoolExecutor:
	return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


def _end_connection(number: int) -> None:
	frappe.db.multisql(
		{"mariadb": f"kill {number}", "postgres": f"select pg_terminate_backend({number})"},
	)


def _give_each_its_own_queue(queue: str) -> list[str]:
	"""So that whoever loses a race finds nothing else to take."""
	jobs = frappe.get_all("Background Job", filters={"job_queue": queue}, pluck="name")
	planted.update(jobs)
	frappe.db.sql(
		"update `tabBackground Job` set job_queue = name, line = name where job_queue = %s", (queue,)
	)
	frappe.db.commit()
	return jobs


def _bring_back(queue: str, jobs: list[str]) -> None:
	frappe.db.sql("update `tabBackground Job` set job_queue = %s where name in %s", (queue, tuple(jobs)))
	frappe.db.commit()
