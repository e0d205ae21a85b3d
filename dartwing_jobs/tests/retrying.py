"""Handlers that fail after having done something, for tests."""

import frappe

from dartwing_jobs import TransientError, job_handler


@job_handler
def pay_then_fail(parameters: dict, context) -> str:
	"""Pays once, and is done in attempt number `attempts`."""
	context.idempotent("pay", lambda: "paid")
	context.cost_cents = 5
	context.progress(30, "paid")
	if context.attempt < parameters["attempts"]:
		raise TransientError("The service is busy")
	return frappe.session.user
