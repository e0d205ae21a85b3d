"""Handlers that submit other jobs, by the context and by the plain function, for tests."""

from dartwing_jobs import job_handler, submit
from dartwing_jobs.tests.world import REPEATABLE


@job_handler
def submit_children(parameters: dict, context) -> dict:
	by_context = context.submit(REPEATABLE, {"n": 1})
	plainly = submit(REPEATABLE, {"n": 2}, context.organization)
	own = submit(REPEATABLE, {"n": 3}, context.organization, correlation_id="own", project_id="own")
	elsewhere = submit(REPEATABLE, {"n": 4}, parameters["elsewhere"])
	return {"children": [by_context.name, plainly.name], "own": own.name, "elsewhere": elsewhere.name}


@job_handler
def notify(parameters: dict, context) -> None:
	"""Sends nothing."""
