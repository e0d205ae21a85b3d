"""A commit whose answer is lost: what it kept is found, what it did not keep is done again, nothing twice."""

import time

import frappe
import pytest

from dartwing_jobs import submit
from dartwing_jobs.api import groups as group_api
from dartwing_jobs.api import jobs as api
from dartwing_jobs.engine import attempt as attempts
from dartwing_jobs.engine import control, database, drain
from dartwing_jobs.testing import start_job
from dartwing_jobs.tests import commit_proxy
from dartwing_jobs.tests.world import REPEATABLE, make_job_type, make_queue

# seconds until the commit reaches the server, after the connection was lost; None: never
ON_THE_WAY = pytest.mark.parametrize("arrives_after", [0, 0.3, None])


def jobs_of(project: str) -> list[str]:
	frappe.db.rollback()
	return frappe.get_all("Background Job", filters={"project_id": project}, pluck="name", order_by="name")


@pytest.fixture
def project() -> str:
	return frappe.generate_hash(length=10)


@ON_THE_WAY
def test_one_request_makes_one_job(world, project, arrives_after):
	frappe.set_user(world.user_a)
	with commit_proxy.connected(arrives_after) as proxy:
		proxy.is_armed = True
		answer = api.submit(REPEATABLE, {"n": 1}, world.a, project_id=project)
	assert not proxy.is_armed
	frappe.set_user("Administrator")
	assert jobs_of(project) == [answer["name"]]


@ON_THE_WAY
def test_one_request_makes_each_of_many_jobs_once(world, project, arrives_after):
	frappe.set_user(world.user_a)
	with commit_proxy.connected(arrives_after) as proxy:
		proxy.is_armed = True
		answer = api.submit_many(REPEATABLE, [{"n": 1}, {"n": 2}, {"n": 3}], world.a, project_id=project)
	frappe.set_user("Administrator")
	assert jobs_of(project) == sorted(answer)


@ON_THE_WAY
def test_one_request_retries_a_job_once(world, project, arrives_after):
	frappe.set_user(world.user_a)
	canceled = submit(REPEATABLE, {"n": 1}, world.a).name
	control.cancel(canceled)
	frappe.db.commit()
	with commit_proxy.connected(arrives_after) as proxy:
		proxy.is_armed = True
		answer = api.retry(canceled)
	assert not proxy.is_armed
	frappe.set_user("Administrator")
	frappe.db.rollback()
	assert frappe.get_all("Background Job", {"retry_of": canceled}, pluck="name") == [answer["name"]]


@ON_THE_WAY
def test_one_request_makes_one_group(world, project, arrives_after):
	frappe.set_user(world.user_a)
	with commit_proxy.connected(arrives_after) as proxy:
		proxy.is_armed = True
		answer = group_api.create(project, [{"job_type": REPEATABLE}], organization=world.a)
	frappe.set_user("Administrator")
	frappe.db.rollback()
	assert frappe.get_all("Job Group", filters={"group_name": project}, pluck="name") == [answer["name"]]


def test_a_callback_that_fails_after_the_commit_makes_no_second_job(world, project):
	"""Such as one that meets a deadlock: that error alone does not say that nothing was committed."""
	failures = []

	def fail() -> None:
		failures.append(1)
		raise frappe.QueryDeadlockError("after the commit")

	frappe.set_user(world.user_a)
	frappe.db.after_commit.add(fail)
	answer = api.submit(REPEATABLE, {"n": 1}, world.a, project_id=project)
	frappe.set_user("Administrator")
	assert (jobs_of(project), failures) == ([answer["name"]], [1])
	assert frappe.db.exists("Error Log", {"error": ["like", "%after the commit%"]})


def test_what_waits_behind_a_callback_that_fails_is_done(world):
	done = []

	def fail() -> None:
		raise ValueError("the first one")

	@database.own_transaction
	def work() -> str:
		frappe.db.after_commit.add(fail)
		frappe.db.after_commit.add(lambda: done.append("the second one"))
		return "result"

	assert (work(), done) == ("result", ["the second one"])


def test_what_cannot_be_asked_is_not_done_again():
	calls = []

	@database.own_transaction
	def work() -> None:
		calls.append(1)
		frappe.db.sql("select 1")

	with commit_proxy.connected(arrives_after=0) as proxy:
		proxy.is_armed = True
		with pytest.raises(Exception) as raised:
			work()
		assert database.is_lost_connection(raised.value) or frappe.db.db_type == "postgres"
	assert calls == [1]


@pytest.mark.parametrize("arrives_after", [0, None])
def test_a_job_that_was_started_is_run(world, arrives_after):
	"""It would stay Running until its lease is over, and pay an attempt."""
	queue = make_queue()
	job = submit(REPEATABLE, {}, world.a, job_queue=queue).name
	frappe.db.commit()
	with commit_proxy.connected(arrives_after) as proxy:
		worker = drain.Drain(None, None, [queue])
		assert worker.look()
		proxy.is_armed = True
		(started,) = worker.take_apart().attempts
		assert started.job.name == job
		attempts.run(started)
	frappe.db.rollback()
	assert frappe.db.get_value("Background Job", job, ["status", "attempt"]) == ("Completed", 1)


def test_a_job_that_was_started_by_a_late_commit_is_given_back(world):
	"""The worker looks before the commit arrives, and so believes that it has no job."""
	queue = make_queue()
	job = submit(REPEATABLE, {}, world.a, job_queue=queue).name
	frappe.db.commit()
	with commit_proxy.connected(0.3) as proxy:
		worker = drain.Drain(None, None, [queue])
		assert worker.look()
		proxy.is_armed = True
		assert worker.take_apart() is None
		time.sleep(0.6)
	assert worker.look()
	assert frappe.db.get_value("Background Job", job, ["status", "attempt"]) == ("Queued", 0)
	worker.run_due()
	assert frappe.db.get_value("Background Job", job, ["status", "attempt"]) == ("Completed", 1)


@ON_THE_WAY
def test_a_failure_is_recorded_once_and_the_next_job_is_run(world, arrives_after):
	queue = make_queue()
	handler = "dartwing_jobs.samples.fail_for_a_while"
	failing = make_job_type(handler_method=handler, backoff_base_seconds=60).name
	first = submit(failing, {"attempts": 9}, world.a, job_queue=queue).name
	second = submit(REPEATABLE, {}, world.a, job_queue=queue).name
	frappe.db.commit()
	with commit_proxy.connected(arrives_after) as proxy:
		started = start_job(first)
		proxy.is_armed = True
		attempts.run(started)
		attempts.run(start_job(second))
	frappe.db.rollback()
	assert frappe.db.get_value("Background Job", first, ["status", "retry_count"]) == ("Queued", 1)
	assert frappe.db.get_value("Background Job", second, ["status", "attempt"]) == ("Completed", 1)
	assert frappe.db.count("Job Run", {"background_job": first}) == 1
