"""The story of a job, from submit to its end: the first test to read."""

import frappe
import pytest

from dartwing_jobs.engine import attempt, claim, drain, promote, statements, states, sweep
from dartwing_jobs.engine.order import OUT_OF_LINE
from dartwing_jobs.testing import fall_due, lose_worker, run_job, start_job
from dartwing_jobs.tests.world import (
	make_job,
	make_job_type,
	make_queue,
	make_user,
	plant,
	stored_status,
	story,
)

SAMPLES = "dartwing_jobs.samples"


@pytest.fixture
def queue():
	"""A queue of its own for each test, so that drains see nothing else."""
	return make_queue()


def submit(world, queue, handler="execute_sample_job", parameters=None, handlers=SAMPLES, **fields):
	job_type = make_job_type(handler_method=f"{handlers}.{handler}", backoff_base_seconds=1)
	job = make_job(world.a, job_type=job_type.name, job_queue=queue, input_parameters=parameters, **fields)
	frappe.db.commit()
	return job.name


def in_order(queue):
	"""The jobs of a queue as workers would take them."""
	turns, names = claim.Turns([queue]), []
	while job := turns.take_next():
		names.append(job.name)
		statements.update("Background Job", job.name, OUT_OF_LINE)
	frappe.db.rollback()
	return names


def stored(job_name):
	return frappe.get_doc("Background Job", job_name)


def test_a_job_succeeds(world, queue):
	job_name = submit(world, queue, parameters={"steps": 2})
	assert drain.drain([queue]) == 1
	job = stored(job_name)
	assert (job.status, job.progress, job.attempt, job.retry_count) == ("Completed", 100, 1, 0)
	assert job.started_at <= job.completed_at
	assert (job.lease_token, job.claim_key, job.run_at) == (None, 0, None)
	assert [event for _before, _after, event in story(job_name)] == [
		"job.created",
		"job.enqueued",
		"job.started",
		"job.succeeded",
	]
	run = frappe.get_last_doc("Job Run", {"background_job": job_name})
	assert (run.status, run.attempt, run.organization) == ("Completed", 1, world.a)
	assert frappe.parse_json(run.params_snapshot) == {"steps": 2}
	assert frappe.parse_json(run.output) == {"steps": 2}


def test_a_job_that_fails_is_tried_again(world, queue):
	job_name = submit(world, queue, "fail_for_a_while", {"attempts": 2})
	drain.drain([queue])
	job = stored(job_name)
	assert (job.status, job.retry_count, job.error_type) == ("Queued", 1, "Transient")
	assert "busy" in job.error_message
	assert job.next_retry_at
	fall_due(job_name)
	drain.drain([queue])
	assert (stored_status(job_name), stored(job_name).attempt) == ("Completed", 2)
	moves = [(before, after) for before, after, _event in story(job_name)]
	assert (states.RUNNING, states.FAILED) in moves
	assert (states.FAILED, states.QUEUED) in moves
	assert frappe.db.count("Job Run", {"background_job": job_name}) == 2


def test_a_job_that_keeps_failing_is_buried(world, queue):
	job_name = submit(world, queue, "fail_for_a_while", {"attempts": 99}, max_retries=1)
	drain.drain([queue])
	fall_due(job_name)
	drain.drain([queue])
	job = stored(job_name)
	assert (job.status, job.attempt, job.retry_count) == ("Dead Letter", 2, 1)
	last = frappe.get_last_doc("Job Execution Log", {"background_job": job_name, "event": "job.deadlettered"})
	assert last.message == "JOB_EXHAUSTED_RETRIES"


def test_a_job_that_cannot_succeed_is_buried_at_once(world, queue):
	job_name = submit(world, queue, "fail_for_good")
	drain.drain([queue])
	job = stored(job_name)
	assert (job.status, job.error_type, job.attempt) == ("Dead Letter", "Permanent", 1)
	run = frappe.get_last_doc("Job Run", {"background_job": job_name})
	assert "fail_for_good" in run.traceback


def test_a_delayed_job_waits(world, queue):
	job_name = submit(world, queue, scheduled_for="2099-01-01 00:00:00")
	assert drain.drain([queue]) == 0
	assert stored_status(job_name) == "Pending"
	fall_due(job_name)
	assert drain.drain([queue]) == 1
	assert stored_status(job_name) == "Completed"


def test_a_child_waits_for_its_parent(world, queue):
	parent = submit(world, queue, "fail_for_a_while", {"attempts": 2})
	child = submit(world, queue, depends_on=parent)
	drain.drain([queue])
	assert (stored_status(parent), stored_status(child)) == ("Queued", "Pending")
	fall_due(parent)
	drain.drain([queue])
	assert (stored_status(parent), stored_status(child)) == ("Completed", "Completed")


def test_a_parent_that_ends_badly_settles_its_children(world, queue):
	parent = submit(world, queue, "fail_for_good")
	child = submit(world, queue, depends_on=parent)
	grandchild = submit(world, queue, depends_on=child)
	stubborn = submit(world, queue, depends_on=parent, on_parent_failure="Run Anyway")
	drain.drain([queue])
	assert stored_status(child) == stored_status(grandchild) == "Canceled"
	assert stored_status(stubborn) == "Completed"


def test_children_follow_a_parent_after_which_nothing_else_is_started(world, queue):
	"""Then nothing is read after its outcome, and what follows from it must still be in its transaction."""
	parent, bad = submit(world, queue), submit(world, queue, "fail_for_good")
	child, orphan = submit(world, queue, depends_on=parent), submit(world, queue, depends_on=bad)
	grandchild = submit(world, queue, depends_on=orphan)
	run_job(bad)
	frappe.db.rollback()
	assert story(orphan)[-1] == story(grandchild)[-1] == (states.PENDING, states.CANCELED, "job.canceled")
	assert stored_status(orphan) == stored_status(grandchild) == states.CANCELED
	run_job(parent)
	frappe.db.rollback()
	assert stored_status(child) == states.QUEUED


def test_a_dead_workers_job_is_taken_back_and_the_dead_one_changes_nothing(world, queue):
	job_name = submit(world, queue)
	promote.promote_due([queue])
	late = start_job(job_name)
	lose_worker(job_name)
	assert sweep.reap_expired() >= 1
	assert (stored_status(job_name), stored(job_name).retry_count) == ("Queued", 1)
	attempt.perform(late)
	assert stored_status(job_name) == "Queued"
	fall_due(job_name)
	drain.drain([queue])
	assert (stored_status(job_name), stored(job_name).attempt) == ("Completed", 2)


def test_rights_are_checked_again_before_each_attempt(world, queue):
	leaver = make_user("leaver", ["Dartwing User"], [world.a])
	job_name = submit(world, queue, owner_user=leaver)
	frappe.db.delete("User Permission", {"user": leaver})
	frappe.db.commit()
	frappe.clear_cache(user=leaver)
	drain.drain([queue])
	job = stored(job_name)
	assert job.status == "Dead Letter"
	assert "Permission denied" in job.error_message
	assert frappe.db.get_value("Job Run", {"background_job": job_name}, "status") == "Skipped"


def test_order_is_fair_between_organizations(world, queue):
	many = [submit(world, queue) for _ in range(20)]
	promote.promote_due([queue])
	job_type = frappe.db.get_value("Background Job", many[0], "job_type")
	other = make_job(world.b, job_type=job_type, job_queue=queue).name
	frappe.db.commit()
	promote.promote_due([queue])
	assert other in in_order(queue)[:3]


def test_higher_priority_goes_first(world, queue):
	for _ in range(5):
		submit(world, queue)
	urgent = submit(world, queue, priority="Critical")
	promote.promote_due([queue])
	assert in_order(queue)[0] == urgent


def test_a_timeout_ends_a_sleeping_handler(world, queue):
	job_name = submit(world, queue, parameters={"steps": 1, "seconds": 30}, timeout_seconds=1, max_retries=0)
	drain.drain([queue])
	moves = [(before, after) for before, after, _event in story(job_name)]
	assert moves[-2:] == [(states.RUNNING, states.TIMED_OUT), (states.TIMED_OUT, states.DEAD_LETTER)]


def test_a_row_that_cannot_be_run_stops_nobody(world, queue):
	"""Somebody's own SQL left an ended job in line, and another one waiting for a moment."""
	in_line, waiting = submit(world, queue), submit(world, queue)
	promote.promote_due([queue])
	plant(in_line, status="Dead Letter")
	plant(waiting, status="Completed", run_at="2020-01-01 00:00:00", **OUT_OF_LINE)
	frappe.db.commit()
	healthy = submit(world, queue)
	drain.drain([queue])
	assert stored_status(healthy) == "Completed"
	assert (stored_status(in_line), stored(in_line).claim_key) == ("Dead Letter", 0)
	assert (stored(waiting).run_at, stored(waiting).claim_key) == (None, 0)


def test_a_permission_that_cannot_be_checked_ends_only_its_own_job(world, queue):
	odd = make_job_type(handler_method=f"{SAMPLES}.execute_sample_job")
	before, strange, after = (
		submit(world, queue),
		make_job(world.a, job_type=odd.name, job_queue=queue, owner_user=world.user_a).name,
		submit(world, queue),
	)
	frappe.db.set_value("Job Type", odd.name, "requires_permission", "Vanished DocType:read")
	frappe.db.commit()
	drain.drain([queue])
	assert (stored_status(before), stored_status(after)) == ("Completed", "Completed")
	assert stored_status(strange) == "Dead Letter"
	assert "Permission denied" in stored(strange).error_message


def test_a_completion_that_cannot_be_written_is_a_failure(world, queue):
	"""The handler succeeded, but its result does not fit: the attempt has failed, and the next job runs."""
	job_name = submit(world, queue, "tell_too_much", max_retries=0, handlers="dartwing_jobs.tests.handlers")
	after = submit(world, queue)
	drain.drain([queue])
	assert (stored_status(job_name), stored_status(after)) == ("Dead Letter", "Completed")
