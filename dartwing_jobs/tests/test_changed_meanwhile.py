"""What was true at the submit may not be so at the start: organizations stop working, types are disabled."""

from datetime import timedelta

import frappe
import pytest

from dartwing_jobs import cancel, clock, testing
from dartwing_jobs.engine import bell, dependents, pauses, sweep
from dartwing_jobs.engine.submit import submit, submit_many
from dartwing_jobs.tests.world import (
	REPEATABLE,
	make_job,
	make_job_type,
	make_organization,
	make_queue,
	stored_status,
	story,
)

NOTHING = "dartwing_jobs.samples.do_nothing"


@pytest.fixture
def queue():
	return make_queue()


@pytest.fixture
def job_type():
	return make_job_type(handler_method=NOTHING).name


def switch(job_type: str, is_enabled: int) -> None:
	frappe.get_doc("Job Type", job_type).update({"is_enabled": is_enabled}).save()
	frappe.db.commit()


def seen(job_name: str) -> tuple[str, str | None]:
	row = frappe.db.get_value("Background Job", job_name, ["status", "held_reason"], as_dict=True)
	return row.status, row.held_reason


def run_row(job_name: str):
	return frappe.db.get_value("Job Run", {"background_job": job_name}, ["status", "error_message"])


@pytest.mark.parametrize("status", ["Inactive", "Dissolved"])
def test_an_organization_that_stopped_working_has_no_work_done(world, status):
	organization = make_organization()
	jobs = submit_many(REPEATABLE, [{"steps": 0}] * 2, organization)
	frappe.db.set_value("Organization", organization, "status", status)
	frappe.db.commit()
	reason = f"Organization {organization} is {status}"
	for job in jobs:
		assert testing.run_job(job).status == "Dead Letter"
		assert frappe.db.get_value("Background Job", job, ["error_message", "error_type"]) == (
			reason,
			"Permanent",
		)
		assert run_row(job) == ("Skipped", reason)


def test_an_organization_that_works_again_has_new_work_done(world):
	organization = make_organization(status="Inactive")
	frappe.db.set_value("Organization", organization, "status", "Active")
	job = submit(REPEATABLE, {"steps": 0}, organization)
	frappe.db.commit()
	assert testing.run_job(job.name).status == "Completed"


def test_a_queued_job_of_a_disabled_type_waits_and_says_why(world, queue, job_type):
	held = submit(job_type, {}, world.a, job_queue=queue).name
	other = submit(REPEATABLE, {"steps": 0}, world.a, job_queue=queue).name
	switch(job_type, 0)
	assert testing.run_all_due(queue) == 1
	assert seen(held) == ("Queued", f"Job Type {job_type} is disabled")
	assert stored_status(other) == "Completed"
	switch(job_type, 1)
	assert testing.run_all_due(queue) == 1
	assert seen(held) == ("Completed", None)


@pytest.mark.parametrize("door", ["submit", "document"])
def test_a_pending_job_of_a_disabled_type_does_not_become_queued(world, queue, job_type, door):
	soon = {"job_type": job_type, "job_queue": queue, "scheduled_for": clock.now() + timedelta(hours=1)}
	if door == "submit":
		job = submit(soon.pop("job_type"), {}, world.a, **soon).name
	else:
		job = make_job(world.a, **soon).name
	switch(job_type, 0)
	testing.fall_due(job)
	assert testing.run_all_due(queue) == 0
	assert seen(job) == ("Pending", f"Job Type {job_type} is disabled")
	assert frappe.db.get_value("Background Job", job, ["run_at", "line"]) == (None, None)
	switch(job_type, 1)
	assert testing.run_all_due(queue) == 1
	assert seen(job) == ("Completed", None)
	assert [event for *_moves, event in story(job)] == [
		"job.created",
		"job.enqueued",
		"job.started",
		"job.succeeded",
	]


def test_a_due_retry_of_a_disabled_type_waits(world, queue):
	job_type = make_job_type(handler_method="dartwing_jobs.samples.fail_for_a_while").name
	job = submit(job_type, {}, world.a, job_queue=queue).name
	assert testing.run_all_due(queue) == 1
	switch(job_type, 0)
	testing.fall_due(job)
	assert testing.run_all_due(queue) == 0
	assert seen(job) == ("Queued", f"Job Type {job_type} is disabled")
	switch(job_type, 1)
	assert testing.run_all_due(queue) == 1
	assert seen(job) == ("Completed", None)


@pytest.mark.parametrize("children", [1, 3])
def test_children_of_a_disabled_type_are_released_when_it_is_enabled_again(world, queue, job_type, children):
	parent = submit(REPEATABLE, {"steps": 0}, world.a, job_queue=queue).name
	names = submit_many(job_type, [{}] * children, world.a, job_queue=queue, depends_on=parent)
	switch(job_type, 0)
	assert testing.run_all_due(queue) == 1
	for _look in range(2):
		sweep.sweep()
		dependents.follow([parent])
		assert {seen(name) for name in names} == {("Pending", f"Job Type {job_type} is disabled")}
	switch(job_type, 1)
	assert testing.run_all_due(queue) == children
	assert {seen(name) for name in names} == {("Completed", None)}


def test_a_child_of_a_disabled_type_still_follows_its_policy(world, queue, job_type):
	"""Held is who may run. Who waits for a parent is settled with it."""
	parent = submit(REPEATABLE, {"steps": 0}, world.a, job_queue=queue).name
	child = submit(job_type, {}, world.a, job_queue=queue, depends_on=parent).name
	switch(job_type, 0)
	cancel(parent)
	frappe.db.commit()
	assert stored_status(child) == "Canceled"


def test_a_pending_job_that_is_held_can_be_canceled_and_moved(world, queue, job_type):
	fields = {"job_type": job_type, "job_queue": queue}
	canceled, later, urgent = (make_job(world.a, **fields).name for _ in range(3))
	switch(job_type, 0)
	testing.run_all_due(queue)
	assert seen(urgent) == ("Pending", f"Job Type {job_type} is disabled")
	assert cancel(canceled) == "Canceled"
	frappe.get_doc("Background Job", later).update({"scheduled_for": "2099-01-01 00:00:00"}).save()
	frappe.get_doc("Background Job", urgent).update({"priority": "High"}).save()
	switch(job_type, 1)
	assert testing.run_all_due(queue) == 1
	assert [stored_status(job) for job in (canceled, later, urgent)] == ["Canceled", "Pending", "Completed"]


def test_nobody_is_rung_for_what_a_disabled_type_holds(world, queue, job_type):
	"""A held job is due for ever: workers must not come for it again and again."""
	job = submit(job_type, {}, world.a, job_queue=queue, scheduled_for=clock.now() + timedelta(hours=1)).name
	switch(job_type, 0)
	testing.fall_due(job)
	testing.run_all_due(queue)
	assert not sweep.promote.earliest_due([queue])
	assert not sweep.claim.is_waiting([queue])


def test_disabling_marks_what_waits_and_enabling_rings(world, queue, job_type, monkeypatch):
	names = submit_many(job_type, [{}] * 3, world.a, job_queue=queue)
	switch(job_type, 0)
	pauses.mark_held(pauses.JOB_TYPE, job_type)
	assert {seen(name) for name in names} == {("Queued", f"Job Type {job_type} is disabled")}
	rung = []
	monkeypatch.setattr(bell, "ring", rung.append)
	switch(job_type, 1)
	assert "default" in rung
