"""Doors of the engine: submit, cancel, run now, retry, in Python and over HTTP."""

import frappe
import pytest

import dartwing_jobs
from dartwing_jobs.engine import attempt, database, drain
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.testing import start_job
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.world import REPEATABLE, make_job_type, plant, stored_status, story

API = "dartwing_jobs.api.jobs"


@pytest.fixture
def queue():
	name = f"q:test-{frappe.generate_hash(length=8)}"
	frappe.get_doc({"doctype": "Job Queue", "queue_name": name, "rq_queue": "default"}).insert()
	frappe.db.commit()
	return name


@pytest.fixture(scope="module")
def browsers(world):
	people = ["user_a", "colleague_a", "admin_a", "user_b", "admin_b", "stranger"]
	return {person: Browser(getattr(world, person)) for person in people}


def handled_by(handler: str, queue: str) -> str:
	job_type = make_job_type(handler_method=f"dartwing_jobs.samples.{handler}", job_queue=queue)
	frappe.db.commit()
	return job_type.name


def test_a_user_submits_without_create_permission(world, queue):
	job_type = handled_by("execute_sample_job", queue)
	frappe.set_user(world.user_a)
	job = dartwing_jobs.submit(job_type, {"steps": 1})
	assert (job.organization, job.owner, job.status) == (world.a, world.user_a, "Queued")


@pytest.mark.parametrize("person", ["user_b", "stranger"])
def test_outsiders_do_not_submit(world, queue, person):
	job_type = handled_by("execute_sample_job", queue)
	frappe.set_user(getattr(world, person))
	with pytest.raises(frappe.PermissionError):
		dartwing_jobs.submit(job_type, organization=world.a)


def test_a_required_permission_is_required(world, queue):
	job_type = make_job_type(requires_permission="Job Type:delete").name
	frappe.set_user(world.user_a)
	with pytest.raises(frappe.PermissionError, match="no delete permission for Job Type"):
		dartwing_jobs.submit(job_type)


def test_an_unknown_option_is_refused(world):
	with pytest.raises(InvalidJobError, match="no option prioritty"):
		dartwing_jobs.submit(REPEATABLE, organization=world.a, prioritty="High")


def test_many_jobs_in_a_few_statements(world, queue):
	job_type = handled_by("execute_sample_job", queue)
	names = dartwing_jobs.submit_many(
		job_type, [{"steps": 0, "number": number} for number in range(100)], world.a, priority="High"
	)
	frappe.db.commit()
	assert len(set(names)) == 100
	assert (
		frappe.db.count("Job Execution Log", {"background_job": ["in", names], "event": "job.created"}) == 100
	)
	one = frappe.get_doc("Background Job", names[7])
	assert (one.status, one.priority, one.organization) == ("Queued", "High", world.a)
	assert frappe.parse_json(one.input_parameters) == {"steps": 0, "number": 7}
	assert drain.drain([queue]) == 100


def test_bad_parameters_among_many_leave_nothing(world, queue):
	job_type = handled_by("execute_sample_job", queue)
	before = frappe.db.count("Background Job")
	with pytest.raises(InvalidJobError):
		dartwing_jobs.submit_many(job_type, [{"ok": 1}, {"nan": float("nan")}], world.a)
	assert frappe.db.count("Background Job") == before


@pytest.mark.parametrize(("count", "length"), [(30, 700_000), (30_000, 0)])
def test_many_jobs_are_more_than_one_packet(world, queue, count, length):
	"""By default MariaDB takes no packet of more than 16 megabytes."""
	given = [{"text": "x" * length}] * count
	names = dartwing_jobs.submit_many(REPEATABLE, given, world.a, job_queue=queue)
	assert frappe.db.count("Background Job", {"job_queue": queue}) == len(set(names)) == count
	frappe.db.rollback()


def test_cancel_a_waiting_job(world, queue):
	job_type = handled_by("execute_sample_job", queue)
	parent = dartwing_jobs.submit(job_type, organization=world.a)
	child = dartwing_jobs.submit(job_type, organization=world.a, depends_on=parent.name)
	assert dartwing_jobs.cancel(parent.name, "not needed") == "Canceled"
	frappe.db.commit()
	assert (stored_status(parent.name), stored_status(child.name)) == ("Canceled", "Canceled")
	assert drain.drain([queue]) == 0


def test_cancel_a_running_job_at_its_checkpoint(world, queue):
	job_type = handled_by("execute_sample_job", queue)
	job = dartwing_jobs.submit(job_type, {"steps": 3}, world.a)
	frappe.db.commit()
	running = start_job(job.name)
	frappe.set_user(world.admin_a)
	assert dartwing_jobs.cancel(job.name, "stop") == "Requested"
	frappe.set_user("Administrator")
	frappe.db.commit()
	attempt.perform(running)
	stored = frappe.get_doc("Background Job", job.name)
	assert (stored.status, stored.canceled_by) == ("Canceled", world.admin_a)
	assert [event for *_moves, event in story(job.name)][-2:] == ["job.cancel_requested", "job.canceled"]


def test_an_ended_job_is_not_canceled(world, queue):
	job = dartwing_jobs.submit(handled_by("execute_sample_job", queue), organization=world.a)
	frappe.db.commit()
	drain.drain([queue])
	with pytest.raises(InvalidJobError, match="has ended as Completed"):
		dartwing_jobs.cancel(job.name)


def test_run_now(world, queue):
	job_type = handled_by("execute_sample_job", queue)
	job = dartwing_jobs.submit(job_type, organization=world.a, scheduled_for="2099-01-01 00:00:00")
	frappe.db.commit()
	assert drain.drain([queue]) == 0
	dartwing_jobs.run_now(job.name)
	frappe.db.commit()
	assert drain.drain([queue]) == 1


def test_retry_makes_a_new_job(world, queue):
	job = dartwing_jobs.submit(handled_by("fail_for_good", queue), {"message": "no"}, world.a)
	frappe.db.commit()
	drain.drain([queue])
	again = dartwing_jobs.retry(job.name)
	assert (again.retry_of, again.status, again.retry_count) == (job.name, "Queued", 0)
	assert stored_status(job.name) == "Dead Letter"
	assert frappe.parse_json(again.input_parameters) == {"message": "no"}


def test_over_http(world, queue, browsers):
	job_type = handled_by("execute_sample_job", queue)
	answer = browsers["user_a"].call(f"{API}.submit", job_type=job_type, parameters={"steps": 1}, priority=9)
	assert answer.status_code == 200, answer.get_data(as_text=True)[-2000:]
	job = answer.json["message"]
	assert (job["status"], job["priority"], job["parameters"]) == ("Queued", "High", {"steps": 1})
	assert job["created_at"][-6] in "+-"
	drain.drain([queue])
	assert (
		browsers["user_a"].get(f"/api/method/{API}.status", job=job["name"]).json["message"]["status"]
		== "Completed"
	)
	events = browsers["user_a"].get(f"/api/method/{API}.history", job=job["name"]).json["message"]
	assert [event["event"] for event in events][-1] == "job.succeeded"


@pytest.mark.parametrize("person", ["colleague_a", "user_b", "admin_b", "stranger"])
def test_others_find_nothing_over_http(world, queue, browsers, person):
	job_type = handled_by("execute_sample_job", queue)
	job = browsers["user_a"].call(f"{API}.submit", job_type=job_type).json["message"]["name"]
	for method in ("status", "history", "cancel", "run_now", "retry"):
		assert browsers[person].call(f"{API}.{method}", job=job).status_code == 404, method
	listed = browsers[person].call(f"{API}.list_jobs", job_type=job_type)
	assert listed.status_code == 403 or listed.json["message"]["jobs"] == []
	frappe.db.rollback()
	assert stored_status(job) == "Queued"


def test_lists_page_by_cursor(world, queue, browsers):
	job_type = handled_by("execute_sample_job", queue)
	names = dartwing_jobs.submit_many(job_type, [{} for _ in range(7)], world.a)
	frappe.db.commit()
	seen, after = [], None
	while True:
		arguments = {"job_type": job_type, "limit": 3, **({"after": after} if after else {})}
		page = browsers["admin_a"].call(f"{API}.list_jobs", **arguments).json["message"]
		seen += [job["name"] for job in page["jobs"]]
		if not (after := page["next"]):
			break
	assert sorted(seen) == sorted(names)


def test_writes_are_posts(browsers):
	assert browsers["user_a"].get(f"/api/method/{API}.submit", job_type=REPEATABLE).status_code == 403


def test_a_snoozed_attempt_does_not_count(world, queue):
	job_type = make_job_type(handler_method="dartwing_jobs.tests.handlers.snooze_once", job_queue=queue).name
	job = dartwing_jobs.submit(job_type, organization=world.a)
	frappe.db.commit()
	drain.drain([queue])
	stored = frappe.get_doc("Background Job", job.name)
	assert (stored.status, stored.attempt, stored.retry_count) == ("Queued", 0, 0)
	plant(job.name, run_at=database.utc_now(), project_id="slept")
	frappe.db.commit()
	drain.drain([queue])
	assert stored_status(job.name) == "Completed"
