"""Who may take how much: bounds by type, role and settings, the same at every door."""

import frappe
import pytest

from dartwing_jobs import submit
from dartwing_jobs.engine import control
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.testing import run_job
from dartwing_jobs.tests import doors
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.world import REPEATABLE, make_job, make_job_type, make_template, new_job, plant

API = "dartwing_jobs.api.jobs"
TOO_MUCH = {"timeout_seconds": 10**9, "max_retries": 10**9, "priority": "Critical"}
REFUSALS = {
	"timeout_seconds": "Timeout must be at most 86400 seconds",
	"max_retries": "Max Retries must be at most 100 ",
	"priority": "Priority Critical is not for you .* use High",
}


@pytest.fixture(scope="module")
def browsers(world):
	people = ("user_a", "admin_a", "manager")
	return {person: Browser(getattr(world, person)) for person in people}


@pytest.fixture
def as_user(world):
	frappe.set_user(world.user_a)
	yield world.user_a
	frappe.set_user("Administrator")


@pytest.fixture
def settings():
	"""The settings, to be changed; afterwards they are as before."""
	row = frappe.get_doc("Job Engine Settings")
	before = {field.fieldname: row.get(field.fieldname) for field in row.meta.fields}

	def change(**fields):
		row.reload()
		row.update(fields)
		row.save()
		frappe.db.commit()

	yield change
	frappe.set_user("Administrator")
	change(**{name: value for name, value in before.items() if value is not None})


@pytest.mark.parametrize("field", TOO_MUCH)
def test_a_user_may_not_ask_for_everything(world, as_user, field):
	with pytest.raises(InvalidJobError, match=REFUSALS[field]):
		submit(REPEATABLE, None, world.a, **{field: TOO_MUCH[field]})


@pytest.mark.parametrize("field", TOO_MUCH)
def test_over_http_the_refusal_is_a_sentence(world, browsers, field):
	answer = browsers["user_a"].call(f"{API}.submit", job_type=REPEATABLE, **{field: TOO_MUCH[field]})
	assert answer.status_code == 417
	assert REFUSALS[field][:20] in answer.get_data(as_text=True)


@pytest.mark.parametrize("field", ["timeout_seconds", "max_retries"])
@pytest.mark.parametrize("door", doors.CREATE_DOORS[:3], ids=lambda door: door.__name__)
def test_no_door_lets_an_admin_make_such_a_job(world, browsers, door, field):
	mark = frappe.generate_hash(length=12)
	job = {"job_type": REPEATABLE, "organization": world.a, "request_id": mark}
	door(browsers["admin_a"], [{**job, field: TOO_MUCH[field]}])
	door(browsers["manager"], [{**job, field: TOO_MUCH[field]}])
	frappe.db.rollback()
	made = frappe.get_all("Background Job", {"request_id": mark}, ["owner_user", field])
	assert [(row.owner_user, row[field]) for row in made] == [(world.manager, 10**9)]


@pytest.mark.parametrize("field", ["timeout_seconds", "max_retries"])
@pytest.mark.parametrize(
	"door", [doors.save, doors.resource, doors.client_set_value], ids=lambda door: door.__name__
)
def test_no_door_lets_an_admin_edit_a_job_into_one(world, browsers, door, field):
	job = make_job(world.a)
	frappe.db.commit()
	door(browsers["admin_a"], field, [(job.name, 10**9)])
	frappe.db.rollback()
	assert frappe.db.get_value("Background Job", job.name, field) == job.get(field)
	door(browsers["manager"], field, [(job.name, 10**9)])
	frappe.db.rollback()
	assert frappe.db.get_value("Background Job", job.name, field) == 10**9


def test_what_was_granted_before_does_not_stop_another_edit(world, browsers):
	job = make_job(world.a)
	plant(job.name, timeout_seconds=10**9)
	frappe.db.commit()
	doors.resource(browsers["admin_a"], "priority", [(job.name, "High")])
	frappe.db.rollback()
	assert frappe.db.get_value("Background Job", job.name, "priority") == "High"


def test_a_job_type_raises_the_bounds_for_its_own_jobs(world, as_user):
	frappe.set_user("Administrator")
	generous = {"default_timeout": 200_000, "max_retries": 500, "allow_critical": 1}
	job_type = make_job_type(**generous).name
	frappe.set_user(as_user)
	asked = {"timeout_seconds": 200_000, "max_retries": 500, "priority": "Critical"}
	job = submit(job_type, None, world.a, **asked)
	assert {name: job.get(name) for name in asked} == asked
	with pytest.raises(InvalidJobError, match="at most 200000 seconds"):
		submit(job_type, None, world.a, timeout_seconds=200_001)


def test_the_settings_say_how_much(world, settings, as_user):
	frappe.set_user("Administrator")
	settings(max_timeout_seconds=100, max_retries_limit=7)
	frappe.set_user(as_user)
	assert submit(REPEATABLE, None, world.a, timeout_seconds=100, max_retries=7)
	with pytest.raises(InvalidJobError, match="at most 100 seconds"):
		submit(REPEATABLE, None, world.a, timeout_seconds=101)
	with pytest.raises(InvalidJobError, match="at most 7 "):
		submit(REPEATABLE, None, world.a, max_retries=8)


def test_critical_is_for_admins_unless_it_is_reserved(world, settings):
	frappe.set_user(world.admin_a)
	assert submit(REPEATABLE, None, world.a, priority="Critical").priority == "Critical"
	frappe.set_user("Administrator")
	settings(reserve_critical=1)
	frappe.set_user(world.admin_a)
	for door in (_submit_critical, _insert_critical, _schedule_critical):
		with pytest.raises(InvalidJobError, match="Priority Critical is not for you"):
			door(world)
	frappe.set_user(world.manager)
	assert _submit_critical(world).priority == "Critical"


def _submit_critical(world):
	return submit(REPEATABLE, None, world.a, priority=12)


def _insert_critical(world):
	return new_job(world.a, priority="Critical").insert()


def _schedule_critical(world, template=None, **options):
	template = template or make_template(world.a)
	fields = {"schedule_name": frappe.generate_hash(), "organization": world.a, "job_template": template.name}
	fields |= {"cron_expression": "0 9 * * *", "priority": "Critical", **options}
	return frappe.get_doc({"doctype": "Job Schedule", **fields}).insert()


def test_a_disabled_schedule_does_not_keep_critical_until_it_is_enabled(world, settings):
	settings(reserve_critical=1)
	frappe.set_user(world.admin_a)
	with pytest.raises(InvalidJobError, match="Priority Critical is not for you"):
		_schedule_critical(world, enabled=0)


def test_a_template_does_not_carry_critical_over_to_another_type(world, settings):
	settings(reserve_critical=1)
	generous, frugal = make_job_type(allow_critical=1).name, make_job_type().name
	template = make_template(world.a, job_type=generous)
	frappe.set_user(world.admin_a)
	_schedule_critical(world, template)
	template.job_type = frugal
	with pytest.raises(InvalidJobError, match="Priority Critical is not for you"):
		template.save()
	frappe.set_user(world.manager)
	template.reload()
	template.job_type = frugal
	template.save()
	assert frappe.db.get_value("Job Template", template.name, "job_type") == frugal


def methods_of_users(world, asked: dict) -> dict[str, tuple[str, dict]]:
	"""Every method by which a user makes jobs, with what they ask for."""
	job, group = {"job_type": REPEATABLE, **asked}, {"name": "Greedy", "organization": world.a}
	return {
		"submit": ("jobs.submit", job),
		"submit_many": ("jobs.submit_many", {**job, "parameters": [{}]}),
		"a group": ("groups.create", {**group, "jobs": [job]}),
		"a group of many": ("groups.create", {**group, "jobs": {**job, "parameters": [{}]}}),
		"a template": ("templates.submit", {"template": make_template(world.a).name, **asked}),
	}


@pytest.mark.parametrize("method", ["submit", "submit_many", "a group", "a group of many", "a template"])
@pytest.mark.parametrize("field", TOO_MUCH)
def test_no_method_gives_a_user_too_much(world, browsers, method, field):
	"""Or it has no such option at all."""
	path, given = methods_of_users(world, {field: TOO_MUCH[field]})[method]
	frappe.db.commit()
	before = frappe.db.count("Background Job")
	answer = browsers["user_a"].call(f"dartwing_jobs.api.{path}", **given)
	text = answer.get_data(as_text=True)
	assert answer.status_code == 417, text[-500:]
	assert REFUSALS[field][:20] in text or f"has no argument {field}" in text
	frappe.db.rollback()
	assert frappe.db.count("Background Job") == before


def test_the_engine_is_not_bound(world, as_user):
	"""What is tried again gets what it had, and what a handler submits is the app's to decide."""
	frappe.set_user("Administrator")
	job = submit(REPEATABLE, None, world.a, owner_user=world.user_a, **TOO_MUCH)
	control.cancel(job.name)
	frappe.set_user(as_user)
	again = control.retry(job.name)
	assert {name: again.get(name) for name in TOO_MUCH} == TOO_MUCH
	frappe.db.commit()
	frappe.set_user("Administrator")
	handler = "dartwing_jobs.tests.handlers.submit_critical"
	parent = submit(make_job_type(handler_method=handler).name, None, world.a, owner_user=world.user_a)
	frappe.db.commit()
	assert run_job(parent.name).status == "Completed"
	frappe.set_user("Administrator")
	frappe.db.rollback()
	children = frappe.get_all("Background Job", {"project_id": parent.name, "priority": "Critical"})
	assert len(children) == 1


@pytest.mark.parametrize(("person", "most"), [("user_a", 3), ("admin_a", 5)])
def test_a_request_makes_no_more_jobs_than_its_user_may(world, browsers, settings, person, most):
	settings(max_jobs_per_request=3, max_jobs_per_admin_request=5)
	for number, status in ((most, 200), (most + 1, 417)):
		many = [{"number": one} for one in range(number)]
		answers = [
			browsers[person].call(f"{API}.submit_many", job_type=REPEATABLE, parameters=many),
			_make_group(browsers[person], many),
			_make_group(browsers[person], many, as_list=True),
		]
		assert [answer.status_code for answer in answers] == [status] * 3
	assert f"at most {most} are allowed" in answers[0].get_data(as_text=True)
	assert _make_group(browsers["manager"], [{}] * 6, organization=world.a).status_code == 200


def _make_group(browser, many: list, as_list: bool = False, **fields):
	jobs = [{"job_type": REPEATABLE, "parameters": one} for one in many] if as_list else None
	jobs = jobs or {"job_type": REPEATABLE, "parameters": many}
	return browser.call("dartwing_jobs.api.groups.create", name=frappe.generate_hash(), jobs=jobs, **fields)


# the document's door and `submit` ask the same


@pytest.fixture
def permitted_type():
	return make_job_type(requires_permission="Role:create").name


@pytest.mark.parametrize("door", doors.CREATE_DOORS, ids=lambda door: door.__name__)
def test_no_door_makes_a_job_of_a_type_that_its_user_may_not_submit(world, browsers, permitted_type, door):
	mark = frappe.generate_hash(length=12)
	job = {"job_type": permitted_type, "organization": world.a, "request_id": mark}
	frappe.db.commit()
	door(browsers["admin_a"], [job])
	frappe.db.rollback()
	assert frappe.get_all("Background Job", {"request_id": mark}) == []
	door(browsers["manager"], [job])
	frappe.db.rollback()
	assert len(frappe.get_all("Background Job", {"request_id": mark})) == 1


def test_both_doors_refuse_in_the_same_words(world, browsers, permitted_type):
	frappe.db.commit()
	job = {"job_type": permitted_type, "organization": world.a}
	answers = [
		browsers["admin_a"].call(f"{API}.submit", **job),
		browsers["admin_a"].post("/api/resource/Background Job", **job),
	]
	assert [answer.status_code for answer in answers] == [403, 403]
	for answer in answers:
		assert "has no create permission for Role" in answer.get_data(as_text=True)


BAD = {
	"a place without a group": ({"position": 3}, "A position is a place in a group"),
	"an unknown child policy": ({"on_parent_failure": "Panic"}, "On Parent Failure"),
	"a long name": ({"depends_on": "x" * 100_000}, "at most 140"),
	"half a character": ({"project_id": "a\ud800"}, "half a surrogate pair"),
	"the last year": ({"scheduled_for": "9999-12-31 23:59:59"}, "must be a date and time"),
	"an endless number": ({"max_retries": float("inf")}, "must be a whole number"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("door", ["submit", "insert"])
def test_both_doors_refuse_the_same(world, door, case):
	fields, refusal = BAD[case]
	with pytest.raises(frappe.ValidationError, match=refusal):
		submit(REPEATABLE, None, world.a, **fields) if door == "submit" else new_job(
			world.a, **fields
		).insert()
