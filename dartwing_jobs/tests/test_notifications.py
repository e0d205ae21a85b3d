"""Notifications never fail the work that they tell of."""

import frappe
import pytest

from dartwing_jobs import notification_key, submit, submit_many
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.world import make_job_type, make_organization

API = "dartwing_jobs.api.jobs"
HANDLER = "dartwing_jobs.tests.contracts.notify"


@pytest.fixture
def notification():
	return make_job_type(category="Notification", handler_method=HANDLER).name


@pytest.fixture
def closed():
	return make_organization("Closed", status="Inactive")


def errors_about(job_type: str) -> list[str]:
	return frappe.get_all("Error Log", {"method": ["like", f"%{job_type}%"]}, pluck="error")


def test_what_refuses_a_notification_does_not_fail_the_caller(world, notification, closed):
	kept = make_organization("Kept")
	assert submit(notification, {"to": "x"}, closed) is None
	frappe.db.commit()
	assert frappe.db.exists("Organization", kept)
	(told,) = errors_about(notification)
	assert "only active organizations" in told
	assert not frappe.db.exists("Background Job", {"job_type": notification})
	assert frappe.get_message_log() == []


def bad_submits(notification: str, world) -> dict:
	return {
		"parameters": lambda: submit(notification, {"n": float("nan")}, world.a),
		"an option": lambda: submit(notification, None, world.a, prioritty="High"),
		"a number that exists": lambda: submit(notification, None, world.a, job_id=TAKEN),
		"many": lambda: submit_many(notification, [{"n": 1}, {"n": float("nan")}], world.a) or None,
		"a stranger": lambda: as_user(world.stranger, lambda: submit(notification, None, world.a)),
	}


TAKEN = "11111111-2222-4333-8444-555555555555"


def as_user(user: str, action):
	frappe.set_user(user)
	return action()


@pytest.mark.parametrize("what", ["parameters", "an option", "a number that exists", "many", "a stranger"])
def test_whatever_is_wrong_the_transaction_lives(world, notification, what):
	"""On PostgreSQL a statement that fails would take everything with it."""
	kept = make_organization("Kept")
	submit(make_job_type().name, None, world.a, job_id=TAKEN)
	assert bad_submits(notification, world)[what]() is None
	assert frappe.db.exists("Organization", kept)
	frappe.set_user("Administrator")
	assert submit(notification, None, world.a).status == "Queued"


def test_who_must_know_is_told(world, notification, closed):
	with pytest.raises(InvalidJobError, match="only active"):
		submit(notification, None, closed, must_submit=True)
	with pytest.raises(InvalidJobError, match="only active"):
		submit_many(notification, [{}], closed, must_submit=True)


def test_other_work_is_not_best_effort(closed):
	with pytest.raises(InvalidJobError, match="only active"):
		submit(make_job_type().name, None, closed)
	with pytest.raises(InvalidJobError, match="not found"):
		submit("no_such_type", None, closed)


def test_an_answer_over_http_is_honest(world, notification):
	frappe.db.commit()
	browser = Browser(world.user_a)
	asked = {"job_type": notification, "organization": world.a}
	refused = browser.call(f"{API}.submit", **asked, priority="Shouting")
	assert refused.status_code == 417
	assert browser.call(f"{API}.submit", **asked).json["message"]["status"] == "Queued"


def test_a_notification_is_sent_once_per_period(world, notification):
	def send(payload: dict, bucket: str):
		key = notification_key(world.a, "ann@example.com", "welcome", payload, bucket)
		return submit(notification, payload, world.a, idempotency_key=key).name

	first = send({"a": 1, "b": 2}, "2026-W01")
	assert send({"b": 2, "a": 1}, "2026-W01") == first
	assert len({first, send({"a": 1, "b": 2}, "2026-W02"), send({"a": 2}, "2026-W01")}) == 3


def test_a_notification_key_tells_everything_apart_and_nobody_who_it_is_for():
	given = ["Acme", "ann@example.com", "welcome", {"a": 1}, "today"]
	key = notification_key(*given)
	assert "ann" not in key and key.startswith("notification:Acme:")
	others = {notification_key(*[*given[:n], "other", *given[n + 1 :]]) for n in range(4) if n != 3}
	others |= {notification_key(*given[:3], {"a": 2}, "today"), notification_key(*given[:4], "tomorrow")}
	assert len(others | {key}) == 6
