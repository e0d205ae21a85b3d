"""Handlers for tests of workers that have no scheduler."""

import time

from dartwing_jobs import TransientError, job_handler


@job_handler
def report_and_sleep_once(parameters: dict, context) -> None:
	if context.attempt == 1:
		context.progress(40)
		time.sleep(parameters["seconds"])


@job_handler
def fail_once(parameters: dict, context) -> None:
	if context.attempt == 1:
		raise TransientError("The service is busy", retry_after=parameters.get("retry_after"))
