"""Templates over HTTP: who lists, uses and manages them, and what strangers hear."""

import json

import frappe
import pytest

from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.world import REPEATABLE, make_job_type, make_template

API = "dartwing_jobs.api.templates"
PEOPLE = ["manager", "admin_a", "user_a", "admin_b", "user_b", "stranger"]


@pytest.fixture(scope="module")
def browsers(world):
	return {person: Browser(getattr(world, person)) for person in PEOPLE}


@pytest.fixture
def job_type(world):
	return make_job_type().name


@pytest.fixture
def made(world, job_type):
	"""A template of each kind, committed."""
	kinds = {
		"of_a": {"organization": world.a, "default_params": {"steps": 1, "deep": {"x": 1}}},
		"archived": {"organization": world.a, "status": "Archived"},
		"of_b": {"organization": world.b},
		"shared": {"organization": None},
		"guarded": {
			"organization": None,
			"job_type": make_job_type(requires_permission="Job Type:delete").name,
		},
	}
	names = {kind: make_template(**{"job_type": job_type, **fields}).name for kind, fields in kinds.items()}
	frappe.db.commit()
	return frappe._dict(names)


def call(browser, method: str, **arguments):
	answer = browser.call(f"{API}.{method}", **arguments)
	assert answer.status_code == 200, answer.get_data(as_text=True)[-2000:]
	return answer.json["message"]


def listed(browser, **arguments) -> list[str]:
	names, cursor = [], None
	while True:
		page = call(
			browser, "list_templates", limit=200, **arguments, **({"cursor": cursor} if cursor else {})
		)
		names += [template["name"] for template in page["templates"]]
		if not (cursor := page["next"]):
			return names


@pytest.mark.parametrize(
	("person", "seen"),
	[
		("manager", {"of_a", "archived", "of_b", "shared", "guarded"}),
		("admin_a", {"of_a", "archived", "shared", "guarded"}),
		("user_a", {"of_a", "shared"}),
		("admin_b", {"of_b", "shared", "guarded"}),
		("user_b", {"of_b", "shared"}),
		("stranger", set()),
	],
)
def test_everybody_lists_what_they_may_use_or_read(browsers, made, person, seen):
	names = listed(browsers[person])
	assert {kind for kind, name in made.items() if name in names} == seen
	for kind, name in made.items():
		found = browsers[person].call(f"{API}.get", template=name).status_code
		assert found == (200 if kind in seen else 404), kind


def test_a_list_can_be_narrowed_and_paged(world, browsers, made, job_type):
	mine = browsers["admin_a"]
	assert listed(mine, organization=world.a, job_type=job_type, status="Archived") == [made.archived]
	pages, cursor = [], None
	for _number in range(2):
		arguments = {"cursor": cursor} if cursor else {}
		page = call(mine, "list_templates", limit=1, job_type=job_type, status="Active", **arguments)
		pages += [template["name"] for template in page["templates"]]
		cursor = page["next"]
	assert pages == [made.shared, made.of_a]
	assert mine.call(f"{API}.list_templates", cursor="nonsense").status_code == 417


def test_a_type_whose_permission_cannot_be_checked_empties_no_list(world, browsers, made):
	odd = make_job_type()
	template = make_template(None, job_type=odd.name)
	frappe.db.set_value("Job Type", odd.name, "requires_permission", "Vanished DocType:read")
	frappe.db.commit()
	names = listed(browsers["user_a"])
	assert made.shared in names
	assert template.name not in names


def test_a_user_submits_from_templates_without_any_right_on_them(world, browsers, made):
	job = call(browsers["user_a"], "submit", template=made.of_a, overrides={"deep": {"y": 2}}, priority=9)
	assert job["parameters"] == {"steps": 1, "deep": {"x": 1, "y": 2}}
	assert (job["organization"], job["owner_user"], job["priority"]) == (world.a, world.user_a, "High")
	assert (job["job_template"], job["duplicate"]) == (made.of_a, False)
	assert call(browsers["user_b"], "submit", template=made.shared)["organization"] == world.b
	for kind in ("of_a", "shared"):
		assert browsers["user_a"].get(f"/api/resource/Job Template/{made[kind]}").status_code == 403
		for method, arguments in {"update": {"description": "x"}, "archive": {}, "delete": {}}.items():
			refused = browsers["user_a"].call(f"{API}.{method}", template=made[kind], **arguments)
			assert refused.status_code == 403, method


def test_the_same_key_answers_with_the_same_job(browsers, made):
	first, second = (
		call(browsers["user_a"], "submit", template=made.of_a, idempotency_key=made.of_a) for _ in range(2)
	)
	assert (second["name"], second["duplicate"]) == (first["name"], True)


def test_an_archived_template_is_refused_in_clear_words(browsers, made):
	refused = browsers["user_a"].call(f"{API}.submit", template=made.archived)
	assert refused.status_code == 417
	assert "archived" in refused.get_data(as_text=True)


@pytest.mark.parametrize("person", ["admin_b", "user_b", "stranger"])
@pytest.mark.parametrize("method", ["get", "update", "archive", "restore", "delete", "submit"])
def test_outsiders_find_nothing(browsers, made, person, method):
	answers = [browsers[person].call(f"{API}.{method}", template=name) for name in (made.of_a, "never-was")]
	assert [answer.status_code for answer in answers] == [404, 404]
	said = [json.loads(json.loads(answer.json["_server_messages"])[0])["message"] for answer in answers]
	assert said[0].replace(made.of_a, "never-was") == said[1]
	assert frappe.db.get_value("Job Template", made.of_a, "status") == "Active"


@pytest.mark.parametrize("person", ["admin_a", "user_a"])
def test_only_system_managers_manage_global_ones(world, browsers, made, person):
	for method in ("update", "archive", "restore", "delete"):
		assert browsers[person].call(f"{API}.{method}", template=made.shared).status_code == 403, method
	assert call(browsers["manager"], "archive", template=made.shared)["status"] == "Archived"
	assert call(browsers["manager"], "delete", template=made.shared)["template"] == made.shared


def test_an_admin_manages_templates_at_home(world, browsers):
	mine, name = browsers["admin_a"], f"Mine {frappe.generate_hash(length=8)}"
	fields = {"template_name": name, "job_type": REPEATABLE, "organization": world.a}
	template = call(mine, "create", **fields, default_params={"a": 1})
	assert (template["status"], template["default_params"]) == ("Active", {"a": 1})
	assert template["creation"][-6] in "+-"
	assert mine.call(f"{API}.create", **fields).status_code == 417
	changed = call(mine, "update", template=template["name"], default_params={"a": 2}, description="d")
	assert (changed["default_params"], changed["description"]) == ({"a": 2}, "d")
	assert changed["template_name"] == name
	assert mine.call(f"{API}.create", **{**fields, "organization": world.b}).status_code == 403


def test_archiving_and_deleting_tell_which_schedules_were_stopped(world, browsers, made):
	mine = browsers["admin_a"]
	schedule = _schedule(made.of_a, world.a)
	assert call(mine, "archive", template=made.of_a)["disabled_schedules"] == [schedule]
	assert call(mine, "restore", template=made.of_a)["status"] == "Active"
	frappe.db.rollback()
	assert not frappe.db.get_value("Job Schedule", schedule, "enabled")
	other = _schedule(made.of_a, world.a)
	assert call(mine, "delete", template=made.of_a)["disabled_schedules"] == [other]
	frappe.db.rollback()
	assert not frappe.db.exists("Job Template", made.of_a)
	assert mine.get(f"/api/resource/Job Schedule/{other}").json["data"]["job_template"] == made.of_a


def _schedule(template: str, organization: str) -> str:
	fields = {"schedule_name": "s", "cron_expression": "0 9 * * *", "enabled": 1, "job_template": template}
	name = frappe.get_doc({"doctype": "Job Schedule", "organization": organization, **fields}).insert().name
	frappe.db.commit()
	return name


def test_writes_are_posts(browsers, made):
	for method in ("update", "archive", "restore", "delete", "submit"):
		answer = browsers["manager"].get(f"/api/method/{API}.{method}", template=made.of_a)
		assert answer.status_code == 403, method
