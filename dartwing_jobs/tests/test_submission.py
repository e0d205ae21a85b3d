"""What may become a job, and what a person is told when it may not."""

import frappe
import pytest

from dartwing_jobs.engine import submission
from dartwing_jobs.engine.rules import priorities
from dartwing_jobs.engine.submit import submit
from dartwing_jobs.errors import FrozenFieldError, InvalidJobError
from dartwing_jobs.testing import run_job
from dartwing_jobs.tests.world import (
	make_job,
	make_job_type,
	make_organization,
	make_queue,
	make_template,
	new_job,
	plant,
	stored_status,
)


@pytest.mark.parametrize("status", ["Inactive", "Dissolved"])
def test_an_inactive_organization_gets_no_job(world, status):
	organization = make_organization(status=status)
	with pytest.raises(InvalidJobError, match=f"is {status}; only active organizations"):
		new_job(organization).insert()


def test_a_vanished_organization_gets_no_job(world):
	with pytest.raises(frappe.LinkValidationError, match="Organization"):
		new_job("Gone").insert()
	with pytest.raises(InvalidJobError, match="Organization Gone was not found"):
		new_job("Gone").insert(ignore_links=True)


def test_a_vanished_job_type_makes_no_job(world):
	with pytest.raises(frappe.LinkValidationError, match="Job Type"):
		new_job(world.a, job_type="gone").insert()
	with pytest.raises(InvalidJobError, match="Job Type gone was not found"):
		new_job(world.a, job_type="gone").insert(ignore_links=True)


def test_a_disabled_job_type_makes_no_job(world):
	job_type = make_job_type(is_enabled=0)
	with pytest.raises(InvalidJobError, match="is disabled"):
		new_job(world.a, job_type=job_type.name).insert()


def test_disabling_a_type_leaves_its_jobs_editable(world):
	job_type = make_job_type()
	job = make_job(world.a, job_type=job_type.name)
	job_type.is_enabled = 0
	job_type.save()
	job.priority = "High"
	job.save()
	assert frappe.db.get_value("Background Job", job.name, "priority") == "High"


def test_a_parent_must_be_in_the_same_organization(world):
	parent = make_job(world.b)
	with pytest.raises(frappe.LinkValidationError, match="Could not find"):
		new_job(world.a, depends_on=parent.name).insert()


def test_a_parent_in_the_same_organization_is_fine(world):
	parent = make_job(world.a)
	assert make_job(world.a, depends_on=parent.name).depends_on == parent.name


def test_a_job_cannot_depend_on_itself(world):
	job = make_job(world.a)
	job.depends_on = job.name
	with pytest.raises(InvalidJobError, match="circle"):
		submission.check_dependency(job)
	with pytest.raises(frappe.ValidationError):
		job.save()


@pytest.mark.parametrize("length", [2, 3, 5])
def test_a_circle_of_any_length_is_refused(world, length):
	chain = [make_job(world.a)]
	while len(chain) < length:
		chain.append(make_job(world.a, depends_on=chain[-1].name))
	first, last = chain[0], chain[-1]
	first.depends_on = last.name
	with pytest.raises(InvalidJobError, match="circle"):
		submission.check_dependency(first)
	with pytest.raises(frappe.ValidationError):
		first.save()
	plant(first.name, depends_on=last.name)
	with pytest.raises(InvalidJobError, match="circle"):
		new_job(world.a, depends_on=last.name).insert()


@pytest.mark.parametrize("field", ["job_template", "job_group", "retry_of"])
def test_links_stay_within_the_organization(world, field):
	foreign = {
		"job_template": lambda: make_template(world.b).name,
		"job_group": lambda: _group(world.b),
		"retry_of": lambda: make_job(world.b).name,
	}[field]()
	with pytest.raises(frappe.LinkValidationError, match="Could not find"):
		new_job(world.a, **{field: foreign}).insert()


def _group(organization: str) -> str:
	return (
		frappe.get_doc({"doctype": "Job Group", "group_name": "g", "organization": organization})
		.insert()
		.name
	)


def test_an_archived_template_makes_no_job(world):
	template = make_template(world.a, status="Archived")
	with pytest.raises(InvalidJobError, match="archived"):
		new_job(world.a, job_template=template.name).insert()


def test_a_global_template_serves_every_organization(world):
	template = make_template(None)
	assert make_job(world.a, job_template=template.name).job_template == template.name


@pytest.mark.parametrize("word", ["Urgent", "normal", "", "\u202eHigh"])
def test_unknown_priorities_are_refused_and_empty_ones_filled(world, word):
	if not word:
		assert make_job(world.a, priority=word).priority == "Normal"
	else:
		with pytest.raises(InvalidJobError, match="Priority must be one of"):
			new_job(world.a, priority=word).insert()


@pytest.mark.parametrize(
	("number", "word"),
	[(-7, "Low"), (0, "Normal"), (1, "High"), (9, "High"), (10, "Critical"), ("12", "Critical")],
)
def test_an_integer_priority_means_a_word(world, number, word):
	assert priorities.from_value(number) == word
	assert make_job(world.a, priority=number).priority == word


def test_a_job_takes_what_is_left_open_from_its_type(world):
	job_type = make_job_type(default_priority="High", default_timeout=77, max_retries=2)
	job = make_job(world.a, job_type=job_type.name)
	assert (job.priority, job.timeout_seconds, job.max_retries) == ("High", 77, 2)


def test_a_value_equal_to_the_fields_default_yields_to_the_type(world):
	job_type = make_job_type(default_priority="High", default_timeout=77, max_retries=0)
	defaults = {"priority": "Normal", "timeout_seconds": 300, "max_retries": 5}
	job = make_job(world.a, job_type=job_type.name, **defaults)
	assert (job.priority, job.timeout_seconds, job.max_retries) == ("High", 77, 0)


def test_what_the_submitter_says_wins_over_the_type(world):
	job_type = make_job_type(default_priority="High", default_timeout=77, max_retries=2)
	job = make_job(world.a, job_type=job_type.name, priority="Low", timeout_seconds=5, max_retries=1)
	assert (job.priority, job.timeout_seconds, job.max_retries) == ("Low", 5, 1)


@pytest.mark.parametrize(
	("category", "retries", "queue"),
	[
		("General", 4, "q:default"),
		("Notification", 9, "q:notifications"),
		("Audit Enrichment", 4, "q:default"),
		("Planning", 2, "q:planning"),
		("Import/Export", 4, "q:exports"),
		("Maintenance", 4, "q:maintenance"),
	],
)
def test_a_type_takes_what_is_left_open_from_its_category(world, category, retries, queue):
	job_type = make_job_type(category=category)
	assert job_type.max_retries == retries
	job = make_job(world.a, job_type=job_type.name)
	assert (job.max_retries, job.job_queue) == (retries, queue)


@pytest.mark.parametrize(
	("category", "attempts"), [("General", 5), ("Notification", 10), ("Planning", 3), ("Maintenance", 5)]
)
def test_a_category_is_tried_as_often_as_it_was_specified(world, category, attempts):
	path = "dartwing_jobs.samples.fail_for_a_while"
	job_type = make_job_type(category=category, handler_method=path, job_queue=make_queue()).name
	job = submit(job_type, {"attempts": 99}, world.a).name
	while stored_status(job) != "Dead Letter":
		run_job(job)
	assert frappe.db.count("Job Run", {"background_job": job}) == attempts


def test_a_category_that_an_administrator_adds_is_tried_as_often(world):
	name = f"Category {frappe.generate_hash(length=8)}"
	added = {"doctype": "Job Category", "category_name": name, "job_queue": "q:default"}
	assert frappe.get_doc(added).insert().max_retries == 4


def test_an_administrator_may_set_the_default_number_of_retries_later():
	job_type = make_job_type(category="Notification")
	job_type.max_retries = 5
	job_type.save()
	assert frappe.db.get_value("Job Type", job_type.name, "max_retries") == 5


@pytest.mark.parametrize("category", ["General", "Notification", "Maintenance", "Planning"])
def test_only_some_categories_may_be_scheduled_unasked(category):
	assert make_job_type(category=category).allow_schedule == int(category != "Planning")


@pytest.mark.parametrize(
	"field",
	["progress", "retry_count", "started_at", "error_message", "output_reference", "lease_token", "attempt"],
)
def test_what_the_engine_sets_cannot_be_given(world, field):
	value = {"started_at": "2026-01-01 00:00:00"}.get(field, 7)
	with pytest.raises(FrozenFieldError, match="set by the engine"):
		new_job(world.a, **{field: value}).insert()


def test_a_given_name_is_ignored(world):
	job = new_job(world.a)
	job.insert(set_name="JOB-2026-99999")
	assert job.name != "JOB-2026-99999"
	assert job.name.startswith("JOB-")


def test_a_job_gets_a_uuid_and_keeps_a_given_one(world):
	given = "12345678-1234-4234-8234-123456789abc"
	assert len(make_job(world.a).job_id) == 36
	assert make_job(world.a, job_id=given.upper()).job_id == given
	with pytest.raises(frappe.UniqueValidationError):
		new_job(world.a, job_id=given).insert()


def test_a_job_id_must_be_a_uuid(world):
	with pytest.raises(InvalidJobError, match="must be a UUID"):
		new_job(world.a, job_id="42").insert()


@pytest.mark.parametrize("status", ["Pending", "Queued"])
@pytest.mark.parametrize(
	("field", "value"),
	[
		("priority", "Critical"),
		("max_retries", 1),
		("timeout_seconds", 9),
		("scheduled_for", "2030-01-01 00:00:00"),
	],
)
def test_a_waiting_job_can_be_tuned(world, status, field, value):
	job = make_job(world.a, status=status)
	job.set(field, value)
	job.save()
	assert str(frappe.db.get_value("Background Job", job.name, field)) == str(value)


@pytest.mark.parametrize("status", ["Running", "Completed", "Failed", "Dead Letter", "Timed Out", "Canceled"])
def test_a_job_that_no_longer_waits_cannot_be_tuned(world, status):
	job = make_job(world.a, status=status)
	job.max_retries = 1
	with pytest.raises(FrozenFieldError, match="only while it waits"):
		job.save()
	with pytest.raises(FrozenFieldError):
		frappe.get_doc("Background Job", job.name).db_set("max_retries", 1)


def test_saving_without_a_change_is_harmless(world):
	job = make_job(world.a, status="Completed", input_parameters={"a": [1, {"b": None}]})
	frappe.get_doc("Background Job", job.name).save()
	assert frappe.db.get_value("Background Job", job.name, "status") == "Completed"


def test_db_set_checks_the_value_too(world):
	with pytest.raises(frappe.ValidationError):
		make_job(world.a).db_set("max_retries", -1)
	with pytest.raises(frappe.ValidationError):
		make_job(world.a).db_set("priority", "Urgent")
