"""The gate over HTTP. Who may change a queue, a job type, a policy or the settings may pause it."""

import frappe

from dartwing_jobs.engine import pauses


@frappe.whitelist(methods=["POST"])
def pause(what: str, name: str | None = None, reason: str | None = None) -> dict:
	"""Stops new starts of the engine, a queue, a job_type or an organization. Running work finishes."""
	pauses.pause(what, name, reason)
	return {"what": what, "name": name, "paused": True}


@frappe.whitelist(methods=["POST"])
def resume(what: str, name: str | None = None) -> dict:
	"""Lets it go on."""
	pauses.resume(what, name)
	return {"what": what, "name": name, "paused": False}
