"""Alerts: each dead letter is told of once, to the right people, however many die and whatever breaks."""

import json
import time
from contextlib import contextmanager
from pathlib import Path

import frappe
import pytest

from dartwing_jobs.engine import alerts, attempt, burials, drain, fresh, signatures, sweep
from dartwing_jobs.engine.submit import submit, submit_many
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.testing import fall_due, lose_worker, run_job, start_job
from dartwing_jobs.tests.receiving import Receiver
from dartwing_jobs.tests.world import (
	make_job_type,
	make_organization,
	make_queue,
	make_user,
	stored_status,
	story,
)

SECRET = "a secret of the site"
ALERTS = "q:notifications"


@pytest.fixture(scope="module", autouse=True)
def switched_on(site):
	"""Here alone: tests with real workers count what these do. And none is left for them."""
	_switch(1)
	yield
	frappe.db.rollback()
	_switch(0)
	frappe.db.delete("Background Job", {"job_type": burials.ALERT})
	frappe.db.commit()


def _switch(is_enabled: int) -> None:
	frappe.get_doc("Job Type", burials.ALERT).update({"is_enabled": is_enabled}).save()
	frappe.db.commit()


@pytest.fixture
def queue():
	return make_queue()


@pytest.fixture
def organization(world):
	"""Of its own for each test: what others have left untold is not told here."""
	return make_organization("Alerted")


@pytest.fixture
def hopeless(queue):
	"""A job type all of whose jobs die at once."""
	fields = {"job_queue": queue, "allowed_secrets": "message"}
	name = make_job_type(handler_method="dartwing_jobs.samples.fail_for_good", **fields).name
	frappe.db.commit()
	return name


@contextmanager
def webhook(url: str):
	configure(SECRET)
	frappe.get_doc("Job Engine Settings").update({"alert_webhook_url": url}).save()
	frappe.db.commit()
	try:
		yield
	finally:
		frappe.db.rollback()
		frappe.get_doc("Job Engine Settings").update({"alert_webhook_url": None}).save()
		frappe.db.commit()
		configure(None)


def configure(secret: str | None) -> None:
	"""As an operator does it, in the site's config, and for this process, which has read it already."""
	path = Path(frappe.local.site_path) / "site_config.json"
	given = {"dartwing_alert_secret": secret} if secret else {}
	config = {key: value for key, value in json.loads(path.read_text()).items() if key != alerts.SECRET}
	path.write_text(json.dumps(config | given, indent=1))
	frappe.conf.dartwing_alert_secret = secret
	fresh._clean.clear()


def die(job_type: str, organization: str, queue: str, number: int = 1, **parameters) -> list[str]:
	names = submit_many(job_type, [parameters] * number, organization)
	frappe.db.commit()
	drain.drain([queue])
	return names


def alerts_of(organization: str, **filters) -> list[str]:
	filters = {"job_type": burials.ALERT, "organization": organization, **filters}
	return frappe.get_all("Background Job", filters, pluck="name", order_by="creation")


def told(job_name: str) -> int:
	return [event for *_moves, event in story(job_name)].count(alerts.ALERTED)


def notifications(job_name: str) -> list:
	filters = {"document_type": "Background Job", "document_name": job_name}
	return frappe.get_all("Notification Log", filters, ["for_user", "type", "subject"], order_by="for_user")


def output_of(job_name: str) -> dict | None:
	return frappe.parse_json(frappe.get_last_doc("Job Run", {"background_job": job_name}).output)


# who is told


def test_a_dead_letter_becomes_an_alert_to_the_admins_of_its_organization(organization, queue, hopeless):
	admin = make_user("alerted", ["Dartwing Admin"], [organization])
	make_user("not-admin", ["Dartwing User"], [organization])
	disabled = make_user("disabled", ["Dartwing Admin"], [organization])
	frappe.db.set_value("User", disabled, "enabled", 0)
	(dead,) = die(hopeless, organization, queue, message="no <b>such</b> number, password=geheim")
	(alert,) = alerts_of(organization)
	stored = frappe.get_doc("Background Job", alert)
	assert (stored.status, stored.job_queue, stored.owner_user) == ("Queued", ALERTS, "Administrator")
	assert run_job(alert).status == "Completed"
	(notification,) = notifications(dead)
	assert (notification.for_user, notification.type) == (admin, "Alert")
	assert dead in notification.subject
	assert "geheim" not in notification.subject and "<b>" not in notification.subject
	assert told(dead) == 1


def test_system_managers_are_told_where_there_is_no_admin(world, organization, queue, hopeless):
	(dead,) = die(hopeless, organization, queue)
	run_job(alerts_of(organization)[0])
	people = [row.for_user for row in notifications(dead)]
	assert world.manager in people
	assert not {world.admin_a, world.user_a, world.stranger} & set(people)


def test_only_oneself_sees_what_one_was_told(organization, queue, hopeless):
	admin, other = (make_user(label, ["Dartwing Admin"], [organization]) for label in ("one", "two"))
	(dead,) = die(hopeless, organization, queue)
	run_job(alerts_of(organization)[0])
	for user in (admin, other):
		frappe.set_user(user)
		seen = frappe.get_list("Notification Log", {"document_name": dead}, pluck="for_user")
		assert seen == [user]


# the webhook


def test_a_webhook_gets_a_signed_message(organization, queue, hopeless):
	with Receiver() as receiver, webhook(receiver.url):
		(dead,) = die(hopeless, organization, queue, message="no, token=abc123")
		alert = alerts_of(organization)[0]
		assert run_job(alert).status == "Completed"
	(received,) = receiver.received
	headers = received.headers["X-Dartwing-Timestamp"], received.headers["X-Dartwing-Signature"]
	assert alerts.verify(received.body, *headers, SECRET, now=time.time(), tolerance=60)
	body, job = json.loads(received.body), frappe.get_doc("Background Job", dead)
	assert (body["job"], body["job_id"], body["job_type"]) == (dead, job.job_id, hopeless)
	assert (body["organization"], body["count"], body["jobs"]) == (organization, 1, [dead])
	assert (body["error"], body["error_type"], body["attempts"]) == ("no, token=***", "Permanent", 1)
	assert body["died_at"] >= body["started_at"] >= body["created_at"]
	assert body["died_at"][-6] in "+-"
	assert body["address"].startswith("http") and dead in body["address"]
	assert output_of(alert)["webhook"] == 200


def test_a_webhook_that_fails_is_tried_again_and_people_are_told_once(organization, queue, hopeless):
	make_user("patient", ["Dartwing Admin"], [organization])
	with Receiver(500, 503) as receiver, webhook(receiver.url):
		(dead,) = die(hopeless, organization, queue)
		alert = alerts_of(organization)[0]
		assert [run_job(alert).status for _attempt in range(3)] == ["Queued", "Queued", "Completed"]
	assert len({received.body for received in receiver.received}) == 1
	assert len(receiver.received) == 3
	assert len(notifications(dead)) == told(dead) == 1


@pytest.mark.parametrize("status", [400, 404, 302])
def test_a_webhook_that_refuses_makes_the_alert_a_dead_letter_and_no_alert_of_it(
	organization, queue, hopeless, status
):
	with Receiver(status) as receiver, webhook(receiver.url):
		(dead,) = die(hopeless, organization, queue)
		(alert,) = alerts_of(organization)
		assert run_job(alert).status == "Dead Letter"
		alerts.call_for_all()
	assert len(receiver.received) == 1
	assert alerts_of(organization) == [alert]
	assert (told(dead), told(alert)) == (1, 0)


def test_nobody_listens_at_the_webhook(organization, queue, hopeless):
	with Receiver() as receiver:
		url = receiver.url
	with webhook(url):
		die(hopeless, organization, queue)
		assert run_job(alerts_of(organization)[0]).status == "Queued"


def test_a_webhook_whose_secret_has_gone_says_so(organization, queue, hopeless):
	with Receiver() as receiver, webhook(receiver.url):
		configure(None)
		die(hopeless, organization, queue)
		alert = run_job(alerts_of(organization)[0])
	assert (alert.status, receiver.received) == ("Dead Letter", [])
	assert "dartwing_alert_secret" in alert.error_message


@pytest.mark.parametrize(
	"url",
	["ftp://example.com", "example.com/hook", "https://", "http://[", "http://a:b", "http://me:geheim@a"],
)
def test_a_webhook_must_be_a_web_address(monkeypatch, url):
	monkeypatch.setitem(frappe.conf, "dartwing_alert_secret", SECRET)
	with pytest.raises(InvalidJobError, match="must be an address that begins with http"):
		frappe.get_doc("Job Engine Settings").update({"alert_webhook_url": url}).save()


def test_a_webhook_needs_a_secret():
	with pytest.raises(InvalidJobError, match="set dartwing_alert_secret in the site's config"):
		frappe.get_doc("Job Engine Settings").update({"alert_webhook_url": "https://example.com"}).save()


def test_other_settings_are_saved_whatever_has_become_of_the_secret():
	with webhook("https://example.com"):
		configure(None)
		frappe.get_doc("Job Engine Settings").update({"offline_reason": "repairs"}).save()


# signatures


BODY, TIMESTAMP = b'{"job": 1}', "1700000000"


def test_a_good_signature_is_good():
	signature = signatures.sign(BODY, TIMESTAMP, SECRET)
	assert signature.startswith("sha256=") and len(signature) == 71
	assert signatures.verify(BODY, TIMESTAMP, signature, SECRET, now=1700000299)


@pytest.mark.parametrize(
	"change",
	[
		{"body": b'{"job": 2}'},
		{"timestamp": "1700000001"},
		{"timestamp": "soon"},
		{"timestamp": ""},
		{"signature": "sha256=0"},
		{"signature": "ü"},
		{"secret": "another"},
		{"now": 1700000301},
		{"now": 1699999699},
	],
)
def test_a_bad_signature_is_bad(change):
	signature = signatures.sign(BODY, TIMESTAMP, SECRET)
	good = {"body": BODY, "timestamp": TIMESTAMP, "signature": signature, "secret": SECRET, "now": 1700000000}
	assert signatures.verify(**good)
	assert not signatures.verify(**good | change)


# one alert for many


def test_a_burst_of_dead_letters_is_a_few_alerts_that_count_all(organization, queue, hopeless):
	make_user("calm", ["Dartwing Admin"], [organization])
	with Receiver() as receiver, webhook(receiver.url):
		names = die(hopeless, organization, queue, 500)
		assert len(alerts_of(organization)) == 1
		while waiting := alerts_of(organization, status="Queued"):
			run_job(waiting[0])
	bodies = [json.loads(received.body) for received in receiver.received]
	assert len(bodies) == 1
	assert sum(body["count"] for body in bodies) == 500
	assert len(bodies[0]["jobs"]) == alerts.MOST_NAMED
	filters = {"background_job": ["in", names], "event": alerts.ALERTED}
	assert frappe.db.count("Job Execution Log", filters) == 500


def test_each_type_and_organization_has_its_own_alert(organization, queue, hopeless):
	another = make_organization("Alerted")
	other_type = make_job_type(handler_method="dartwing_jobs.samples.fail_for_good", job_queue=queue).name
	for job_type, owner in ((hopeless, organization), (other_type, organization), (hopeless, another)):
		die(job_type, owner, queue, 2)
	assert (len(alerts_of(organization)), len(alerts_of(another))) == (2, 1)


def test_what_dies_while_an_alert_runs_gets_another(organization, queue, hopeless):
	die(hopeless, organization, queue)
	running = start_job(alerts_of(organization)[0])
	(late,) = die(hopeless, organization, queue)
	assert len(alerts_of(organization)) == 2
	attempt.run(running)
	following = alerts_of(organization, status="Queued")
	assert run_job(following[0]).status == "Completed"
	assert told(late) == 1


def test_what_dies_while_an_alert_waits_to_be_tried_again_is_told_of_afterwards(
	organization, queue, hopeless
):
	with Receiver(500) as receiver, webhook(receiver.url):
		(first,) = die(hopeless, organization, queue)
		(alert,) = alerts_of(organization)
		assert run_job(alert).status == "Queued"
		(late,) = die(hopeless, organization, queue)
		assert (alerts_of(organization), told(late)) == ([alert], 0)
		assert run_job(alert).status == "Completed"
		(following,) = alerts_of(organization, status="Queued")
		run_job(following)
	assert [json.loads(received.body)["job"] for received in receiver.received] == [first, first, late]
	assert (told(first), told(late)) == (1, 1)


def test_an_alert_that_finds_nothing_tells_nobody(organization, queue, hopeless):
	(dead,) = die(hopeless, organization, queue)
	(first,) = alerts_of(organization)
	given = frappe.parse_json(frappe.db.get_value("Background Job", first, "input_parameters"))
	second = submit(burials.ALERT, given, organization).name
	frappe.db.commit()
	run_job(first)
	before = len(notifications(dead))
	assert run_job(second).status == "Completed"
	assert (output_of(second), len(notifications(dead)), told(dead)) == (None, before, 1)


# nothing is lost


def test_an_alert_survives_its_worker(organization, queue, hopeless):
	(dead,) = die(hopeless, organization, queue)
	(alert,) = alerts_of(organization)
	start_job(alert)
	lose_worker(alert)
	sweep.reap_expired()
	fall_due(alert)
	assert run_job(alert).status == "Completed"
	assert told(dead) == 1


@pytest.mark.parametrize("look", [sweep.sweep, alerts.call_for_all])
def test_a_process_that_dies_before_it_calls_loses_no_alert(organization, queue, hopeless, monkeypatch, look):
	with monkeypatch.context() as patch:
		patch.setattr(alerts, "call", lambda *_told: None)
		(dead,) = die(hopeless, organization, queue)
	assert alerts_of(organization) == []
	look()
	(alert,) = alerts_of(organization)
	run_job(alert)
	assert told(dead) == 1
	look()
	assert alerts_of(organization) == [alert]


def test_a_call_that_fails_leaves_the_job_buried(organization, queue, hopeless, monkeypatch):
	with monkeypatch.context() as patch:
		patch.setattr(alerts, "submit", lambda *_args, **_options: 1 / 0)
		(dead,) = die(hopeless, organization, queue)
	assert (stored_status(dead), alerts_of(organization)) == ("Dead Letter", [])
	assert frappe.db.exists("Error Log", {"method": ["like", f"%{dead}: the alert about this dead letter%"]})


def test_where_the_organization_is_gone_the_logs_must_do(organization, queue, hopeless):
	(dead,) = submit_many(hopeless, [{}], organization)
	frappe.db.commit()
	frappe.delete_doc("Organization", organization)
	frappe.db.commit()
	drain.drain([queue])
	assert stored_status(dead) == "Dead Letter"
	assert (alerts_of(organization), told(dead)) == ([], 1)
	alerts.call_for_all()
	assert told(dead) == 1
	assert frappe.db.exists("Error Log", {"error": ["like", f"%{organization}%"]})


def test_an_administrator_can_switch_alerts_off(organization, queue, hopeless):
	_switch(0)
	try:
		(dead,) = die(hopeless, organization, queue)
		alerts.call_for_all()
		assert (stored_status(dead), alerts_of(organization), told(dead)) == ("Dead Letter", [], 0)
	finally:
		_switch(1)
	alerts.call_for_all()
	assert len(alerts_of(organization)) == 1


def test_people_do_not_submit_alerts(world):
	frappe.set_user(world.admin_a)
	with pytest.raises(frappe.PermissionError):
		submit(burials.ALERT, {"job_type": "sample_job", "since": "2026-01-01"}, world.a, must_submit=True)
