"""Jobs from templates: what they are made of, who may make them, and what becomes of them later."""

import json

import frappe
import pytest

import dartwing_jobs
from dartwing_jobs import settings
from dartwing_jobs.errors import InvalidJobError, SecretInPayload
from dartwing_jobs.parameters import MAX_DEPTH, load
from dartwing_jobs.testing import run_job
from dartwing_jobs.tests.processes import in_other_processes
from dartwing_jobs.tests.world import (
	make_job_type,
	make_organization,
	make_queue,
	make_template,
	make_user,
	new_job,
)

SCHEMA = json.dumps({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "integer"}}})
TAKEN = "already a Job Template"


def submit(template, overrides=None, organization=None, **options):
	return dartwing_jobs.submit_from_template(template.name, overrides, organization, **options)


def given(job) -> dict:
	return load(job.input_parameters)


def test_a_job_has_the_templates_type_organization_and_merged_parameters(world):
	template = make_template(world.a, default_params={"a": {"b": 1, "c": 2}, "d": [1]})
	job = submit(template, {"a": {"c": 3}, "d": None})
	assert (job.job_type, job.organization, job.job_template) == (template.job_type, world.a, template.name)
	assert given(job) == {"a": {"b": 1, "c": 3}}
	assert submit(template, '{"d": 5}').input_parameters == '{"a":{"b":1,"c":2},"d":5}'


def test_without_overrides_or_defaults_nothing_is_missed(world):
	assert given(submit(make_template(world.a, default_params={"a": 1}))) == {"a": 1}
	assert given(submit(make_template(world.a), {"b": 2})) == {"b": 2}
	assert given(submit(make_template(world.a))) == {}


def test_the_options_of_submit_are_options_here(world):
	job = submit(make_template(world.a), priority="High", max_retries=9, correlation_id="c-1")
	assert (job.priority, job.max_retries, job.correlation_id) == ("High", 9, "c-1")
	with pytest.raises(InvalidJobError, match="no option prioritty"):
		submit(make_template(world.a), prioritty="High")


def test_what_a_schema_asks_for_may_come_from_either_side(world):
	"""Defaults alone may be incomplete: what counts is what the job would get."""
	job_type = make_job_type(parameters_schema=SCHEMA).name
	template = make_template(world.a, job_type=job_type, default_params={"a": 1})
	assert given(submit(template, {"b": 2})) == {"a": 1, "b": 2}
	with pytest.raises(InvalidJobError, match="b"):
		submit(template)
	with pytest.raises(InvalidJobError):
		submit(template, {"a": "no number", "b": 2})
	with pytest.raises(InvalidJobError):
		submit(template, {"a": None, "b": 2})


def test_secrets_are_refused_on_either_side(world):
	with pytest.raises(SecretInPayload):
		make_template(world.a, default_params={"password": "hunter2-hunter2"})
	with pytest.raises(SecretInPayload):
		submit(make_template(world.a), {"password": "hunter2-hunter2"})


@pytest.mark.parametrize(
	"overrides",
	["[1]", "{oops", '"text"', '{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1), '{"a":' * 100_000],
	ids=["list", "broken", "text", "deep", "deeper than Python goes"],
)
def test_overrides_that_are_no_parameters_are_refused(world, overrides):
	with pytest.raises(InvalidJobError, match="Overrides"):
		submit(make_template(world.a), overrides)


def test_two_that_fit_may_be_too_much_together(world):
	"""Each side is within the limits, and only the job's parameters are not."""
	half = settings.max_parameter_bytes() * 2 // 3
	template = make_template(world.a, default_params={"a": "x" * half})
	with pytest.raises(InvalidJobError, match="bytes are allowed"):
		submit(template, {"b": "x" * half})


def test_an_archived_template_makes_no_jobs_and_leaves_its_jobs_alone(world):
	template = make_template(world.a)
	job = submit(template)
	archive(template)
	with pytest.raises(InvalidJobError, match="is archived; no new jobs can be made from it"):
		submit(template)
	with pytest.raises(InvalidJobError, match="is archived"):
		new_job(world.a, job_template=template.name).insert()
	assert run_job(job.name).status == "Completed"
	template.status = "Active"
	template.save()
	assert submit(template)


def test_a_notification_from_an_archived_template_fails_nobody(world):
	"""As any notification that cannot be submitted; who must know says so."""
	template = make_template(world.a, job_type=make_job_type(category="Notification").name)
	archive(template)
	assert submit(template) is None
	with pytest.raises(InvalidJobError, match="is archived"):
		submit(template, must_submit=True)


def test_a_type_that_is_disabled_makes_no_jobs(world):
	job_type = make_job_type()
	template = make_template(world.a, job_type=job_type.name)
	job_type.is_enabled = 0
	job_type.save()
	with pytest.raises(InvalidJobError, match="disabled"):
		submit(template)


def test_a_template_needs_a_job_type_that_exists(world):
	with pytest.raises((frappe.LinkValidationError, InvalidJobError)):
		make_template(world.a, job_type="nowhere")


def test_a_changed_template_changes_only_what_comes_later(world):
	"""The type, too: a template's schedules are asked at each fire whether their type may be scheduled."""
	template = make_template(world.a, default_params={"a": 1})
	before = submit(template)
	template.update({"job_type": make_job_type().name, "default_params": {"a": 2}})
	template.save()
	after = submit(template)
	before.reload()
	assert (before.job_type, given(before)) == ("repeatable_job", {"a": 1})
	assert (after.job_type, given(after)) == (template.job_type, {"a": 2})


def test_a_job_cannot_claim_a_template_of_another_type(world):
	template = make_template(world.a)
	with pytest.raises(InvalidJobError, match="makes jobs of type"):
		dartwing_jobs.submit(make_job_type().name, {}, world.a, job_template=template.name)


def test_runs_keep_what_they_were_given_when_the_template_changes_and_goes(world):
	template = make_template(world.a, default_params={"steps": 1})
	job = submit(template)
	run_job(job.name)
	template.default_params = {"steps": 2}
	template.save()
	frappe.delete_doc("Job Template", template.name)
	run = frappe.get_last_doc("Job Run", {"background_job": job.name})
	assert (run.job_template, load(run.params_snapshot)) == (template.name, {"steps": 1})
	assert frappe.get_doc("Background Job", job.name).job_template == template.name


def test_a_job_whose_template_is_gone_runs_and_fails_and_is_tried_again(world):
	job_type = make_job_type(handler_method="dartwing_jobs.samples.fail_for_a_while", retry_mode="New Job")
	template = make_template(world.a, job_type=job_type.name, default_params={"attempts": 2})
	job = submit(template, job_queue=make_queue())
	frappe.delete_doc("Job Template", template.name)
	assert run_job(job.name).status == "Failed"
	successor = frappe.get_doc("Background Job", {"retry_of": job.name})
	assert successor.job_template == template.name
	assert run_job(successor.name).status == "Completed"


# its schedules


def make_schedule(template, organization: str):
	fields = {"schedule_name": "s", "cron_expression": "0 9 * * *", "enabled": 1}
	link = {"job_template": template.name, "organization": organization}
	return frappe.get_doc({"doctype": "Job Schedule", **fields, **link}).insert()


def archive(template) -> None:
	template.status = "Archived"
	template.save()


def test_archiving_disables_its_schedules_and_warns(world):
	template, other = make_template(None), make_template(world.a)
	stopped = [make_schedule(template, organization) for organization in (world.a, world.b)]
	untouched = make_schedule(other, world.a)
	archive(template)
	for schedule in stopped:
		schedule.reload()
		assert (schedule.enabled, schedule.job_template) == (0, template.name)
		assert schedule.disabled_reason == f"Job Template {template.template_name} was archived."
	(warning,) = frappe.get_message_log()
	assert all(schedule.name in warning["message"] for schedule in stopped)
	untouched.reload()
	assert untouched.enabled


def test_a_template_without_schedules_is_archived_and_deleted_without_a_word(world):
	template = make_template(world.a)
	archive(template)
	frappe.delete_doc("Job Template", template.name)
	assert frappe.get_message_log() == []


def test_only_archiving_disables(world):
	"""Another edit, of an archived template too, is nobody's reason to stop what was started again since."""
	template = make_template(world.a)
	schedule = make_schedule(template, world.a)
	template.default_params = {"a": 1}
	template.save()
	schedule.reload()
	assert schedule.enabled


def test_an_edit_that_changes_no_job_changes_nobodys_rights(world):
	template = make_template(world.a, default_params={"a": 1})
	schedule = make_schedule(template, world.a)
	frappe.set_user(world.admin_a)
	edited = frappe.get_doc("Job Template", template.name)
	edited.update({"description": "the same, told better", "default_params": '{"a": 1 }'}).save()
	assert frappe.db.get_value("Job Schedule", schedule.name, "run_as") == "Administrator"
	edited.update({"default_params": {"a": 2}}).save()
	assert frappe.db.get_value("Job Schedule", schedule.name, "run_as") == world.admin_a


def test_an_active_template_leaves_its_schedules_to_whoever_enables_them(world):
	template = make_template(world.a)
	schedule = make_schedule(template, world.a)
	archive(template)
	template.status = "Active"
	template.save()
	schedule.reload()
	assert not schedule.enabled
	schedule.enabled = 1
	assert schedule.save().enabled


def test_a_deleted_template_leaves_its_schedules_disabled_with_the_reason(world):
	template, other = make_template(world.a), make_template(world.a)
	name = make_schedule(template, world.a).name
	frappe.delete_doc("Job Template", template.name)
	schedule = frappe.get_doc("Job Schedule", name)
	assert (schedule.enabled, schedule.job_template) == (0, template.name)
	assert schedule.disabled_reason == f"Job Template {template.template_name} was deleted."
	schedule.enabled = 1
	with pytest.raises(frappe.ValidationError):
		schedule.save()
	schedule.reload()
	schedule.update({"enabled": 1, "job_template": other.name})
	assert schedule.save().enabled


def test_an_archiving_that_is_rolled_back_stops_nothing(world):
	template = make_template(world.a)
	schedule = make_schedule(template, world.a)
	frappe.db.savepoint("still_active")
	archive(template)
	frappe.db.rollback(save_point="still_active")
	assert frappe.db.get_value("Job Schedule", schedule.name, "enabled")


# whose template it is


def test_anybody_who_may_submit_uses_a_global_template_at_home(world):
	template = make_template(None, default_params={"a": 1})
	for user, organization in ((world.user_a, world.a), (world.user_b, world.b)):
		frappe.set_user(user)
		job = submit(template)
		assert (job.organization, job.owner_user, given(job)) == (organization, user, {"a": 1})


def test_a_global_template_opens_no_organization(world):
	template = make_template(None)
	frappe.set_user(world.user_b)
	with pytest.raises(frappe.PermissionError):
		submit(template, organization=world.a)
	frappe.set_user(world.stranger)
	with pytest.raises(InvalidJobError, match="for which organization"):
		submit(template)
	frappe.set_user("Administrator")
	with pytest.raises(InvalidJobError, match="for which organization"):
		submit(template)


def test_a_global_template_gives_no_permission_that_its_type_requires(world):
	template = make_template(None, job_type=make_job_type(requires_permission="Job Type:delete").name)
	frappe.set_user(world.user_a)
	with pytest.raises(frappe.PermissionError):
		submit(template)


@pytest.mark.parametrize("person", ["user_b", "admin_b", "stranger", "Administrator"])
def test_an_organizations_template_is_used_inside_it_alone(world, person):
	"""Others hear the same of it as of one that never was."""
	template = make_template(world.a)
	frappe.set_user(getattr(world, person, person))
	attempts = [world.b] if person == "Administrator" else [None, world.a, world.b]
	for organization in attempts:
		for name in (template.name, "never-was"):
			with pytest.raises(frappe.DoesNotExistError, match=f"Job Template {name} was not found"):
				dartwing_jobs.submit_from_template(name, organization=organization)


def test_no_door_tells_a_foreign_template_from_none(world):
	foreign = make_template(world.b).name
	for name in (foreign, "never-was"):
		with pytest.raises(frappe.LinkValidationError, match=f"Could not find Job Template: {name}"):
			dartwing_jobs.submit("repeatable_job", {}, world.a, job_template=name)


def test_somebody_of_two_organizations_is_at_home_in_the_templates(world):
	both = make_user("both", ["Dartwing User"], [world.a, world.b])
	template, shared = make_template(world.b), make_template(None)
	frappe.set_user(both)
	assert submit(template).organization == world.b
	assert submit(shared, organization=world.a).organization == world.a
	with pytest.raises(InvalidJobError, match="for which organization"):
		submit(shared)


# names


def test_names_differ_by_more_than_capitals_on_every_database(world):
	template = make_template(world.a, template_name=f"Über {frappe.generate_hash(length=8)}")
	for taken in (template.template_name.upper(), f" {template.template_name} "):
		with pytest.raises(InvalidJobError, match=TAKEN):
			make_template(world.a, template_name=taken)
	assert make_template(world.a, template_name=template.template_name.replace("Ü", "U"))


@pytest.mark.parametrize("is_global", [True, False])
def test_of_two_that_take_a_name_at_once_the_index_refuses_one(world, is_global):
	"""Both have looked, and neither has seen the other; forms hear of it in the usual words."""
	organization = None if is_global else world.a
	template, other = make_template(organization), make_template(organization)
	late = frappe.get_doc({**template.as_dict(), "name": None})
	late.flags.ignore_validate = True
	frappe.db.savepoint("late")
	with pytest.raises(InvalidJobError, match=TAKEN):
		late.insert()
	assert [TAKEN in str(message) for message in frappe.get_message_log()] == [True]
	frappe.db.rollback(save_point="late")
	other.template_name = template.template_name
	other.flags.ignore_validate = True
	with pytest.raises(InvalidJobError, match=TAKEN):
		other.save()


def test_of_many_processes_each_name_goes_to_one(world):
	names = [f"Raced {frappe.generate_hash(length=8)}" for _ in range(8)]
	taken = in_other_processes(_take_each, *[(names, world.a), (names, None)] * 2)
	frappe.db.rollback()
	assert sorted(taken[0] + taken[2]) == sorted(taken[1] + taken[3]) == sorted(names)


def _take_each(names: list[str], organization: str | None) -> list[str]:
	taken = []
	for name in names:
		try:
			make_template(organization, template_name=name)
			frappe.db.commit()
			taken.append(name)
		except InvalidJobError:
			frappe.db.rollback()
	return taken


def test_an_organization_that_was_renamed_keeps_its_names(world):
	"""Frappe writes the new name into the links and nothing else; another of the old name starts afresh."""
	renamed, template = make_organization("Renamed"), make_template(world.a)
	frappe.db.set_value("Job Template", template.name, "organization", renamed)
	with pytest.raises(InvalidJobError, match=TAKEN):
		make_template(renamed, template_name=template.template_name)
	assert make_template(world.a, template_name=template.template_name)
