"""Organization B, and people without one, try every read and write door on organization A's rows: nothing."""

import json
from urllib.parse import quote

import frappe
import pytest

from dartwing_jobs import tenancy
from dartwing_jobs.tests import doors
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.world import REPEATABLE, expel, make_job, make_template, make_user, new_job, plant

OUTSIDERS = ["admin_b", "user_b", "stranger"]
MARK_FIELD = {
	"Background Job": "request_id",
	"Job Execution Log": "request_id",
	"Job Group": "group_name",
	"Job Idempotency Key": "idempotency_key",
	"Job Organization Policy": "pause_reason",
	"Job Run": "worker",
	"Job Schedule": "schedule_name",
	"Job Schedule Fire": "message",
	"Job Step": "step_key",
	"Job Template": "template_name",
}


@pytest.fixture(scope="module")
def rows(world):
	"""One row of each tenant DocType in organization A, each carrying the same secret mark."""
	mark = f"secret-{frappe.generate_hash(length=12)}"
	template = make_template(world.a, template_name=mark)
	job = make_job(world.a, request_id=mark, owner_user=world.user_a)
	names = {
		"Background Job": job.name,
		"Job Execution Log": frappe.db.get_value("Job Execution Log", {"background_job": job.name}),
		"Job Template": template.name,
		"Job Schedule": _insert(
			"Job Schedule", schedule_name=mark, organization=world.a, **_every_day(template)
		),
		"Job Schedule Fire": _plant(
			"Job Schedule Fire",
			job_schedule="a schedule",
			organization=world.a,
			fire_at=job.created_at,
			outcome="Missed",
			message=mark,
		),
		"Job Group": _insert("Job Group", group_name=mark, organization=world.a),
		"Job Organization Policy": _insert(
			"Job Organization Policy", organization=world.a, pause_reason=mark
		),
		"Job Run": _plant("Job Run", background_job=job.name, organization=world.a, worker=mark),
		"Job Step": _plant(
			"Job Step", background_job=job.name, organization=world.a, step_key=mark, key_hash=mark
		),
		"Job Idempotency Key": _plant(
			"Job Idempotency Key",
			organization=world.a,
			idempotency_key=mark,
			key_hash=frappe.generate_hash(length=64),
			background_job=job.name,
			first_seen_at=job.created_at,
			last_seen_at=job.created_at,
		),
	}
	frappe.db.commit()
	return frappe._dict(mark=mark, names=names)


@pytest.fixture(scope="module")
def browsers(world):
	return {
		person: Browser(getattr(world, person)) for person in ["manager", "admin_a", "user_a", *OUTSIDERS]
	}


def _every_day(template) -> dict:
	return {"job_template": template.name, "cron_expression": "0 0 * * *"}


def _insert(doctype: str, **fields) -> str:
	return frappe.get_doc({"doctype": doctype, **fields}).insert().name


def _plant(doctype: str, **fields) -> str:
	"""A row that comes first in every list: lists show a page, and other tests have left thousands."""
	name, now = frappe.generate_hash(length=20), frappe.utils.now()
	columns = {"name": name, "creation": now, "modified": now, **fields}
	frappe.db.bulk_insert(doctype, fields=list(columns), values=[list(columns.values())])
	return name


def _list(browser, doctype, name):
	return browser.get(f"/api/resource/{doctype}", fields=["*"], filters={"name": name})


def _list_v2(browser, doctype, name):
	return browser.get(f"/api/v2/document/{doctype}", fields=["*"], filters={"name": name})


def _get(browser, doctype, name):
	return browser.get(f"/api/resource/{doctype}/{quote(name)}")


def _client_list(browser, doctype, name):
	return browser.call("frappe.client.get_list", doctype=doctype, fields=["*"], filters={"name": name})


def _client_get(browser, doctype, name):
	return browser.call("frappe.client.get", doctype=doctype, name=name)


def _client_value(browser, doctype, name):
	field = MARK_FIELD[doctype]
	return browser.call("frappe.client.get_value", doctype=doctype, filters={"name": name}, fieldname=field)


def _report(browser, doctype, name):
	fields = [f"`tab{doctype}`.`name`", f"`tab{doctype}`.`{MARK_FIELD[doctype]}`"]
	return browser.call(
		"frappe.desk.reportview.get", doctype=doctype, fields=fields, page_length=1000, start=0
	)


def _form(browser, doctype, name):
	return browser.get("/api/method/frappe.desk.form.load.getdoc", doctype=doctype, name=name)


def _export(browser, doctype, name):
	fields = [f"`tab{doctype}`.`name`", f"`tab{doctype}`.`{MARK_FIELD[doctype]}`"]
	arguments = {"doctype": doctype, "fields": fields, "file_format_type": "CSV", "title": doctype}
	return browser.call("frappe.desk.reportview.export_query", **arguments)


def _finds(browser, doctype, name) -> bool:
	"""Whether a search answers with a name, however JSON spells it."""
	answer = browser.call("frappe.desk.search.search_link", doctype=doctype, txt=name, page_length=20)
	spelled = {name, json.dumps(name)[1:-1], json.dumps(name, ensure_ascii=False)[1:-1]}
	return any(spelling in answer.get_data(as_text=True) for spelling in spelled)


def _title(browser, doctype, name):
	return browser.call("frappe.desk.search.get_link_title", doctype=doctype, docname=name)


SHOWING_DOORS = [_list, _list_v2, _get, _client_list, _client_get, _client_value, _report, _form]
READ_DOORS = [*SHOWING_DOORS, _export, _title]


@pytest.mark.parametrize("doctype", sorted(tenancy.TENANT_DOCTYPES))
@pytest.mark.parametrize("person", OUTSIDERS)
def test_outsiders_read_nothing(rows, browsers, person, doctype):
	name = rows.names[doctype]
	for door in READ_DOORS:
		answer = door(browsers[person], doctype, name).get_data(as_text=True)
		assert rows.mark not in answer, door.__name__
	assert not _finds(browsers[person], doctype, name)
	exists = browsers[person].call("frappe.client.validate_link", doctype=doctype, docname=name)
	assert exists.status_code == 403 or not exists.json["message"].get("name")


@pytest.mark.parametrize("doctype", sorted(tenancy.TENANT_DOCTYPES - {"Job Idempotency Key"}))
def test_the_admin_of_the_organization_reads_through_the_same_doors(rows, browsers, doctype):
	"""Without this, a door that is broken would look like a door that is shut."""
	for door in SHOWING_DOORS:
		answer = door(browsers["admin_a"], doctype, rows.names[doctype]).get_data(as_text=True)
		assert rows.mark in answer, door.__name__
	name = rows.names[doctype]
	assert _finds(browsers["admin_a"], doctype, name)
	exists = browsers["admin_a"].call("frappe.client.validate_link", doctype=doctype, docname=name)
	assert exists.json["message"]["name"] == name


@pytest.mark.parametrize("doctype", sorted(tenancy.TENANT_DOCTYPES))
def test_a_system_manager_reads_everything(rows, browsers, doctype):
	for door in SHOWING_DOORS:
		answer = door(browsers["manager"], doctype, rows.names[doctype]).get_data(as_text=True)
		assert rows.mark in answer, door.__name__


@pytest.mark.parametrize("doctype", sorted(tenancy.TENANT_DOCTYPES))
@pytest.mark.parametrize("method", ["frappe.client.get_count", "frappe.desk.reportview.get_count"])
def test_outsiders_count_nothing(world, rows, browsers, method, doctype):
	arguments = {"doctype": doctype, "filters": {"name": rows.names[doctype]}, "fields": []}
	for person in OUTSIDERS:
		answer = browsers[person].call(method, **arguments)
		assert answer.status_code == 403 or answer.json["message"] == 0, person
	assert browsers["manager"].call(method, **arguments).json["message"] == 1


@pytest.mark.parametrize("doctype", sorted(tenancy.TENANT_DOCTYPES))
@pytest.mark.parametrize("person", OUTSIDERS)
def test_outsiders_change_nothing(world, rows, browsers, person, doctype):
	name, browser, field = rows.names[doctype], browsers[person], MARK_FIELD[doctype]
	before = frappe.db.get_value(doctype, name, "*", as_dict=True)
	document = {"doctype": doctype, "name": name, "organization": world.b, field: "taken"}
	answers = [
		browser.put(f"/api/resource/{doctype}/{quote(name)}", **{field: "taken"}),
		# the trick of saying that the row is already mine
		browser.put(f"/api/resource/{doctype}/{quote(name)}", organization=world.b, owner=browser.user),
		browser.delete(f"/api/resource/{doctype}/{quote(name)}"),
		browser.call("frappe.client.set_value", doctype=doctype, name=name, fieldname=field, value="taken"),
		browser.call("frappe.client.save", doc=document),
		browser.call("frappe.client.delete", doctype=doctype, name=name),
		browser.call("frappe.client.bulk_update", docs=[{**document, "docname": name}]),
	]
	frappe.db.rollback()
	assert frappe.db.get_value(doctype, name, "*", as_dict=True) == before
	assert all(answer.status_code >= 400 for answer in answers[:-1])


@pytest.mark.parametrize("person", OUTSIDERS)
@pytest.mark.parametrize("door", doors.EDIT_DOORS_WITH_PERMISSIONS, ids=lambda door: door.__name__)
def test_outsiders_edit_no_job(rows, browsers, door, person):
	job_name = rows.names["Background Job"]
	door(browsers[person], "priority", [(job_name, "Critical")])
	frappe.db.rollback()
	assert frappe.db.get_value("Background Job", job_name, "priority") == "Normal"


@pytest.mark.parametrize("person", OUTSIDERS)
@pytest.mark.parametrize("door", doors.CREATE_DOORS, ids=lambda door: door.__name__)
def test_outsiders_create_nothing_in_the_organization(world, browsers, door, person):
	mark = frappe.generate_hash(length=12)
	door(browsers[person], [{"job_type": REPEATABLE, "organization": world.a, "request_id": mark}])
	frappe.db.rollback()
	assert not frappe.db.exists("Background Job", {"request_id": mark})


@pytest.mark.parametrize("doctype", ["Job Template", "Job Schedule", "Job Group"])
def test_an_admin_makes_things_only_at_home(world, rows, doctype):
	template = make_template(world.b)
	fields = {
		"Job Template": {"template_name": "new", "job_type": REPEATABLE},
		"Job Schedule": {"schedule_name": "new", **_every_day(template)},
		"Job Group": {"group_name": "new"},
	}[doctype]
	frappe.set_user(world.admin_b)
	assert frappe.get_doc({"doctype": doctype, "organization": world.b, **fields}).insert().name
	with pytest.raises(frappe.PermissionError):
		frappe.get_doc({"doctype": doctype, "organization": world.a, **fields}).insert()


def test_a_global_template_is_read_by_all_admins_and_changed_by_none(world):
	template = make_template(None)
	frappe.set_user(world.admin_b)
	assert template.name in frappe.get_list("Job Template", pluck="name", limit_page_length=1000)
	assert frappe.has_permission("Job Template", "read", doc=template)
	assert not frappe.has_permission("Job Template", "write", doc=template)


def test_a_user_sees_their_own_jobs_only(world):
	mine = make_job(world.a, owner_user=world.user_a)
	theirs = make_job(world.a, owner_user=world.colleague_a)
	frappe.set_user(world.user_a)
	visible = frappe.get_list("Background Job", pluck="name", limit_page_length=1000)
	assert mine.name in visible
	assert theirs.name not in visible
	assert frappe.has_permission("Background Job", "read", doc=mine)
	assert not frappe.has_permission("Background Job", "read", doc=theirs)


def test_a_user_may_not_write_even_their_own_job(world):
	mine = make_job(world.a, owner_user=world.user_a)
	frappe.set_user(world.user_a)
	mine.priority = "High"
	with pytest.raises(frappe.PermissionError):
		mine.save()


def test_losing_the_organization_loses_access(world):
	leaver = make_user("leaver", ["Dartwing User"], [world.a])
	job = make_job(world.a, owner_user=leaver)
	frappe.set_user(leaver)
	assert frappe.get_list("Background Job", pluck="name") == [job.name]
	frappe.set_user("Administrator")
	expel(leaver, world.a)
	frappe.set_user(leaver)
	assert frappe.get_list("Background Job", pluck="name") == []
	assert not frappe.has_permission("Background Job", "read", doc=job)


def test_an_admin_without_any_organization_sees_nothing(world):
	make_job(world.a)
	frappe.set_user(make_user("nowhere", ["Dartwing Admin"]))
	assert frappe.get_list("Background Job", pluck="name") == []


def test_a_permission_for_another_doctype_opens_nothing(world):
	user = make_user("narrow", ["Dartwing Admin"])
	frappe.get_doc(
		{
			"doctype": "User Permission",
			"user": user,
			"allow": "Organization",
			"for_value": world.a,
			"apply_to_all_doctypes": 0,
			"applicable_for": "Job Template",
		}
	).insert()
	make_job(world.a)
	template = make_template(world.a)
	frappe.set_user(user)
	assert frappe.get_list("Background Job", pluck="name") == []
	assert template.name in frappe.get_list("Job Template", pluck="name", limit_page_length=1000)


def test_the_submitter_owns_the_job(world):
	frappe.set_user(world.admin_a)
	job = new_job(world.a).insert()
	assert (job.owner_user, job.owner) == (world.admin_a, world.admin_a)


@pytest.mark.parametrize("victim", ["user_a", "manager", "Administrator"])
def test_nobody_submits_in_anothers_name(world, victim):
	frappe.set_user(world.admin_a)
	with pytest.raises(frappe.PermissionError, match="in the name of"):
		new_job(world.a, owner_user=getattr(world, victim, victim)).insert()


def test_a_system_manager_may_submit_for_another(world):
	frappe.set_user(world.manager)
	job = new_job(world.a, owner_user=world.user_a).insert()
	assert (job.owner_user, job.owner) == (world.user_a, world.user_a)


@pytest.mark.parametrize(
	"field", ["owner_user", "owner", "organization", "job_type", "input_parameters", "creation"]
)
def test_who_and_what_is_frozen(world, field):
	job = make_job(world.a, input_parameters={"a": 1})
	other = {
		"owner_user": world.user_a,
		"owner": world.user_a,
		"organization": world.b,
		"job_type": "other",
		"input_parameters": '{"a": 2}',
		"creation": "2020-01-01 00:00:00",
	}
	job.set(field, other[field])
	job.flags.ignore_links = True
	with pytest.raises(frappe.ValidationError):
		job.save()
	with pytest.raises(frappe.ValidationError):
		frappe.get_doc("Background Job", job.name).db_set(field, other[field])


def test_jobs_cannot_be_shared_past_the_organization(world):
	"""A share would be OR-ed to every condition and would outlive the membership."""
	job = make_job(world.a)
	share = {"share_doctype": "Background Job", "share_name": job.name, "user": world.user_b, "read": 1}
	with pytest.raises(Exception, match=r"shar|DocShare"):
		frappe.get_doc({"doctype": "DocShare", **share}).insert()
	frappe.set_user(world.user_b)
	assert job.name not in frappe.get_list("Background Job", pluck="name")


def test_a_planted_empty_organization_is_visible_to_nobody_but_managers(world):
	job = make_job(world.a)
	plant(job.name, organization="")
	frappe.set_user(world.admin_a)
	assert job.name not in frappe.get_list("Background Job", pluck="name", limit_page_length=1000)
