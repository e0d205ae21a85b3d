"""Sample handlers: what a job looks like from the inside."""

import time

from dartwing_jobs.engine.handling.handlers import job_handler
from dartwing_jobs.errors import PermanentError, TransientError

PAUSE_SECONDS = 0.1


@job_handler
def execute_sample_job(parameters: dict, context) -> dict:
	"""Counts to `steps`, pausing `seconds` at each and reporting it."""
	steps, seconds = int(parameters.get("steps", 3)), float(parameters.get("seconds", 0))
	for step in range(1, steps + 1):
		context.checkpoint()
		time.sleep(seconds)
		context.progress(100 * step / steps, f"Step {step} of {steps}")
	return {"steps": steps}


@job_handler
def run_long(parameters: dict, context) -> dict:
	"""Works for `seconds`, reports every tenth of a second, and can be canceled at any of them."""
	seconds = float(parameters.get("seconds", 60))
	began = time.monotonic()
	while (done := time.monotonic() - began) < seconds:
		context.progress(100 * done / seconds, f"{done:.1f} of {seconds:g} seconds")
		context.checkpoint()
		time.sleep(min(PAUSE_SECONDS, seconds - done))
	return {"seconds": seconds}


@job_handler
def fail_for_a_while(parameters: dict, context) -> str:
	"""Fails in a way that goes away: in attempt number `attempts` it succeeds."""
	if context.attempt < int(parameters.get("attempts", 2)):
		raise TransientError("The service is busy", retry_after=parameters.get("retry_after"))
	return f"succeeded in attempt {context.attempt}"


@job_handler
def fail_for_good(parameters: dict, context) -> None:
	raise PermanentError(parameters.get("message", "This number is not in service"))


@job_handler
def do_nothing(parameters: dict, context) -> None:
	"""Takes `seconds`, none unless asked, and leaves nothing behind."""
	if seconds := parameters.get("seconds"):
		time.sleep(float(seconds))


@job_handler
def tell_time(parameters: dict, context) -> float:
	"""Says when it was called, in seconds since 1970: how long did the job wait?"""
	return time.time()
