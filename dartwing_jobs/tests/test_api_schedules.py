"""Schedules over HTTP: made, read, paused, resumed, forced and foretold, by those who may and no others."""

from datetime import datetime

import frappe
import pytest

from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.scheduling import (
	EVERY_MINUTE,
	MINUTE,
	NOON,
	count_jobs,
	forget_all,
	make_schedule,
	tick,
)
from dartwing_jobs.tests.test_execute import execute
from dartwing_jobs.tests.world import REPEATABLE, make_template

API = "dartwing_jobs.api.schedules"
READS = ["get", "upcoming", "list_fires"]
WRITES = ["pause", "resume", "trigger"]


@pytest.fixture(scope="module")
def browsers(world):
	people = ["manager", "admin_a", "user_a", "admin_b", "stranger"]
	return {person: Browser(getattr(world, person)) for person in people}


@pytest.fixture
def admin(browsers):
	return browsers["admin_a"]


@pytest.fixture(autouse=True)
def nothing_fires_afterwards(site):
	yield
	forget_all()


def ask(browser: Browser, method: str, /, **arguments):
	answer = browser.call(f"{API}.{method}", **arguments)
	assert answer.status_code == 200, answer.get_data(as_text=True)
	return answer.json["message"]


def refused(browser: Browser, method: str, /, **arguments) -> tuple[int, str]:
	answer = browser.call(f"{API}.{method}", **arguments)
	assert answer.status_code >= 400
	return answer.status_code, answer.get_data(as_text=True)


def test_a_schedule_is_made_once_and_read_back(world, admin):
	name = f"nightly {frappe.generate_hash(length=8)}"
	told = {"name": name, "cron": "0 3 * * *", "job_type": REPEATABLE, "organization": world.a}
	told |= {"time_zone": "Asia/Tokyo", "start_at": "2030-01-01 00:00:00", "parameters": {"a": 1}}
	made = ask(admin, "schedule", **told)
	assert ask(admin, "schedule", **told) == made
	assert (made["schedule_name"], made["run_as"], made["enabled"]) == (name, world.admin_a, True)
	assert made["next_fire_at"] == "2030-01-01T03:00:00+09:00"
	assert (made["start_at"], made["last_fire_at"]) == ("2030-01-01T00:00:00", None)
	assert ask(admin, "get", schedule=made["name"]) == made
	changed = ask(admin, "schedule", **{**told, "cron": "0 4 * * *"})
	assert (changed["name"], changed["next_fire_at"]) == (made["name"], "2030-01-01T04:00:00+09:00")


def test_a_schedule_of_a_template_is_made(world, admin):
	template = make_template(world.a)
	frappe.db.commit()
	told = {"template": template.name, "overrides": {"depth": 2}, "organization": world.a}
	made = ask(admin, "schedule", name="from a template", cron="0 3 * * *", **told)
	assert (made["job_template"], made["param_overrides"]) == (template.name, {"depth": 2})


@pytest.mark.parametrize(
	("told", "message"),
	[
		({"cron": "0 0 30 2 *", "job_type": REPEATABLE}, "never fires"),
		({"cron": "0 0 * * *"}, "Say what to do"),
		({"cron": "0 0 * * *", "job_type": "no such type"}, "no such type"),
		({"cron": "0 0 * * *", "job_type": REPEATABLE, "time_zone": "Mars/Olympus"}, "is not a time zone"),
		({"cron": "0 0 * * *", "job_type": REPEATABLE, "overlap_policy": "Panic"}, "Panic"),
		({"cron": "0 0 * * *", "job_type": REPEATABLE, "jitter_seconds": -1}, "must be between 0"),
		({"cron": "0 0 * * *", "job_type": REPEATABLE, "parameters": [1]}, "parameters"),
		({"cron": "0 0 * * *", "job_type": REPEATABLE, "start_at": "soon"}, "must be a date and time"),
	],
)
def test_what_cannot_be_a_schedule_is_refused_and_leaves_nothing(world, admin, told, message):
	name = f"refused {frappe.generate_hash(length=8)}"
	_status, said = refused(admin, "schedule", name=name, organization=world.a, **told)
	assert message in said
	frappe.db.rollback()
	assert not frappe.db.exists("Job Schedule", {"schedule_name": name})
	assert not frappe.db.exists("Job Template", {"template_name": name})


@pytest.mark.parametrize("person", ["user_a", "admin_b", "stranger"])
def test_only_admins_of_the_organization_make_schedules(world, browsers, person):
	name = f"foreign {frappe.generate_hash(length=8)}"
	told = {"name": name, "cron": "0 3 * * *", "job_type": REPEATABLE, "organization": world.a}
	assert refused(browsers[person], "schedule", **told)[0] == 403
	frappe.db.rollback()
	assert not frappe.db.exists("Job Schedule", {"schedule_name": name})


@pytest.mark.parametrize("method", [*READS, *WRITES])
@pytest.mark.parametrize("person", ["user_a", "admin_b", "stranger"])
def test_others_cannot_tell_a_schedule_from_none(world, browsers, person, method):
	made = make_schedule(world.a)
	hidden = refused(browsers[person], method, schedule=made.name)
	missing = refused(browsers[person], method, schedule="nothing-here")
	assert hidden[0] == missing[0] == 404
	assert made.schedule_name not in hidden[1]


@pytest.mark.parametrize("method", ["schedule", *WRITES])
def test_what_writes_is_asked_for_by_post(world, admin, method):
	made = make_schedule(world.a)
	answer = admin.get(f"/api/method/{API}.{method}", schedule=made.name, name="x", cron="0 0 * * *")
	assert answer.status_code == 403


def test_a_schedule_is_paused_and_resumed(world, admin):
	made = make_schedule(world.a)
	paused = ask(admin, "pause", schedule=made.name, reason="audit week")
	assert (paused["enabled"], paused["disabled_reason"], paused["next_fire_at"]) == (
		False,
		"audit week",
		None,
	)
	assert ask(admin, "upcoming", schedule=made.name) == []
	resumed = ask(admin, "resume", schedule=made.name)
	assert (resumed["enabled"], resumed["disabled_reason"]) == (True, None)
	assert resumed["run_as"] == world.admin_a
	assert datetime.fromisoformat(resumed["next_fire_at"]).isoformat() == resumed["next_fire_at"]


def test_a_schedule_is_forced(world, admin):
	made = make_schedule(world.a)
	job = ask(admin, "trigger", schedule=made.name)["job"]
	frappe.db.rollback()
	assert frappe.db.get_value("Background Job", job, "owner_user") == world.admin_a
	assert count_jobs(made.name) == 1


def test_fire_times_are_foretold(world, admin):
	made = make_schedule(world.a, None, cron_expression="30 2 * * *", time_zone="Europe/Paris")
	told = ask(admin, "upcoming", schedule=made.name)
	assert len(told) == 10
	assert ask(admin, "preview", cron_expression="30 2 * * *", time_zone="Europe/Paris") == told
	assert ask(admin, "upcoming", schedule=made.name, count=2) == told[:2]
	window = {"start_at": "2030-03-30 00:00:00", "end_at": "2030-04-01 03:00:00"}
	told = ask(admin, "preview", cron_expression="30 2 * * *", time_zone="Europe/Paris", **window)
	assert told == [
		"2030-03-30T02:30:00+01:00",
		"2030-03-31T03:00:00+02:00",
		"2030-04-01T02:30:00+02:00",
	]


@pytest.mark.parametrize(
	("told", "message"),
	[
		({"cron_expression": "* * * *"}, "not a cron expression"),
		({"cron_expression": "0 0 31 2 *"}, "never fires"),
		({"cron_expression": "0 0 * * *", "time_zone": "Mars"}, "is not a time zone"),
		({"cron_expression": "0 0 * * *", "start_at": "whenever"}, "must be a date and time"),
	],
)
def test_a_preview_says_what_is_wrong(admin, told, message):
	assert message in refused(admin, "preview", **told)[1]


def test_fires_are_listed_page_by_page(world, admin):
	made = make_schedule(world.a, cron_expression=EVERY_MINUTE)
	tick(NOON + 4 * MINUTE)
	first = ask(admin, "list_fires", schedule=made.name, limit=3)
	second = ask(admin, "list_fires", schedule=made.name, limit=3, cursor=first["next"])
	moments = [fire["fire_at"] for fire in (*first["fires"], *second["fires"])]
	assert moments == [f"2026-06-15T12:0{n}:00+00:00" for n in (4, 3, 2, 1, 0)]
	assert second["next"] is None
	assert {fire["outcome"] for fire in first["fires"]} == {"Fired"}
	assert all(fire["background_job"] for fire in first["fires"])
	assert ask(admin, "list_fires", schedule=made.name, outcome="Missed")["fires"] == []
	assert "is not where a page ended" in refused(admin, "list_fires", schedule=made.name, cursor="here")[1]


def test_a_schedule_is_made_and_forced_at_a_terminal(world):
	name = f"typed {frappe.generate_hash(length=8)}"
	told = {"name": name, "cron": "0 3 * * *", "job_type": REPEATABLE, "organization": world.a}
	made = execute(f"{API}.schedule", **told)
	assert made["schedule_name"] == name
	assert execute(f"{API}.trigger", schedule=made["name"])["job"]
	assert count_jobs(made["name"]) == 1
	assert len(execute(f"{API}.upcoming", schedule=made["name"])) == 10


def test_a_schedule_whose_zone_is_gone_hides_no_other(world, admin):
	"""Names go when the zone data of a machine is renewed."""
	schedule = make_schedule(world.a)
	frappe.db.set_value("Job Schedule", schedule.name, "time_zone", "Nowhere/Land")
	frappe.db.commit()
	listed = ask(admin, "list_schedules", organization=world.a, limit=100)["schedules"]
	(shown,) = [row for row in listed if row["name"] == schedule.name]
	assert shown["next_fire_at"].endswith("+00:00")


def test_schedules_are_listed_to_those_who_may_see_them(world, browsers):
	template = make_template(world.a)
	made = [make_schedule(world.a, template=template).name for _ in range(3)]
	asked = {"job_template": template.name, "limit": 2}
	first = ask(browsers["admin_a"], "list_schedules", **asked)
	second = ask(browsers["admin_a"], "list_schedules", cursor=first["next"], **asked)
	listed = [row["name"] for row in (*first["schedules"], *second["schedules"])]
	assert listed == made[::-1] and second["next"] is None
	assert ask(browsers["admin_b"], "list_schedules", job_template=template.name)["schedules"] == []
	assert refused(browsers["stranger"], "list_schedules")[0] == 403
	ask(browsers["manager"], "pause", schedule=made[0])
	disabled = ask(browsers["admin_a"], "list_schedules", enabled=0, job_template=template.name)["schedules"]
	assert [row["name"] for row in disabled] == [made[0]]
