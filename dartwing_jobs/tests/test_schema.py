"""The DocTypes as they were specified: fields, defaults, options, permissions, naming, indexes."""

import json
from pathlib import Path

import frappe
import pytest

from dartwing_jobs.tests.world import make_job

# field: (type, required, default or options)
BACKGROUND_JOB = {
	"naming_series": ("Select", 1, "JOB-.YYYY.-"),
	"job_type": ("Link", 1, "Job Type"),
	"organization": ("Link", 1, "Organization"),
	"owner_user": ("Link", 1, "User"),
	"status": ("Select", 1, "Pending"),
	"priority": ("Select", 1, "Normal"),
	"progress": ("Percent", 0, "0"),
	"progress_message": ("Data", 0, None),
	"input_parameters": ("JSON", 0, None),
	"output_reference": ("Data", 0, None),
	"error_message": ("Text", 0, None),
	"error_type": ("Select", 0, None),
	"retry_count": ("Int", 0, "0"),
	"max_retries": ("Int", 0, "5"),
	"next_retry_at": ("Datetime", 0, None),
	"depends_on": ("Link", 0, "Background Job"),
	"job_hash": ("Data", 0, None),
	"timeout_seconds": ("Int", 0, "300"),
	"created_at": ("Datetime", 1, "Now"),
	"started_at": ("Datetime", 0, None),
	"completed_at": ("Datetime", 0, None),
	"canceled_at": ("Datetime", 0, None),
	"canceled_by": ("Link", 0, "User"),
}
JOB_TYPE = {
	"type_name": ("Data", 1, None),
	"display_name": ("Data", 1, None),
	"description": ("Text", 0, None),
	"handler_method": ("Data", 1, None),
	"default_timeout": ("Int", 0, "300"),
	"default_priority": ("Select", 0, "Normal"),
	"max_retries": ("Int", 0, "5"),
	"is_enabled": ("Check", 0, "1"),
	"requires_permission": ("Data", 0, None),
	"deduplication_window": ("Int", 0, "300"),
}
JOB_EXECUTION_LOG = {
	"background_job": ("Link", 1, "Background Job"),
	"from_status": ("Data", 0, None),
	"to_status": ("Data", 1, None),
	"timestamp": ("Datetime", 1, "Now"),
	"actor": ("Link", 0, "User"),
	"message": ("Text", 0, None),
	"retry_attempt": ("Int", 0, None),
}
FIELDS = {"Background Job": BACKGROUND_JOB, "Job Type": JOB_TYPE, "Job Execution Log": JOB_EXECUTION_LOG}
ADDED = {
	"Background Job": "job_id project_id actor_type actor_id request_id correlation_id idempotency_key "
	"scheduled_for traceparent unique_key job_queue job_template job_schedule job_group position retry_of "
	"cost_cents run_at lease_expires_at",
	"Job Type": "category job_queue retry_mode backoff_base_seconds backoff_cap_seconds isolation "
	"allow_schedule",
	"Job Execution Log": "event attempt organization project_id job_id job_type actor_type actor_id "
	"request_id correlation_id",
	"Job Template": "template_name job_type default_params status organization",
	"Job Schedule": "job_template cron_expression enabled param_overrides priority organization time_zone",
	"Job Schedule Fire": "job_schedule organization fire_at outcome background_job missed_fires message",
	"Job Run": "background_job status started_at finished_at params_snapshot job_template worker cost_cents "
	"output error traceback",
	"Job Step": "background_job organization step_key attempt result",
	"Job Group": "mode status organization",
	"Job Queue": "queue_name rq_queue paused max_waiting max_wait_seconds",
	"Job Idempotency Key": "status first_seen_at last_seen_at result_ref error_ref background_job "
	"organization",
	"Job Engine Settings": "online retention_days max_parameter_bytes keep_runs missed_after_seconds "
	"most_missed_fires disable_broken_schedules",
}
RIGHTS = ("read", "write", "create", "delete", "if_owner")
PERMISSIONS = {
	"Background Job": {
		"System Manager": (1, 1, 1, 1, 0),
		"Dartwing Admin": (1, 1, 1, 0, 0),
		"Dartwing User": (1, 0, 0, 0, 1),
	},
	"Job Type": {"System Manager": (1, 1, 1, 1, 0)},
	"Job Execution Log": {"System Manager": (1, 0, 0, 0, 0), "Dartwing Admin": (1, 0, 0, 0, 0)},
}
INDEXES = {
	"Background Job": [
		"idx_org_status",
		"idx_job_hash",
		"idx_next_retry",
		"idx_depends_on",
		"idx_job_type_status",
	],
	"Job Execution Log": ["idx_job_timestamp"],
	"Job Idempotency Key": ["unique_job_key_per_organization"],
	"Job Step": ["unique_step_per_job"],
	"Job Schedule": ["idx_next_fire", "idx_schedule_template", "unique_schedule_of_programs"],
	"Job Schedule Fire": ["unique_fire_per_schedule", "idx_fire_outcome", "idx_fire_job"],
}


def test_what_frappe_does_not_know_of_the_first_document_stays_in_the_file():
	path = frappe.get_module_path("Dartwing Jobs", "doctype", "background_job", "background_job.json")
	assert json.loads(Path(path).read_text())["user_permission_dependant_doctype"] == "Organization"


@pytest.mark.parametrize("doctype", FIELDS)
def test_the_first_documents_fields_come_first_and_unchanged(doctype):
	meta = frappe.get_meta(doctype)
	order = [
		field.fieldname for field in meta.fields if field.fieldtype not in ("Section Break", "Column Break")
	]
	assert order[: len(FIELDS[doctype])] == list(FIELDS[doctype])
	for fieldname, (fieldtype, required, known) in FIELDS[doctype].items():
		field = meta.get_field(fieldname)
		assert (field.fieldtype, field.reqd) == (fieldtype, required), fieldname
		assert known in (field.default or None, field.options), fieldname


@pytest.mark.parametrize("doctype", ADDED)
def test_what_the_other_documents_add_is_there(doctype):
	assert set(ADDED[doctype].split()) <= {field.fieldname for field in frappe.get_meta(doctype).fields}


def test_options_are_the_documents_words():
	meta = frappe.get_meta("Background Job")
	words = ["Pending", "Queued", "Running", "Completed", "Failed", "Dead Letter", "Timed Out", "Canceled"]
	assert meta.get_field("status").options.split("\n") == words
	assert meta.get_field("priority").options.split("\n") == ["Low", "Normal", "High", "Critical"]
	assert meta.get_field("error_type").options.split("\n") == ["", "Transient", "Permanent"]


@pytest.mark.parametrize("doctype", PERMISSIONS)
def test_permissions_are_the_documents(doctype):
	rows = {
		row.role: tuple(row.get(right) or 0 for right in RIGHTS)
		for row in frappe.get_meta(doctype).permissions
	}
	assert rows == PERMISSIONS[doctype]


@pytest.mark.parametrize(
	("doctype", "autoname"),
	[("Background Job", "naming_series:"), ("Job Type", "field:type_name"), ("Job Execution Log", "hash")],
)
def test_naming_is_the_documents(doctype, autoname):
	assert frappe.get_meta(doctype).autoname == autoname


@pytest.mark.parametrize(("doctype", "index"), [(d, index) for d in INDEXES for index in INDEXES[d]])
def test_indexes_exist(doctype, index):
	assert frappe.db.has_index(f"tab{doctype}", index)


def test_every_date_that_sorts_jobs_is_a_column(world):
	job = make_job(world.a)
	assert job.created_at
	assert frappe.db.get_value("Background Job", job.name, "created_at") == job.created_at


def test_fixtures_are_there():
	assert frappe.db.exists("Role", "Dartwing Admin")
	assert frappe.db.exists("Role", "Dartwing User")
	sample = frappe.get_doc("Job Type", "sample_job")
	assert sample.handler_method == "dartwing_jobs.samples.execute_sample_job"
	assert (sample.default_timeout, sample.default_priority, sample.max_retries) == (60, "Normal", 3)
	assert callable(frappe.get_attr(sample.handler_method))
