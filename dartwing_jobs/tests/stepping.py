"""Handlers that use all of their context, for tests."""

import frappe

from dartwing_jobs import PermanentError, TransientError, job_handler
from dartwing_jobs.engine import database
from dartwing_jobs.tests.world import REPEATABLE, plant

# what a step does to the world outside the database: nothing takes it back
done = []


@job_handler
def charge_then_fail_once(parameters: dict, context) -> dict:
	receipt = context.idempotent("charge", charge, parameters["amount"], currency="EUR")
	context.idempotent("CHARGE", charge, 0)
	if context.attempt == 1:
		frappe.db.set_value("Background Job", context.job_name, "project_id", "written after the step")
		raise TransientError("The service went away after it had been paid")
	return receipt


def charge(amount: int, currency: str = "USD") -> dict:
	done.append(amount)
	return {"paid": (amount, currency)}


@job_handler
def charge_although_canceled(parameters: dict, context) -> None:
	plant(context.job_name, cancel_requested_at="2026-01-01 00:00:00", cancel_requested_by="Administrator")
	context.idempotent("charge", charge, 1)


@job_handler
def charge_and_lose_the_job(parameters: dict, context) -> None:
	frappe.db.set_value("Job Type", context.job_type, "description", "kept")
	context.checkpoint()
	context.idempotent("charge", lose, context.job_name)


def lose(job_name: str) -> None:
	"""Another worker has it now, and this one has not heard of it."""
	with database.beside():
		plant(job_name, lease_token="another's")
		frappe.db.commit()
	plant(job_name, project_id="never kept")


@job_handler
def note_and_end(parameters: dict, context) -> None:
	context.log("before")
	context.checkpoint()
	context.log("after " + "x" * 5000)
	if parameters.get("fail"):
		raise PermanentError("no")


@job_handler
def tell_the_contract(parameters: dict, context) -> dict:
	names = ("job_id", "job_type", "organization", "project_id", "actor_type", "actor_id", "request_id")
	names += ("correlation_id", "idempotency_key", "created_at", "scheduled_for", "traceparent")
	return {"contract": context.contract(), "attributes": {name: getattr(context, name) for name in names}}


@job_handler
def tell_of_mails(parameters: dict, context) -> None:
	context.event("EMAIL_SENT", {"to": "ann@example.com", "number": 1}, message="Welcome")
	if parameters.get("checkpoint"):
		context.checkpoint()
	for number in range(parameters.get("notes", 0)):
		context.log(f"note {number}")
	if parameters.get("fail"):
		raise PermanentError("The service went away")


@job_handler
def tell_of_anything(parameters: dict, context) -> None:
	fields = {
		"half": "\ud83d",
		"none": "a\x00b",
		"not a number": float("nan"),
		"set": {1},
		"k\x00": [1.5, None],
	}
	context.event("odd.event", {**fields, "password": "hunter2-hunter2", "plain": "text"})


@job_handler
def tell_in_vain(parameters: dict, context) -> None:
	context.event(parameters.get("name", "MANY"), parameters.get("fields", {}))


@job_handler
def tell_of_many(parameters: dict, context) -> None:
	for number in range(parameters["many"]):
		context.event("SENT", {"number": number})


@job_handler
def note_anything(parameters: dict, context) -> None:
	"""Half a surrogate pair and a NUL, neither of which parameters could bring."""
	context.log(parameters["text"].encode().decode("unicode_escape") + "\x00")


@job_handler
def have_children(parameters: dict, context) -> dict:
	child = context.submit(REPEATABLE, {"steps": 1}, job_queue=parameters["queue"])
	urgent = context.submit(REPEATABLE, priority="Critical", job_queue=parameters["queue"])
	if parameters.get("fail"):
		raise PermanentError("no")
	return {"children": [child.name, urgent.name]}
