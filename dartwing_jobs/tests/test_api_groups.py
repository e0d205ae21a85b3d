"""Groups over HTTP: made, followed, listed and canceled by those who may."""

import re
from datetime import datetime

import frappe
import pytest

from dartwing_jobs import group
from dartwing_jobs.engine import drain
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.test_execute import execute
from dartwing_jobs.tests.world import make_job_type, make_queue, stored_status

API = "dartwing_jobs.api.groups"
HANDLER = "dartwing_jobs.tests.grouping.work"


@pytest.fixture(scope="module")
def browsers(world):
	people = ["user_a", "colleague_a", "admin_a", "user_b", "admin_b", "stranger"]
	return {person: Browser(getattr(world, person)) for person in people}


@pytest.fixture
def queue():
	name = make_queue()
	frappe.db.commit()
	return name


@pytest.fixture
def job_type(queue):
	name = make_job_type(handler_method=HANDLER, job_queue=queue).name
	frappe.db.commit()
	return name


@pytest.fixture
def mine(world, job_type):
	"""A committed group of a Dartwing User."""
	frappe.set_user(world.user_a)
	made = group("mine", {"job_type": job_type, "parameters": [{"n": n} for n in range(5)]})
	frappe.set_user("Administrator")
	frappe.db.commit()
	return made.name


def test_a_user_makes_a_group_and_follows_it_to_its_end(world, browsers, job_type, queue):
	browser = browsers["user_a"]
	jobs = [{"job_type": job_type, "parameters": {"n": n}, "priority": "High"} for n in range(3)]
	callback = {"job_type": job_type, "parameters": {"end": 1}, "on": "Success"}
	answer = browser.call(
		f"{API}.create", name="by http", jobs=jobs, mode="Sequential", on_completion=callback
	)
	assert answer.status_code == 200, answer.text
	made = answer.json["message"]
	assert (made["status"], made["mode"], made["owner"]) == ("Queued", "Sequential", world.user_a)
	assert made["organization"] == world.a
	assert datetime.fromisoformat(made["creation"]).tzinfo
	drain.drain([queue])
	told = browser.get(f"/api/method/{API}.get", group=made["name"]).json["message"]
	assert (told["status"], told["percent"], told["total"]) == ("Completed", 100, 3)
	assert told["counts"] == {"Completed": 3}
	assert stored_status(told["callback_job"]) == "Completed"


def test_jobs_may_be_json_texts(browsers, job_type):
	jobs = frappe.as_json({"job_type": job_type, "parameters": [{"n": 1}, {"n": 2}]})
	callback = frappe.as_json({"job_type": job_type})
	answer = browsers["user_a"].call(f"{API}.create", name="texts", jobs=jobs, on_completion=callback)
	assert (answer.status_code, answer.json["message"]["callback_job_type"]) == (200, job_type)


@pytest.mark.parametrize(
	("jobs", "complaint"),
	[
		("no list", "JSON"),
		([1], "JSON objects"),
		([{"job_type": "x", "owner_user": "Administrator"}], "no option owner_user"),
		([{"job_type": "x", "retry_of": "JOB-1"}], "no option retry_of"),
		([{"job_type": "no such type"}], "was not found"),
		([{"parameters": {}}], "job_type"),
	],
)
def test_what_is_no_job_is_refused(browsers, jobs, complaint):
	answer = browsers["user_a"].call(f"{API}.create", name="wrong", jobs=jobs)
	assert answer.status_code in (400, 417)
	assert complaint in answer.text
	assert not frappe.db.exists("Job Group", {"group_name": "wrong"})


def test_writes_are_posts(browsers, mine):
	answer = browsers["user_a"].get(f"/api/method/{API}.cancel", group=mine)
	assert answer.status_code == 403
	assert frappe.db.get_value("Job Group", mine, "status") == "Queued"


def test_members_come_page_by_page_in_order(browsers, mine):
	seen, cursor = [], None
	while True:
		given = {"group": mine, "limit": 2, **({"cursor": cursor} if cursor else {})}
		page = browsers["user_a"].get(f"/api/method/{API}.members", **given).json["message"]
		seen += page["jobs"]
		cursor = page["next"]
		if not cursor:
			break
	assert [job["position"] for job in seen] == [1, 2, 3, 4, 5]
	assert [job["parameters"] for job in seen] == [{"n": n} for n in range(5)]


def test_a_cursor_that_is_none_is_refused(browsers, mine):
	for method, given in (("members", {"group": mine}), ("list_groups", {})):
		answer = browsers["user_a"].get(f"/api/method/{API}.{method}", cursor="gibberish", **given)
		assert answer.status_code == 417 and "where a page ended" in answer.text


def test_a_group_is_canceled_over_http(browsers, mine, job_type):
	answer = browsers["user_a"].call(f"{API}.cancel", group=mine, reason="enough")
	told = answer.json["message"]
	assert (told["status"], told["counts"], told["cancel_reason"]) == ("Canceled", {"Canceled": 5}, "enough")
	again = browsers["user_a"].call(f"{API}.cancel", group=mine)
	assert again.status_code == 409 and "has ended as Canceled" in again.text


@pytest.mark.parametrize("person", ["colleague_a", "user_b", "admin_b", "stranger"])
@pytest.mark.parametrize("method", ["get", "members", "cancel"])
def test_for_others_there_is_no_such_group(browsers, mine, person, method):
	answers = [browsers[person].call(f"{API}.{method}", group=name) for name in (mine, "no-such-group")]
	assert [answer.status_code for answer in answers] == [404, 404]
	texts = [re.sub("[0-9a-f]{40,}", "", answer.text) for answer in answers]  # each error has its number
	assert texts[0].replace(mine, "X") == texts[1].replace("no-such-group", "X")
	assert frappe.db.get_value("Job Group", mine, "status") == "Queued"


@pytest.mark.parametrize(
	("person", "sees"), [("user_a", 1), ("admin_a", 1), ("colleague_a", 0), ("admin_b", 0), ("stranger", 0)]
)
def test_everybody_lists_what_they_may_follow(browsers, mine, person, sees):
	answer = browsers[person].call(f"{API}.list_groups", limit=200)
	assert answer.status_code == 200
	assert [row["name"] for row in answer.json["message"]["groups"]].count(mine) == sees


def test_lists_go_on_where_a_page_ended(world, browsers, job_type):
	names = {group(f"page {n}", [{"job_type": job_type}], organization=world.a).name for n in range(3)}
	frappe.db.commit()
	seen, cursor = [], None
	while not names <= set(seen):
		given = {"limit": 2, "status": "Queued", "organization": world.a}
		page = browsers["admin_a"].call(f"{API}.list_groups", cursor=cursor, **given).json["message"]
		seen += [row["name"] for row in page["groups"]]
		cursor = page["next"]
		assert cursor or names <= set(seen)
	assert len(seen) == len(set(seen))


def test_a_reason_that_cannot_be_stored_is_refused(browsers, mine):
	answer = browsers["user_a"].call(f"{API}.cancel", group=mine, reason="enough\x00")
	assert answer.status_code == 417 and "NUL" in answer.text
	assert frappe.db.get_value("Job Group", mine, "status") == "Queued"


def test_an_admin_cancels_what_others_of_the_organization_made(browsers, mine):
	answer = browsers["admin_a"].call(f"{API}.cancel", group=mine)
	assert answer.json["message"]["status"] == "Canceled"


def test_a_group_is_made_and_canceled_at_a_terminal(world, job_type):
	jobs = {"job_type": job_type, "parameters": [{}, {}]}
	made = execute("dartwing_jobs.group", name="typed", jobs=jobs, organization=world.a)
	assert (made["status"], made["last_position"]) == ("Queued", 2)
	assert execute(f"{API}.cancel", group=made["name"])["counts"] == {"Canceled": 2}


@pytest.mark.parametrize(
	("person", "status"), [("user_a", 200), ("admin_a", 200), ("colleague_a", 417), ("user_b", 417)]
)
def test_who_sees_a_group_joins_it_by_a_submit(world, browsers, job_type, mine, person, status):
	organization = world.b if person == "user_b" else world.a
	given = {"job_type": job_type, "organization": organization, "job_group": mine}
	answer = browsers[person].call("dartwing_jobs.api.jobs.submit", **given)
	assert answer.status_code == status, answer.text
	count = frappe.db.count("Background Job", {"job_group": mine})
	assert count == (6 if status == 200 else 5)
