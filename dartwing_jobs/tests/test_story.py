"""The log tells everything: whatever a test has done to a job, its row can be rebuilt from its log alone.

Runs behind the other tests, and looks at every job that they left.
"""

import time
from datetime import timedelta
from itertools import groupby

import frappe
import pytest

from dartwing_jobs import PermanentError, TransientError, clock, job_handler, submit
from dartwing_jobs.engine import control, drain, story, sweep
from dartwing_jobs.engine.handling.context import Snooze
from dartwing_jobs.testing import fall_due, lose_worker, run_job, start_job
from dartwing_jobs.tests.world import make_job, make_job_type, make_organization, make_queue, planted

FIELDS = ", ".join(f"`{field}`" for field in ("name", *story.FIELDS))


@job_handler
def succeed_expensively(parameters: dict, context) -> None:
	context.log("password=hunter2 is not for everybody")
	context.cost_cents = 7
	context.output_reference = "REPORT-1"


@job_handler
def fail_once(parameters: dict, context) -> None:
	context.cost_cents = 2
	if context.attempt == 1:
		raise TransientError("not yet")


@job_handler
def fail_for_good(parameters: dict, context) -> None:
	raise PermanentError("never")


@job_handler
def fail_always(parameters: dict, context) -> None:
	raise TransientError("again")


@job_handler
def take_too_long(parameters: dict, context) -> None:
	time.sleep(30)


@job_handler
def be_canceled(parameters: dict, context) -> None:
	control.cancel(context.job_name, "enough")
	frappe.db.commit()
	context.checkpoint()


@job_handler
def ignore_a_cancel(parameters: dict, context) -> None:
	control.cancel(context.job_name, "too late")


@job_handler
def snooze(parameters: dict, context) -> Snooze:
	return Snooze(60)


@pytest.fixture
def submitted(world):
	"""Submits a job of a type of its own, committed."""

	def submitting(handler=succeed_expensively, organization=None, **fields) -> str:
		options = {name: fields.pop(name) for name in ("timeout_seconds", "scheduled_for") if name in fields}
		job_type = make_job_type(handler_method=f"{__name__}.{handler.__name__}", **fields)
		queue, ids = make_queue(), {"project_id": "P-1", "request_id": "R-1", "correlation_id": "C-1"}
		job = submit(job_type.name, None, organization or world.a, job_queue=queue, **ids, **options)
		frappe.db.commit()
		return job.name

	return submitting


def stored(job_name: str):
	return frappe.db.sql(
		f"select {FIELDS} from `tabBackground Job` where name = %s", (job_name,), as_dict=True
	)[0]


def differences(job, told) -> dict:
	"""By field: what the row has, and what the log says."""
	return {
		field: (job[field], told[field])
		for field in story.FIELDS
		if (job[field] or None) != (told[field] or None)
	}


def check(job_name: str, **expected) -> None:
	frappe.db.rollback()
	job, told = stored(job_name), story.read(job_name)
	assert differences(job, told) == {}
	assert {field: told[field] for field in expected} == expected


def test_of_a_completed_job(submitted):
	job = submitted()
	run_job(job)
	ids = {"project_id": "P-1", "request_id": "R-1", "correlation_id": "C-1"}
	check(job, status="Completed", attempt=1, cost_cents=7, output_reference="REPORT-1", **ids)
	assert story.read(job).created_at < story.read(job).started_at < story.read(job).completed_at


def test_of_a_job_that_waits_for_its_second_attempt_and_then_completes(submitted):
	job = submitted(fail_once)
	run_job(job)
	check(job, status="Queued", retry_count=1, error_message="not yet", error_type="Transient")
	assert story.read(job).next_retry_at > clock.now()
	run_job(job)
	check(job, status="Completed", attempt=2, error_message=None, next_retry_at=None, cost_cents=4)


def test_of_a_job_that_fails_for_good(submitted):
	job = submitted(fail_for_good)
	run_job(job)
	check(job, status="Dead Letter", error_message="never", error_type="Permanent")


def test_of_a_job_that_has_used_up_its_attempts(submitted):
	job = submitted(fail_always, max_retries=1)
	run_job(job)
	run_job(job)
	check(job, status="Dead Letter", attempt=2, retry_count=1, error_message="again", error_type="Transient")


def test_of_a_job_that_takes_too_long(submitted):
	job = submitted(take_too_long, timeout_seconds=1)
	run_job(job)
	check(job, status="Queued", retry_count=1, error_type="Transient")


def test_of_a_job_whose_successor_has_taken_over(submitted):
	job = submitted(fail_once, retry_mode="New Job")
	run_job(job)
	(successor,) = frappe.get_all("Background Job", {"retry_of": job}, pluck="name")
	check(job, status="Failed", error_message="not yet")
	check(successor, status="Pending", retry_of=job, retry_count=1)
	run_job(successor)
	check(successor, status="Completed", attempt=2)


def test_of_a_job_that_is_canceled_while_it_waits(submitted):
	job = submitted(scheduled_for=clock.now() + timedelta(days=1))
	control.cancel(job, "changed my mind")
	frappe.db.commit()
	check(job, status="Canceled", canceled_by="Administrator", cancel_requested_by=None)


def test_of_a_job_that_is_canceled_between_two_attempts(submitted):
	job = submitted(fail_once)
	run_job(job)
	control.cancel(job)
	frappe.db.commit()
	check(job, status="Canceled", canceled_by="Administrator", error_message="not yet")


def test_of_a_running_job_that_is_asked_to_stop(submitted):
	job = submitted(be_canceled)
	asked_by = frappe.db.get_value("Background Job", job, "owner_user")
	run_job(job)
	check(job, status="Canceled", canceled_by=asked_by, cancel_requested_by=asked_by)


def test_of_a_job_that_completes_although_it_was_asked_to_stop(submitted):
	job = submitted(ignore_a_cancel)
	run_job(job)
	check(job, status="Completed", canceled_by=None, cancel_requested_by="Administrator")


def test_of_a_job_that_snoozes(submitted):
	job = submitted(snooze)
	run_job(job)
	check(job, status="Queued", attempt=0, retry_count=0, error_message=None)


def test_of_a_job_that_lost_its_worker(submitted):
	job = submitted()
	assert start_job(job)
	check(job, status="Running", attempt=1)
	lose_worker(job)
	sweep.reap_expired()
	check(job, status="Queued", retry_count=1, error_message="The worker was lost")


def test_of_a_job_whose_organization_is_gone(submitted):
	organization = make_organization()
	job = submitted(organization=organization)
	frappe.delete_doc("Organization", organization)
	frappe.db.commit()
	run_job(job)
	check(job, status="Dead Letter", error_message="Organization not found", organization=organization)


def test_of_a_document_and_of_the_children_of_a_dead_job(world, submitted):
	parent = submitted(fail_for_good)
	child = make_job(world.a, depends_on=parent)
	frappe.db.commit()
	run_job(parent)
	check(child.name, status="Canceled", canceled_by=None, owner_user="Administrator")


def test_of_a_job_that_was_retried_by_hand(submitted):
	job = submitted(fail_for_good)
	run_job(job)
	again = control.retry(job).name
	frappe.db.commit()
	check(again, status="Queued", retry_of=job, attempt=0)


def test_each_row_tells_queue_and_ids_and_the_last_one_class_and_duration(submitted):
	job = submitted(fail_for_good)
	run_job(job)
	fields = ["event", "job_queue", "error_class", "duration_seconds", "request_id", "job_type", "attempt"]
	rows = frappe.get_all("Job Execution Log", {"background_job": job}, fields, order_by=story.OLDEST_FIRST)
	queue, job_type = frappe.db.get_value("Background Job", job, ["origin_queue", "job_type"])
	assert {(row.job_queue, row.job_type, row.request_id) for row in rows} == {(queue, job_type, "R-1")}
	assert [row.event for row in rows] == ["job.created", "job.enqueued", "job.started", "job.deadlettered"]
	assert [row.error_class for row in rows] == [None] * 3 + ["dartwing_jobs.errors.PermanentError"]
	assert [row.duration_seconds > 0 for row in rows] == [False] * 3 + [True]


def test_a_story_without_one_of_its_rows_is_noticed(submitted):
	"""The checks can fail."""
	job = submitted(fail_once)
	run_job(job)
	rows = frappe.get_all("Job Execution Log", {"background_job": job}, ["*"], order_by=story.OLDEST_FIRST)
	assert differences(stored(job), story.tell(rows)) == {}
	assert all(differences(stored(job), story.tell(rows[:end])) for end in range(len(rows)))


def test_every_job_that_the_suite_left_can_be_rebuilt_from_its_log(submitted):
	fall_due(submitted(scheduled_for=clock.now() + timedelta(hours=1)))
	drain.drain([])
	rows = frappe.db.sql(
		f"select * from `tabJob Execution Log` order by background_job, {story.OLDEST_FIRST}", as_dict=True
	)
	told = {name: story.tell(list(its)) for name, its in groupby(rows, lambda row: row.background_job)}
	jobs = frappe.db.sql(f"select {FIELDS} from `tabBackground Job`", as_dict=True)
	left = [job for job in jobs if job.name not in planted]
	assert left
	wrong = {job.name: differences(job, told.get(job.name) or story.tell([])) for job in left}
	assert {name: found for name, found in wrong.items() if found} == {}
