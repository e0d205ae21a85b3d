"""Job Template, Job Schedule, Job Group, Job Queue and settings: what they refuse."""

import frappe
import pytest

from dartwing_jobs.errors import FrozenFieldError, InvalidJobError
from dartwing_jobs.tests.world import make_organization, make_template


def new_schedule(template, **fields):
	values = {"schedule_name": "s", "job_template": template.name, "cron_expression": "0 9 * * 1-5"}
	return frappe.get_doc(
		{"doctype": "Job Schedule", "organization": template.organization, **values, **fields}
	)


def test_a_schedule_checks_its_expression(world):
	with pytest.raises(InvalidJobError, match="never fires"):
		new_schedule(make_template(world.a), cron_expression="0 0 30 2 *").insert()


def test_a_schedule_needs_an_active_template_of_its_organization(world):
	with pytest.raises(InvalidJobError, match="archived"):
		new_schedule(make_template(world.a, status="Archived")).insert()
	with pytest.raises(frappe.LinkValidationError, match="Could not find"):
		new_schedule(make_template(world.b), organization=world.a).insert()
	with pytest.raises(frappe.LinkValidationError):
		new_schedule(frappe._dict(name="gone", organization=world.a)).insert()


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../etc/passwd", "Europe", "+02:00"])
def test_a_schedule_needs_a_real_time_zone(world, zone):
	with pytest.raises(InvalidJobError, match="is not a time zone"):
		new_schedule(make_template(world.a), time_zone=zone).insert()


def test_a_schedule_ends_after_it_starts(world):
	with pytest.raises(InvalidJobError, match="must come after its start"):
		new_schedule(make_template(world.a), start_at="2027-01-02", end_at="2027-01-01").insert()


def test_a_schedule_runs_as_whoever_last_enabled_it(world):
	schedule = new_schedule(make_template(world.a)).insert()
	assert schedule.run_as == "Administrator"
	frappe.set_user(world.admin_a)
	schedule.enabled = 0
	schedule.save()
	assert schedule.run_as == "Administrator"
	schedule.enabled = 1
	schedule.save()
	assert schedule.run_as == world.admin_a


def test_nobody_makes_a_schedule_run_as_somebody_else(world):
	template = make_template(world.a)
	schedule = new_schedule(template).insert()
	frappe.set_user(world.admin_a)
	assert new_schedule(template, run_as="Administrator").insert().run_as == world.admin_a
	mine = frappe.get_doc("Job Schedule", schedule.name)
	mine.run_as = world.manager
	with pytest.raises(FrozenFieldError):
		mine.save()


@pytest.mark.parametrize(
	("doctype", "field"), [("Job Template", "default_params"), ("Job Schedule", "param_overrides")]
)
def test_parameters_must_be_an_object(world, doctype, field):
	template = make_template(world.a)
	doc = template if doctype == "Job Template" else new_schedule(template).insert()
	for bad in ("[1]", "{oops", '"text"'):
		doc.set(field, bad)
		with pytest.raises(InvalidJobError):
			doc.save()
		doc.reload()


def test_template_names_are_unique_where_they_are_seen_together(world):
	template = make_template(world.a)
	assert make_template(world.b, template_name=template.template_name)
	with pytest.raises(InvalidJobError, match="already a Job Template"):
		make_template(world.a, template_name=template.template_name)
	shared = make_template(None)
	with pytest.raises(InvalidJobError, match="already a Job Template"):
		make_template(None, template_name=shared.template_name)


@pytest.mark.parametrize("doctype", ["Job Template", "Job Schedule", "Job Group"])
def test_nothing_moves_to_another_organization(world, doctype):
	template = make_template(world.a)
	doc = {
		"Job Template": lambda: template,
		"Job Schedule": lambda: new_schedule(template).insert(),
		"Job Group": lambda: _group(world.a),
	}[doctype]()
	doc.organization = world.b
	with pytest.raises(frappe.ValidationError):
		doc.save()


def _group(organization: str):
	return frappe.get_doc({"doctype": "Job Group", "group_name": "g", "organization": organization}).insert()


def test_a_groups_status_is_derived(world):
	group = _group(world.a)
	group.status = "Completed"
	with pytest.raises(FrozenFieldError, match="follows from its jobs"):
		group.save()


def test_inactive_organizations_get_no_templates_groups_or_schedules(world):
	organization = make_organization(status="Inactive")
	for make in (make_template, _group):
		with pytest.raises(InvalidJobError, match="Inactive"):
			make(organization)


def test_the_seven_queues_are_there():
	queues = dict(frappe.get_all("Job Queue", fields=["name", "rq_queue"], as_list=True))
	assert {"q:critical", "q:default", "q:notifications", "q:planning", "q:exports"} <= set(queues)
	assert {"q:maintenance", "q:deadletter"} <= set(queues)
	assert frappe.db.get_value("Job Queue", "q:critical", "max_waiting") == 100


def test_a_queue_needs_a_worker_queue_of_this_bench():
	queue = frappe.get_doc("Job Queue", "q:default")
	queue.rq_queue = "nobody-serves-this"
	with pytest.raises(InvalidJobError, match="must be one of this bench's worker queues"):
		queue.save()


def test_standard_queues_stay():
	with pytest.raises(InvalidJobError, match="standard queue"):
		frappe.delete_doc("Job Queue", "q:deadletter")


@pytest.mark.parametrize(
	("field", "value"),
	[
		("max_parameter_bytes", 10),
		("max_parameter_bytes", 10**9),
		("retention_days", 0),
		("lease_seconds", 1),
		("missed_after_seconds", 59),
		("missed_after_seconds", 3601),
		("most_missed_fires", 1001),
	],
)
def test_settings_stay_within_reason(field, value):
	settings = frappe.get_doc("Job Engine Settings")
	settings.set(field, value)
	with pytest.raises(InvalidJobError):
		settings.save()


def test_settings_that_came_with_an_update_are_saved_with_their_defaults():
	frappe.get_doc("Job Engine Settings").save()
	frappe.db.sql(
		"delete from `tabSingles` where doctype = 'Job Engine Settings' and field = 'lease_seconds'"
	)
	frappe.clear_document_cache("Job Engine Settings", "Job Engine Settings")
	frappe.get_doc("Job Engine Settings").save()
	assert frappe.db.get_single_value("Job Engine Settings", "lease_seconds") == 30


def test_a_fresh_site_is_online():
	assert frappe.get_doc("Job Engine Settings").online
