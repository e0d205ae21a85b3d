"""The story of a job, from submit to its end: the first test to read."""

import frappe
import pytest

from dartwing_jobs.engine import database, drain, lease, promote, states, sweep
from dartwing_jobs.tests.world import make_job, make_job_type, make_user, plant, stored_status, story

SAMPLES = "dartwing_jobs.samples"


@pytest.fixture
def queue():
	"""A queue of its own for each test, so that drains see nothing else."""
	name = f"q:test-{frappe.generate_hash(length=8)}"
	return frappe.get_doc({"doctype": "Job Queue", "queue_name": name, "rq_queue": "default"}).insert().name


def submit(world, queue, handler="execute_sample_job", parameters=None, **fields):
	job_type = make_job_type(handler_method=f"{SAMPLES}.{handler}", backoff_base_seconds=1)
	job = make_job(world.a, job_type=job_type.name, job_queue=queue, input_parameters=parameters, **fields)
	frappe.db.commit()
	return job.name


def stored(job_name):
	return frappe.get_doc("Background Job", job_name)


def make_retry_due(job_name):
	plant(job_name, run_at=database.utc_now())
	frappe.db.commit()


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
	make_retry_due(job_name)
	drain.drain([queue])
	assert (stored_status(job_name), stored(job_name).attempt) == ("Completed", 2)
	moves = [(before, after) for before, after, _event in story(job_name)]
	assert (states.RUNNING, states.FAILED) in moves
	assert (states.FAILED, states.QUEUED) in moves
	assert frappe.db.count("Job Run", {"background_job": job_name}) == 2


def test_a_job_that_keeps_failing_is_buried(world, queue):
	job_name = submit(world, queue, "fail_for_a_while", {"attempts": 99}, max_retries=1)
	drain.drain([queue])
	make_retry_due(job_name)
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
	make_retry_due(job_name)
	assert drain.drain([queue]) == 1
	assert stored_status(job_name) == "Completed"


def test_a_child_waits_for_its_parent(world, queue):
	parent = submit(world, queue, "fail_for_a_while", {"attempts": 2})
	child = submit(world, queue, depends_on=parent)
	drain.drain([queue])
	assert (stored_status(parent), stored_status(child)) == ("Queued", "Pending")
	make_retry_due(parent)
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


def test_a_dead_workers_job_is_taken_back_and_the_dead_one_changes_nothing(world, queue):
	from dartwing_jobs.engine import attempt

	job_name = submit(world, queue)
	promote.promote_due([queue])
	(claimed,) = lease.claim([queue], 1)
	late = attempt.start(claimed)
	plant(job_name, lease_expires_at="2020-01-01 00:00:00")
	frappe.db.commit()
	assert sweep.reap_expired() >= 1
	assert (stored_status(job_name), stored(job_name).retry_count) == ("Queued", 1)
	attempt.perform(late)
	assert stored_status(job_name) == "Queued"
	make_retry_due(job_name)
	drain.drain([queue])
	assert (stored_status(job_name), stored(job_name).attempt) == ("Completed", 2)


def test_a_claimed_job_whose_worker_died_before_the_start_runs_again(world, queue):
	job_name = submit(world, queue)
	promote.promote_due([queue])
	assert len(lease.claim([queue], 1)) == 1
	assert lease.claim([queue], 1) == []
	plant(job_name, lease_expires_at="2020-01-01 00:00:00")
	frappe.db.commit()
	sweep.reap_expired()
	drain.drain([queue])
	assert (stored_status(job_name), stored(job_name).attempt) == ("Completed", 1)


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
	first = [job.name for job in lease.claim([queue], 3)]
	assert other in first


def test_higher_priority_goes_first(world, queue):
	for _ in range(5):
		submit(world, queue)
	urgent = submit(world, queue, priority="Critical")
	promote.promote_due([queue])
	assert [job.name for job in lease.claim([queue], 1)] == [urgent]


def test_a_timeout_ends_a_sleeping_handler(world, queue):
	job_name = submit(world, queue, parameters={"steps": 1, "seconds": 30}, timeout_seconds=1, max_retries=0)
	drain.drain([queue])
	moves = [(before, after) for before, after, _event in story(job_name)]
	assert moves[-2:] == [(states.RUNNING, states.TIMED_OUT), (states.TIMED_OUT, states.DEAD_LETTER)]
