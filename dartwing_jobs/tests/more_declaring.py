"""One more handler that declares its job type, in a module of its own."""

from dartwing_jobs import job_handler


@job_handler(job_type="test_elsewhere")
def elsewhere(parameters: dict, context) -> None:
	pass


def unmarked(parameters: dict, context) -> None:
	pass


@job_handler(job_type="test_plain")
def second(parameters: dict, context) -> None:
	pass
