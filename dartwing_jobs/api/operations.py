"""The gate over HTTP. Who may change a queue, a job type, a policy or the settings may pause it."""

from dartwing_jobs.api.arguments import Name, Reason
from dartwing_jobs.api.endpoint import endpoint
from dartwing_jobs.engine import pauses


@endpoint("POST")
def pause(what: Name, name: Name | None = None, reason: Reason | None = None) -> dict:
	"""Stops new starts of the engine, a queue, a job_type or an organization. Running work finishes."""
	pauses.pause(what, name, reason)
	return {"what": what, "name": name, "paused": True}


@endpoint("POST")
def resume(what: Name, name: Name | None = None) -> dict:
	"""Lets it go on."""
	pauses.resume(what, name)
	return {"what": what, "name": name, "paused": False}
