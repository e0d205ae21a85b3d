"""What a handler can do with its context: steps that are done once, notes, events, children."""

from datetime import datetime, timezone

import frappe
import pytest

from dartwing_jobs.api import jobs as api
from dartwing_jobs.engine import database, drain
from dartwing_jobs.engine.handling import steps
from dartwing_jobs.tests import stepping
from dartwing_jobs.tests.world import (
	REPEATABLE,
	make_job,
	make_job_type,
	make_queue,
	plant,
	stored_status,
	story,
)

STEPPING = "dartwing_jobs.tests.stepping"


@pytest.fixture
def queue():
	"""A queue of its own for each test, so that drains see nothing else."""
	stepping.done.clear()
	return make_queue()


def run(world, queue, handler: str, parameters: dict | None = None, **fields) -> str:
	job_type = make_job_type(handler_method=f"{STEPPING}.{handler}").name
	fields = {"owner_user": world.user_a, "input_parameters": parameters, **fields}
	job = make_job(world.a, job_type=job_type, job_queue=queue, **fields)
	frappe.db.commit()
	drain.drain([queue])
	return job.name


def run_again(queue, job_name: str) -> None:
	plant(job_name, run_at=database.utc_now())
	frappe.db.commit()
	drain.drain([queue])


def output(job_name: str):
	return frappe.parse_json(frappe.get_last_doc("Job Run", {"background_job": job_name}).output)


def notes(job_name: str) -> list[str]:
	filters = {"background_job": job_name, "event": "job.note"}
	return frappe.get_all("Job Execution Log", filters=filters, pluck="message", order_by="timestamp")


def test_a_step_is_done_once_however_often_the_job_is_tried(world, queue):
	job_name = run(world, queue, "charge_then_fail_once", {"amount": 7})
	assert (stored_status(job_name), stepping.done) == ("Queued", [7, 0])
	run_again(queue, job_name)
	assert (stored_status(job_name), stepping.done) == ("Completed", [7, 0])
	assert output(job_name) == {"paid": [7, "EUR"]}
	rows = frappe.get_all(
		"Job Step",
		filters={"background_job": job_name},
		fields=["step_key", "attempt", "organization", "result"],
		order_by="creation",
	)
	assert [(row.step_key, row.attempt, row.organization) for row in rows] == [
		("charge", 1, world.a),
		("CHARGE", 1, world.a),
	]
	assert frappe.parse_json(rows[0].result) == {"paid": [7, "EUR"]}


def test_what_a_handler_writes_after_its_step_is_rolled_back_as_ever(world, queue):
	job_name = run(world, queue, "charge_then_fail_once", {"amount": 7})
	assert frappe.db.get_value("Background Job", job_name, "project_id") is None


def test_steps_belong_to_one_job(world, queue):
	first = run(world, queue, "charge_then_fail_once", {"amount": 1})
	run(world, queue, "charge_then_fail_once", {"amount": 2})
	assert stepping.done == [1, 0, 2, 0]
	assert steps.find(first, "charge").result == {"paid": [1, "EUR"]}
	assert steps.find(first, "refund") is None


def test_a_successor_takes_the_steps_over(world, queue):
	failed = run(world, queue, "charge_then_fail_once", {"amount": 3})
	job_type = frappe.db.get_value("Background Job", failed, "job_type")
	successor = make_job(
		world.a, job_type=job_type, retry_of=failed, job_queue=queue, input_parameters={"amount": 3}
	).name
	steps.hand_over(failed, successor)
	plant(failed, status="Failed", run_at=None)
	plant(successor, attempt=1)
	frappe.db.commit()
	drain.drain([queue])
	assert (stored_status(successor), stepping.done) == ("Completed", [3, 0])
	assert frappe.db.count("Job Step", {"background_job": failed}) == 0


def test_a_canceled_job_begins_no_step(world, queue):
	job_name = run(world, queue, "charge_although_canceled")
	assert (stored_status(job_name), stepping.done) == ("Canceled", [])


def test_a_worker_that_lost_its_job_keeps_no_step(world, queue):
	job_name = run(world, queue, "charge_and_lose_the_job")
	job = frappe.get_doc("Background Job", job_name)
	assert (job.lease_token, job.project_id) == ("another's", None)
	assert frappe.db.get_value("Job Type", job.job_type, "description") == "kept"
	assert steps.find(job_name, "charge") is None
	plant(job_name, status="Canceled", lease_token=None, lease_expires_at=None)
	frappe.db.commit()


@pytest.mark.parametrize("result", [None, False, 0, "", "text", [], {"a": [1.5, None]}, "Größe 100% 日本"])
def test_results_are_what_json_makes_of_them(world, result):
	job = make_job(world.a).reload()
	step = steps.remember(job, "key", result, job.created_at)
	assert step.result == steps.find(job.name, "key").result == result


def test_what_json_does_not_have_is_kept_as_text(world):
	job = make_job(world.a).reload()
	step = steps.remember(job, "key", {"at": job.created_at}, job.created_at)
	assert step.result == steps.find(job.name, "key").result == {"at": str(job.created_at)}


@pytest.mark.parametrize("key", ["", None, 5])
def test_a_step_needs_a_key(world, key):
	with pytest.raises(ValueError, match="needs a key"):
		steps.find(make_job(world.a).name, key)


def test_a_deleted_job_takes_its_steps_along(world):
	job = make_job(world.a, status="Completed")
	steps.remember(job, "k" * 500, 1, job.created_at)
	assert steps.find(job.name, "k" * 500).result == 1
	frappe.delete_doc("Background Job", job.name)
	assert frappe.db.count("Job Step", {"background_job": job.name}) == 0


@pytest.mark.parametrize(("fail", "status"), [(False, "Completed"), (True, "Dead Letter")])
def test_notes_are_part_of_the_story_even_of_one_that_failed(world, queue, fail, status):
	job_name = run(world, queue, "note_and_end", {"fail": fail})
	assert stored_status(job_name) == status
	first, second = notes(job_name)
	assert first == "before"
	assert (second[:7], len(second)) == ("after x", 2000)
	row = frappe.get_last_doc("Job Execution Log", {"background_job": job_name, "event": "job.note"})
	assert (row.organization, row.actor, row.attempt) == (world.a, world.user_a, 1)
	events = [event for _before, _after, event in story(job_name)]
	assert events[-4:-1] == ["job.started", "job.note", "job.note"]


def test_a_note_that_cannot_be_stored_is_no_failure(world, queue):
	job_name = run(world, queue, "note_anything", {"text": "half \\ud83d and nothing"})
	assert stored_status(job_name) == "Completed"
	assert notes(job_name) == ["half ? and nothing\ufffd"]


CONTRACT = {
	"project_id": "p-1",
	"request_id": "r-1",
	"correlation_id": "c-1",
	"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	"idempotency_key": "key-of-the-contract",
}


def test_a_handler_sees_the_whole_contract(world, queue):
	key = {"idempotency_key": frappe.generate_hash(length=12)}
	given = {**CONTRACT, **key, "scheduled_for": "2026-01-31T09:00:00+00:00"}
	job_name = run(world, queue, "tell_the_contract", {"a": [1]}, **given)
	job, seen = frappe.get_doc("Background Job", job_name), output(job_name)
	created = datetime.fromisoformat(seen["contract"].pop("created_at"))
	assert created.astimezone(timezone.utc).replace(tzinfo=None) == job.created_utc
	scheduled = datetime.fromisoformat(seen["contract"].pop("scheduled_for"))
	assert scheduled == datetime(2026, 1, 31, 9, tzinfo=timezone.utc)
	actor = {"actor_type": "system", "actor_id": "Administrator"}
	ids = {"job_id": job.job_id, "job_type": job.job_type, "org_id": world.a}
	assert seen["contract"] == {**CONTRACT, **key, **actor, **ids, "payload": {"a": [1]}}
	told = seen["attributes"]
	assert told.pop("organization") == world.a
	assert {name: told[name] for name in seen["contract"].keys() & told.keys()} == {
		**CONTRACT,
		**key,
		**actor,
		"job_id": job.job_id,
		"job_type": job.job_type,
	}
	assert datetime.fromisoformat(told["created_at"]) == created


def test_what_is_left_open_is_in_the_contract_as_nothing(world, queue):
	seen = output(run(world, queue, "tell_the_contract"))["contract"]
	assert [seen[name] for name in ("project_id", "scheduled_for", "traceparent")] == [None] * 3
	assert seen["request_id"] and seen["idempotency_key"] and seen["payload"] == {}


def events(job_name: str, name: str) -> list:
	filters = {"background_job": job_name, "event": name}
	return frappe.get_all("Job Execution Log", filters=filters, fields=["*"], order_by="timestamp, name")


@pytest.mark.parametrize("checkpoint", [0, 1])
@pytest.mark.parametrize(("fail", "status"), [(0, "Completed"), (1, "Dead Letter")])
def test_an_event_of_a_handler_is_part_of_the_audit(world, queue, checkpoint, fail, status):
	"""What was sent was sent, whatever becomes of the handler's own work."""
	job_name = run(world, queue, "tell_of_mails", {"fail": fail, "checkpoint": checkpoint}, project_id="p-1")
	assert stored_status(job_name) == status
	(row,) = events(job_name, "EMAIL_SENT")
	assert frappe.parse_json(row.details) == {"to": "ann@example.com", "number": 1}
	assert (row.message, row.from_status, row.to_status) == ("Welcome", "Running", "Running")
	assert (row.organization, row.project_id, row.actor, row.attempt) == (world.a, "p-1", world.user_a, 1)
	assert row.job_id and row.request_id and row.correlation_id and row.job_type and row.actor_type
	told = api.history(job_name)
	assert [one["details"] for one in told if one["event"] == "EMAIL_SENT"] == [
		{"to": "ann@example.com", "number": 1}
	]


def test_many_notes_do_not_push_an_event_out(world, queue):
	job_name = run(world, queue, "tell_of_mails", {"notes": 1100})
	assert len(events(job_name, "EMAIL_SENT")) == 1
	assert len(notes(job_name)) == 1000


def test_fields_are_stored_without_secrets_and_whatever_they_hold(world, queue):
	job_name = run(world, queue, "tell_of_anything")
	assert stored_status(job_name) == "Completed"
	(row,) = events(job_name, "odd.event")
	details = frappe.parse_json(row.details)
	assert (details["half"], details["none"], details["k\ufffd"]) == ("?", "a\ufffdb", [1.5, None])
	assert (details["not a number"], details["set"], details["plain"]) == ("NaN", "{1}", "text")
	assert "hunter2" not in str(row.details)


@pytest.mark.parametrize(
	("given", "message"),
	[
		({"name": ""}, "name of an event"),
		({"name": "two words"}, "name of an event"),
		({"name": "x" * 141}, "name of an event"),
		({"name": 7}, "name of an event"),
		({"name": "job.succeeded"}, "the engine's own"),
		({"name": "JOB.note"}, "the engine's own"),
		({"fields": [1]}, "must be a dict"),
		({"fields": {"text": "x" * 20_000}}, "at most"),
	],
)
def test_an_event_that_is_none_is_an_error_of_the_handler(world, queue, given, message):
	job_name = run(world, queue, "tell_in_vain", given)
	assert stored_status(job_name) == "Dead Letter"
	assert message in frappe.db.get_value("Background Job", job_name, "error_message")


def test_events_are_never_dropped_silently(world, queue):
	job_name = run(world, queue, "tell_of_many", {"many": 1000})
	assert (stored_status(job_name), len(events(job_name, "SENT"))) == ("Completed", 1000)
	job_name = run(world, queue, "tell_of_many", {"many": 1001})
	assert (stored_status(job_name), len(events(job_name, "SENT"))) == ("Dead Letter", 1000)
	assert "checkpoint" in frappe.db.get_value("Background Job", job_name, "error_message")


def test_a_child_is_submitted_with_what_it_inherits(world, queue):
	traits = {
		"correlation_id": "c-1",
		"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"project_id": "p-1",
		"priority": "High",
	}
	job_name = run(world, queue, "have_children", {"queue": queue}, **traits)
	child, urgent = (frappe.get_doc("Background Job", name) for name in output(job_name)["children"])
	assert (child.organization, child.owner_user, child.owner) == (world.a, world.user_a, world.user_a)
	assert {key: child.get(key) for key in traits} == traits
	assert (urgent.priority, urgent.correlation_id) == ("Critical", "c-1")
	assert (child.status, urgent.status) == ("Completed", "Completed")


def test_a_handler_that_fails_has_no_children(world, queue):
	before = frappe.db.count("Background Job", {"job_type": REPEATABLE})
	job_name = run(world, queue, "have_children", {"queue": queue, "fail": True})
	assert stored_status(job_name) == "Dead Letter"
	assert frappe.db.count("Background Job", {"job_type": REPEATABLE}) == before


def test_the_long_sample_reports_and_ends(world, queue):
	job_type = make_job_type(handler_method="dartwing_jobs.samples.run_long").name
	job = make_job(world.a, job_type=job_type, job_queue=queue, input_parameters={"seconds": 0.3})
	frappe.db.commit()
	drain.drain([queue])
	assert stored_status(job.name) == "Completed"
	message = frappe.db.get_value("Background Job", job.name, "progress_message")
	assert message.endswith("of 0.3 seconds")
