"""Retry mode New Job: the failed job stays as it is, and its successor has all that hung on it."""

import frappe
import pytest

from dartwing_jobs.api import jobs as api
from dartwing_jobs.engine import drain, statements, successors
from dartwing_jobs.engine.handling import steps
from dartwing_jobs.testing import fall_due
from dartwing_jobs.tests.world import make_job, make_job_type, make_queue, plant, stored_status, story

HANDLER = "dartwing_jobs.tests.retrying.pay_then_fail"


@pytest.fixture
def queue():
	return make_queue()


@pytest.fixture
def submit(world, queue):
	def submitting(attempts: int = 2, columns: dict | None = None, **fields) -> str:
		mode = {"retry_mode": "New Job", "backoff_base_seconds": 1, "backoff_cap_seconds": 1}
		job_type = make_job_type(handler_method=HANDLER, **mode).name
		given = {"owner_user": world.user_a, "input_parameters": {"attempts": attempts}, **fields}
		job = make_job(world.a, job_type=job_type, job_queue=queue, **given)
		if columns:
			plant(job.name, **columns)
		frappe.db.commit()
		return job.name

	return submitting


def read(job_name: str):
	return frappe.get_doc("Background Job", job_name)


def successor_of(job_name: str):
	return frappe.get_doc("Background Job", {"retry_of": job_name})


def run(queue: str, job_name: str | None = None) -> None:
	if job_name:
		fall_due(job_name)
	drain.drain([queue])


def test_the_failed_job_stays_and_a_new_one_follows(world, queue, submit):
	failed = submit(correlation_id="c-1", project_id="p-1", priority="High", max_retries=3)
	run(queue)
	old, new = read(failed), successor_of(failed)
	assert (old.status, old.error_type, old.retry_count, old.attempt) == ("Failed", "Transient", 0, 1)
	assert (old.run_at, old.next_retry_at, old.claim_key, old.lease_token) == (None, None, 0, None)
	assert (old.progress, old.cost_cents) == (30, 5)
	assert (new.status, new.retry_count, new.attempt, new.max_retries) == ("Pending", 1, 1, 3)
	assert new.run_at and new.next_retry_at
	assert (new.progress, new.cost_cents, new.error_message, new.started_at) == (0, 0, None, None)
	kept = ("job_type", "organization", "owner_user", "owner", "job_queue", "priority", "timeout_seconds")
	kept += ("input_parameters", "correlation_id", "project_id", "on_parent_failure")
	assert {name: old.get(name) for name in kept} == {name: new.get(name) for name in kept}
	assert new.job_id != old.job_id
	assert story(failed)[-1] == ("Running", "Failed", "job.failed")
	assert story(new.name) == [(None, "Pending", "job.created")]


def test_the_successor_runs_and_knows_what_was_done(world, queue, submit):
	failed = submit()
	run(queue)
	new = successor_of(failed).name
	run(queue, new)
	assert (stored_status(failed), stored_status(new)) == ("Failed", "Completed")
	assert read(new).attempt == 2
	assert steps.find(failed, "pay") is None
	assert steps.find(new, "pay").result == "paid"
	assert world.user_a in frappe.get_last_doc("Job Run", {"background_job": new}).output


def test_a_chain_ends_in_a_dead_letter(world, queue, submit):
	first = submit(attempts=99, max_retries=2)
	run(queue)
	second = successor_of(first).name
	run(queue, second)
	third = successor_of(second).name
	run(queue, third)
	assert [stored_status(name) for name in (first, second, third)] == ["Failed", "Failed", "Dead Letter"]
	assert (read(third).retry_count, read(third).attempt) == (2, 3)
	assert not frappe.db.exists("Background Job", {"retry_of": third})
	assert {successors.latest(name) for name in (first, second, third)} == {third}


def test_keys_and_the_place_in_a_group_move_on(world, queue, submit):
	group = frappe.generate_hash(length=8)
	failed = submit(columns={"unique_key": "only-one", "job_group": group, "position": 4})
	statements.insert("Job Idempotency Key", [_key_row(world.a, failed)])
	frappe.db.commit()
	run(queue)
	old, new = read(failed), successor_of(failed)
	assert (old.unique_key, new.unique_key) == (None, "only-one")
	assert (new.job_group, new.position) == (group, 4)
	assert frappe.get_all("Job Idempotency Key", {"background_job": failed}) == []
	assert len(frappe.get_all("Job Idempotency Key", {"background_job": new.name})) == 1
	run(queue, new.name)
	assert read(new.name).unique_key is None


def _key_row(organization: str, job_name: str) -> dict:
	now = frappe.utils.now_datetime()
	key = frappe.generate_hash(length=20)
	row = {"name": key, "creation": now, "modified": now, "first_seen_at": now, "last_seen_at": now}
	row |= {"idempotency_key": key, "key_hash": key, "status": "running"}
	return row | {"organization": organization, "background_job": job_name}


def test_children_wait_for_the_new_one(world, queue, submit):
	failed = submit()
	child = make_job(world.a, job_queue=queue, depends_on=failed).name
	frappe.db.commit()
	run(queue)
	new = successor_of(failed).name
	assert (stored_status(child), read(child).depends_on) == ("Pending", new)
	run(queue, new)
	assert stored_status(child) == "Completed"


def test_children_are_settled_when_the_last_one_fails(world, queue, submit):
	failed = submit(attempts=99, max_retries=1)
	child = make_job(world.a, job_queue=queue, depends_on=failed).name
	frappe.db.commit()
	run(queue)
	run(queue, successor_of(failed).name)
	assert stored_status(child) == "Canceled"


def test_asking_for_the_old_name_shows_where_it_went_on(world, queue, submit):
	failed = submit(attempts=3)
	assert api.status(failed)["latest"] == failed
	run(queue)
	second = successor_of(failed).name
	run(queue, second)
	third = successor_of(second).name
	frappe.set_user(world.user_a)
	assert [api.status(name)["latest"] for name in (failed, second, third)] == [third] * 3
	assert (api.status(failed)["status"], api.status(third)["retry_of"]) == ("Failed", second)


def test_a_retry_by_hand_is_no_link_of_the_chain(world, queue, submit):
	"""It is another job: who asks for the dead one is told about the dead one."""
	dead = submit(attempts=99, max_retries=0)
	run(queue)
	again = api.retry(dead)
	assert again["retry_of"] == dead
	plant(again["name"], retry_count=1)
	assert api.status(dead)["latest"] == dead
