"""Handlers that use all of their context, for tests."""

import frappe

from dartwing_jobs import PermanentError, TransientError, job_handler
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
