"""A worker that cannot renew its lease ends its handler before another worker may run the job."""

import contextlib
import os
import signal
import time
from pathlib import Path

import frappe
import pytest

from dartwing_jobs.engine import sweep
from dartwing_jobs.engine.watchdog import Watchdog
from dartwing_jobs.testing import fall_due, lose_worker
from dartwing_jobs.tests import effects, guarding, silent_proxy, workers
from dartwing_jobs.tests.guarding import handled_for
from dartwing_jobs.tests.processes import beside
from dartwing_jobs.tests.workers import (
	Crew,
	children_of,
	horse_of,
	is_alive,
	make_queue,
	retire_queue,
	set_times,
	wait_for,
	wait_for_progress,
	wait_until,
)
from dartwing_jobs.tests.world import stored_status

HANDLERS = "dartwing_jobs.tests.fault_handlers"
LEASE_SECONDS = 3
TIMES = {"lease_seconds": LEASE_SECONDS, "linger_seconds": 30}


@pytest.fixture(scope="module", autouse=True)
def short_times(site):
	effects.create_table()
	before = set_times(TIMES)
	yield
	set_times(before)
	effects.drop_table()


@pytest.fixture(scope="module")
def proxy(short_times):
	with silent_proxy.for_new_processes() as proxy:
		yield proxy


@pytest.fixture(scope="module")
def crew(proxy):
	"""Workers whose only way to the database is the proxy."""
	crew = Crew()
	yield crew
	crew.of(0)


@pytest.fixture
def queue(site):
	queue = make_queue()
	yield queue
	retire_queue(queue)


@pytest.fixture
def marks(tmp_path):
	return tmp_path / "marks"


def start(world, queue, handler, **parameters) -> tuple[str, int]:
	"""A job that is in the middle of its work, and its process."""
	job_name = workers.submit(world.a, queue, f"{HANDLERS}.{handler}", parameters)
	wait_for_progress(job_name)
	return job_name, horse_of(job_name)


def run_again_at_once(job_name: str) -> None:
	"""The time passes after which a lost worker is noticed, and that of the backoff."""
	lose_worker(job_name)
	sweep.reap_expired()
	fall_due(job_name)


def tries_in(marks: Path) -> list[list[float]]:
	"""For each process that left marks, when it did."""
	found: dict[str, list[float]] = {}
	for line in marks.read_text().splitlines():
		pid, moment = line.split()
		found.setdefault(pid, []).append(float(moment))
	return list(found.values())


def assert_side_by_side_never(marks: Path) -> None:
	first, second = tries_in(marks)
	assert first[-1] < second[0]


@pytest.mark.parametrize("handler", ["leave_marks_at_first", "compute_at_first"])
def test_a_drain_whose_watchdog_is_killed_ends(world, queue, crew, marks, handler):
	"""Whatever its handler does, also in C code."""
	crew.of(1)
	job_name, horse = start(world, queue, handler, marks=str(marks))
	(watchdog,) = children_of(horse)
	os.kill(watchdog, signal.SIGKILL)
	wait_until(lambda: not is_alive(horse), 1, sweeping=False)
	run_again_at_once(job_name)
	wait_for(job_name, "Completed")


def test_a_watchdog_whose_connection_falls_silent_finds_another_in_time(world, queue, crew, proxy, marks):
	crew.of(1)
	parameters = {"marks": str(marks), "seconds": LEASE_SECONDS * 1.1}
	job_name, horse = start(world, queue, "leave_marks_at_first", **parameters)
	(watchdog,) = children_of(horse)
	silent = silent_proxy.ports_of(watchdog) - silent_proxy.ports_of(horse)  # a fork lets go a moment later
	proxy.swallow(lambda port: port in silent)
	wait_for(job_name, "Completed")
	proxy.heal()
	assert len(tries_in(marks)) == 1


def test_silence_ends_every_drain(world, queue, crew, proxy, marks):
	"""One that runs a handler before its lease ends, one that waits for work soon after."""
	crew.of(2)
	job_name, horse = start(world, queue, "leave_marks_at_first", marks=str(marks))
	wait_for(workers.submit(world.a, queue, f"{HANDLERS}.work"), "Completed")  # its worker waits for more
	(watchdog,), (idle,) = children_of(horse), set(crew.horses()) - {horse}
	proxy.swallow()
	began = time.monotonic()
	wait_until(lambda: not is_alive(horse), 2 * LEASE_SECONDS, sweeping=False)
	assert time.monotonic() - began < LEASE_SECONDS
	wait_until(lambda: not is_alive(idle), 3 * LEASE_SECONDS, sweeping=False)
	proxy.heal()
	wait_until(lambda: not is_alive(watchdog), 2 * LEASE_SECONDS, sweeping=False)
	fall_due(job_name)
	wait_for(job_name, "Completed")
	assert_side_by_side_never(marks)


def test_a_drain_is_watched_before_it_asks_the_database_anything(world, queue, crew, proxy):
	"""Frappe asks first what it does not have in its cache: a job before this one has filled that."""
	crew.of(1)
	wait_for(workers.submit(world.a, queue, f"{HANDLERS}.work"), "Completed")
	(idle,) = crew.horses()
	proxy.swallow()
	try:
		wait_until(lambda: not is_alive(idle), 4 * LEASE_SECONDS, sweeping=False)
		job_name = workers.submit(world.a, queue, f"{HANDLERS}.work")
		(horse,) = wait_until(lambda: set(crew.horses()) - {idle}, sweeping=False)
		wait_until(lambda: children_of(horse), sweeping=False)
	finally:
		proxy.heal()
	os.kill(horse, signal.SIGKILL)  # it waits for what was swallowed
	wait_for(job_name, "Completed")


def test_a_handler_ends_in_time_when_the_database_goes_away(world, queue, crew, proxy, marks):
	crew.of(1)
	job_name, horse = start(world, queue, "leave_marks_at_first", marks=str(marks))
	proxy.go_away()
	wait_until(lambda: not is_alive(horse), LEASE_SECONDS, sweeping=False)
	proxy.come_back()
	wait_until(lambda: stored_status(job_name) == "Queued", sweeping=False)
	fall_due(job_name)
	wait_for(job_name, "Completed")
	assert_side_by_side_never(marks)


def test_reports_that_nobody_reads_do_not_keep_a_handler_waiting():
	with beside(_report_to_a_stopped_watchdog, (5000,)) as reported:
		assert reported.get(timeout=10) == [5000]


def _report_to_a_stopped_watchdog(times: int) -> int:
	watchdog = Watchdog("short")
	os.kill(watchdog.pid, signal.SIGSTOP)
	for _time in range(times):
		watchdog.report("a job", {"progress": 40, "progress_message": "x" * 100})
	os.kill(watchdog.pid, signal.SIGCONT)
	watchdog.stop()
	return times


# the next job is started in the commit that ends the last one


@pytest.fixture
def two_jobs(world, queue, crew, marks):
	"""One that works on for longer than a lease after its commit, and one that is started with its end."""
	crew.of(1)
	frappe.db.set_value("Job Queue", queue, "paused", 1)
	parameters = {"marks": str(marks), "seconds": LEASE_SECONDS * 1.1}
	first = workers.submit(world.a, queue, f"{HANDLERS}.work_after_the_commit", parameters)
	second = workers.submit(world.a, queue, f"{HANDLERS}.work", max_retries=0)
	document = frappe.get_doc("Job Queue", queue)
	document.paused = 0
	document.save()
	frappe.db.commit()
	return first, second


def runs_of(job_name: str) -> list[int]:
	"""For each attempt of a job, whether it was left uncounted."""
	rows = frappe.get_all("Job Run", {"background_job": job_name}, ["uncounted"], order_by="started_at")
	return [row.uncounted for row in rows]


def test_work_after_a_commit_takes_no_attempt_from_the_next_job(two_jobs, marks):
	first, second = two_jobs
	wait_for(second, "Completed")
	assert runs_of(first) == runs_of(second) == [0]
	assert len(tries_in(marks)[0]) == 2  # it came to its end


def test_a_kill_after_a_commit_takes_no_attempt_from_the_next_job(two_jobs, marks):
	first, second = two_jobs
	wait_until(marks.exists)
	frappe.db.rollback()
	horse = frappe.db.get_value("Job Run", {"background_job": first}, "worker").rpartition(":")[2]
	os.kill(int(horse), signal.SIGKILL)
	wait_for(second, "Completed")
	assert stored_status(first) == "Completed"
	assert (runs_of(first), runs_of(second)) == ([0], [0])
	assert frappe.db.get_value("Background Job", second, "attempt") == 1


# what ends a drain needs no database: a process stands for the drain, and another one guards it


@pytest.fixture
def guarded():
	"""Starts a process that only sleeps, a worker above it, and beside it a guard that has no database."""
	with contextlib.ExitStack() as ending:
		yield lambda *arguments, **options: ending.enter_context(guarding.guarded(*arguments, **options))


LONG_LEASE = 30


def test_a_handler_beyond_its_deadline_ends_while_the_database_is_away(guarded):
	drain = guarded(LONG_LEASE, work=handled_for(100, timeout=97.9))
	drain.must_be_killed_within(1)


def test_a_handler_within_its_deadline_is_left_alone(guarded):
	drain = guarded(LONG_LEASE, work=handled_for(100, timeout=120, held_for=0.85 * LONG_LEASE))
	drain.must_live_for(0.3)


def test_a_handler_whose_lease_is_nearly_over_ends(guarded):
	drain = guarded(LONG_LEASE, work=handled_for(100, timeout=1000, held_for=0.95 * LONG_LEASE))
	drain.must_be_killed_within(1)


def test_a_drain_whose_worker_has_gone_ends_while_the_database_is_away(guarded):
	drain = guarded(LONG_LEASE, work=None)
	os.kill(drain.worker, signal.SIGKILL)
	drain.must_be_killed_within(1)


@pytest.mark.parametrize("is_handling", [False, True])
def test_only_an_engine_that_waits_for_an_answer_of_its_own_is_stuck(guarded, is_handling):
	drain = guarded(LONG_LEASE, handled_for(5, timeout=1000), is_handling, still_for=2.1 * LONG_LEASE)
	if is_handling:
		drain.must_live_for(0.3)
	else:
		drain.must_be_killed_within(1)


def test_a_drain_that_hangs_before_it_has_read_its_settings_ends(guarded):
	drain = guarded(0, work=None, still_for=61)
	drain.must_be_killed_within(1)


def test_what_follows_a_handler_may_outlast_its_lease_and_its_deadline(guarded):
	drain = guarded(LONG_LEASE, handled_for(100, timeout=10, held_for=100), is_handling=False)
	drain.must_live_for(0.3)
