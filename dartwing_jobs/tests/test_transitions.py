"""Moving a job: the update and its log row, both or neither, and only if the job is still as it was."""

from datetime import datetime

import frappe
import pytest

from dartwing_jobs.engine import log, states, transitions
from dartwing_jobs.tests.world import REPEATABLE, make_job, plant, stored_status, story

NOON = datetime(2026, 11, 16, 12, 0, 0)


def test_a_move_writes_the_story(world):
	job = make_job(world.a, project_id="P1", request_id="R1", correlation_id="C1")
	assert transitions.move(job, states.QUEUED, actor=world.user_a, message="go", now=NOON)
	row = frappe.get_last_doc("Job Execution Log", {"background_job": job.name, "event": "job.enqueued"})
	expected = {
		"from_status": "Pending",
		"to_status": "Queued",
		"timestamp": NOON,
		"actor": world.user_a,
		"message": "go",
		"organization": world.a,
		"project_id": "P1",
		"request_id": "R1",
		"correlation_id": "C1",
		"job_id": job.job_id,
		"job_type": REPEATABLE,
		"actor_type": "system",
		"actor_id": "Administrator",
	}
	assert {field: row.get(field) for field in expected} == expected


@pytest.mark.parametrize(
	("before", "after", "stamp"),
	[
		("Queued", "Running", "started_at"),
		("Running", "Completed", "completed_at"),
		("Running", "Dead Letter", "completed_at"),
		("Queued", "Canceled", "canceled_at"),
	],
)
def test_a_move_stamps_its_moment(world, before, after, stamp):
	job = make_job(world.a, status=before)
	transitions.move(job, after, actor=world.user_a, now=NOON)
	assert frappe.db.get_value("Background Job", job.name, stamp) == NOON
	if after == "Canceled":
		assert frappe.db.get_value("Background Job", job.name, "canceled_by") == world.user_a


def test_a_move_that_comes_too_late_changes_nothing(world):
	job = make_job(world.a, status="Running")
	plant(job.name, status="Canceled")
	assert not transitions.move(job, states.COMPLETED)
	assert stored_status(job.name) == "Canceled"
	assert len(story(job.name)) == 1
	assert job.status == "Running"


def test_a_move_sets_other_columns_in_the_same_statement(world):
	job = make_job(world.a, status="Running")
	transitions.move(job, states.FAILED, error_message="boom", error_type="Transient", retry_count=1)
	stored = frappe.get_doc("Background Job", job.name)
	assert (stored.error_message, stored.error_type, stored.retry_count) == ("boom", "Transient", 1)
	assert (
		frappe.get_last_doc(
			"Job Execution Log", {"background_job": job.name, "event": "job.failed"}
		).retry_attempt
		== 1
	)


def test_without_its_log_row_a_move_did_not_happen(world, monkeypatch):
	job = make_job(world.a)
	before = frappe.db.count("Background Job", {"organization": world.a})

	def fail(columns):
		raise RuntimeError("disk full")

	monkeypatch.setattr(log, "insert_rows", fail)
	with pytest.raises(RuntimeError):
		transitions.move(job, states.QUEUED)
	assert (stored_status(job.name), job.status) == ("Pending", "Pending")
	# what the caller did before in the same transaction is still there
	assert frappe.db.count("Background Job", {"organization": world.a}) == before


def test_a_move_belongs_to_the_callers_transaction(world):
	job = make_job(world.a)
	frappe.db.commit()
	transitions.move(job, states.QUEUED)
	frappe.db.rollback()
	assert stored_status(job.name) == "Pending"
	assert len(story(job.name)) == 1


def test_terminal_statuses_have_no_way_out():
	leaving = {before for before, _after in states.TRANSITIONS}
	assert leaving == states.ACTIVE
	assert set(states.ALL) - leaving == states.TERMINAL


@pytest.mark.parametrize("doctype", ["Job Execution Log", "Job Run", "Job Step", "Job Idempotency Key"])
def test_nobody_writes_what_the_engine_writes(doctype):
	with pytest.raises(frappe.ValidationError):
		frappe.get_doc({"doctype": doctype, **_required(doctype)}).insert(
			ignore_permissions=True, ignore_links=True
		)


def _required(doctype: str) -> dict:
	fields = frappe.get_meta(doctype).get("fields", {"reqd": 1})
	return {field.fieldname: "2026-01-01" if field.fieldtype == "Datetime" else "Running" for field in fields}


@pytest.mark.parametrize("person", ["Administrator", "manager", "admin_a"])
def test_the_log_is_append_only_for_everyone(world, person):
	job = make_job(world.a)
	name = frappe.db.get_value("Job Execution Log", {"background_job": job.name})
	frappe.set_user(getattr(world, person, person))
	row = frappe.get_doc("Job Execution Log", name)
	row.message = "rewritten"
	for attempt in (
		lambda: row.save(ignore_permissions=True),
		lambda: row.db_set("message", "rewritten"),
		lambda: frappe.delete_doc("Job Execution Log", name, ignore_permissions=True),
		lambda: frappe.delete_doc("Job Execution Log", name, ignore_permissions=True, force=True),
	):
		with pytest.raises(frappe.ValidationError, match="by the engine alone"):
			attempt()
	assert frappe.db.get_value("Job Execution Log", name, "message") is None
