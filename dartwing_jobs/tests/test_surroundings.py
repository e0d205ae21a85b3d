"""What a job leaves behind in its process or its session, no job of another organization finds."""

import os
import sys

import frappe
import pytest

from dartwing_jobs import submit
from dartwing_jobs.engine import database
from dartwing_jobs.engine.drain import Drain
from dartwing_jobs.engine.handling import surroundings
from dartwing_jobs.engine.handling.session_state import may_last
from dartwing_jobs.tests import leaking, workers
from dartwing_jobs.tests.processes import in_other_processes
from dartwing_jobs.tests.world import make_job_type

HERE = "dartwing_jobs.tests.leaking"
LEAK, LOOK = f"{HERE}.leak", f"{HERE}.look"
TIDY = 4


@pytest.fixture
def queue(site):
	name = workers.make_queue()
	yield name
	workers.retire_queue(name)


@pytest.fixture(scope="module")
def untouched(world) -> dict:
	"""What is found by jobs that share a process with others that leave nothing."""
	queue = workers.make_queue()
	names = [workers.submit(world.b, queue, LOOK) for _ in range(TIDY)]
	assert drain_in_a_new_process(queue) == TIDY
	first, *others = map(output, names)
	assert all(other == first for other in others)
	return first


def drain_in_a_new_process(queue: str) -> int:
	"""As a worker does it; returns how many jobs were run until nothing was due, or the process was to go."""
	(started,) = in_other_processes(_drain, (queue,))
	frappe.db.rollback()
	return started


def _drain(queue: str) -> int:
	database.read_committed()
	drain = Drain("short", None, [queue])
	while drain.look() and drain.run_due() and not drain.is_over:
		pass
	return drain.started_jobs


def last_run(job_name: str):
	return frappe.get_last_doc("Job Run", {"background_job": job_name})


def output(job_name: str) -> dict:
	return frappe.parse_json(last_run(job_name).output)


@pytest.mark.parametrize("what", leaking.LEAKS)
def test_another_organization_finds_nothing_of_it(world, queue, untouched, what):
	left = workers.submit(world.a, queue, LEAK, {"what": what})
	behind = workers.submit(world.b, queue, LOOK)
	started = drain_in_a_new_process(queue)
	assert started == (2 if what in leaking.AFTER_THE_COMMIT else 1)
	assert drain_in_a_new_process(queue) == 1
	# what a job wrote before it connected anew is lost
	is_failure = what in ("failure", "replaced connection")
	assert last_run(left).status == ("Failed" if is_failure else "Completed")
	assert last_run(left).worker != last_run(behind).worker
	assert output(behind) == untouched


@pytest.mark.parametrize("fail", [False, True])
def test_jobs_that_use_the_database_share_a_process(world, queue, fail):
	"""A failed one, too: a transaction that failed cannot be asked for anything, but its rollback is."""
	for number in range(3):
		given = {"organization": f"{queue} {number}", "fail": fail}
		workers.submit(world.a, queue, f"{HERE}.work", given, max_retries=0)
	assert drain_in_a_new_process(queue) == 3


def test_jobs_that_ask_nothing_of_the_database_cost_no_question(world, queue):
	"""Whether the session is as before: a trip for each empty job would be more than it may cost."""
	for _number in range(TIDY):
		workers.submit(world.a, queue, "dartwing_jobs.samples.do_nothing")
	(asked,) = in_other_processes(_drain_and_count_questions, (queue,))
	assert asked <= 2  # when the drain began, and for the first job, for which its user was looked up


def _drain_and_count_questions(queue: str) -> int:
	asked, ask = [], surroundings._state_of_session
	surroundings._state_of_session = lambda: asked.append(ask()) or asked[-1]
	assert _drain(queue) == TIDY
	return len(asked)


def test_a_watch_takes_the_place_of_the_one_before(site):
	"""A process may drain again and again: what it sends is not looked at once more each time."""
	(layers,) = in_other_processes(_layers_of_watches, (50,))
	assert layers == 1


def _layers_of_watches(drains: int) -> int:
	database.read_committed()
	for _drain in range(drains):
		Drain("short", None, [])
	return [kind.__name__ for kind in type(frappe.db._cursor).__mro__].count("Watched")


def test_what_the_import_of_a_handler_changes_is_kept(world, queue):
	"""Or each of its jobs would need a process of its own."""
	make = make_job_type(handler_method="dartwing_jobs.samples.execute_sample_job").name
	frappe.db.set_value("Job Type", make, "handler_method", "dartwing_jobs.tests.setting_up.work")
	for _number in range(3):
		submit(make, None, world.a, job_queue=queue)
	frappe.db.commit()
	assert "dartwing_jobs.tests.setting_up" not in sys.modules
	assert drain_in_a_new_process(queue) == 3


@pytest.mark.parametrize("what", leaking.AFTER_THE_COMMIT)
def test_what_was_started_before_the_leak_is_handed_back_uncounted(world, queue, what):
	"""What is done after a commit is done when the next job has been started by the same commit."""
	workers.submit(world.a, queue, LEAK, {"what": what})
	behind = workers.submit(world.b, queue, LOOK)
	drain_in_a_new_process(queue)
	job = frappe.get_doc("Background Job", behind)
	assert (job.status, job.attempt, job.retry_count) == ("Queued", 0, 0)
	assert last_run(behind).uncounted
	assert "needs a new process" in last_run(behind).error_message


def test_the_end_of_a_job_is_recorded_in_spite_of_what_it_did(world, queue):
	"""It keeps the engine's statements from their tables."""
	left = workers.submit(world.a, queue, f"{HERE}.stop_the_engine")
	assert drain_in_a_new_process(queue) == 1
	job = frappe.get_doc("Background Job", left)
	assert job.status in ("Dead Letter", "Queued")
	assert last_run(left).status == "Failed"
	assert last_run(left).finished_at


def test_a_drain_goes_on_in_its_own_folder(world, queue):
	"""Its engine writes files and logs after the job, too."""
	workers.submit(world.a, queue, LEAK, {"what": "folder"})
	(folder,) = in_other_processes(_drain_and_tell_folder, (queue,))
	assert folder == os.getcwd()


def _drain_and_tell_folder(queue: str) -> str:
	_drain(queue)
	return os.getcwd()


@pytest.mark.parametrize(
	"query",
	[
		"select name from `tabUser` where name = 'a@example.com'",
		" \n(select 1) union (select 2)",
		"/* traced */ update `tabUser` set enabled = 1; ",
		"-- why\ninsert into t values (%s); select 1; -- done",
		"with a as (select 1) select * from a",
		b"delete from t",
		"savepoint a",
		"rollback to savepoint a",
		"START TRANSACTION READ ONLY",
	],
)
def test_ordinary_statements_leave_nothing(query):
	assert not may_last(query)


@pytest.mark.parametrize(
	"query",
	[
		"set session sql_mode = ''",
		"SET LOCAL sql_mode = ''",
		"select 1; set timezone = 'UTC'",
		"/*! set sql_mode = '' */",
		"/*M!100100 set sql_mode = '' */ select 1",
		"-- select\nset role none",
		"begin not atomic set @a = 1; end",
		"select @a := 1",
		"select name into @a from `tabUser`",
		"select GET_LOCK('a', 1)",
		"select pg_try_advisory_lock_shared(1)",
		"select set_config('role', 'none', false)",
		"select 1 into temp t",
		"lock tables a write",
		"call anything()",
		"prepare a from 'select 1'",
		"do $$ begin set role none; end $$",
		"copy t from stdin",
		"use mysql",
		"/* a */" * 50 + "/*" * 5000,
		"-- " * 5000 + "\nx",
		b"create temporary table t (a int)",
	],
)
def test_what_may_last_is_seen(query):
	assert may_last(query)
