"""Burying: where a job that will not be tried again rests, what is known of its end, and who is called."""

from dartwing_jobs.engine import afterwards
from dartwing_jobs.engine.rules.queues import DEAD_LETTERS

# the type of the jobs that tell people about dead letters; nobody is told about those
ALERT = "dartwing_alert"


def resting_place(job) -> dict:
	"""The columns that take a job to the dead letters, and remember where it waited."""
	return {"job_queue": DEAD_LETTERS, "origin_queue": job.job_queue}


def origin_of(job) -> str:
	"""The queue in which a job waited, dead or not."""
	return job.origin_queue or job.job_queue


def context(attempt, message: str, error_class: str | None) -> dict:
	"""What the log keeps of the end of a job; `message` has no secrets any more."""
	job = attempt.job
	return {
		"error_class": error_class,
		"message": message,
		"attempt": job.attempt,
		"retry_count": job.retry_count,
		"max_retries": job.max_retries,
		"worker": attempt.worker,
		"run": attempt.run_name,
		"origin_queue": origin_of(job),
	}


def alert_after_commit(job) -> None:
	"""Has people told about a dead letter, once it is one."""
	if job.job_type != ALERT:
		afterwards.gather(_alert, (job.organization, job.job_type, job.name))


def _alert(dead: list[tuple[str, str, str]]) -> None:
	"""Once for each organization and type: one alert names all that wait for one."""
	from dartwing_jobs.engine import alerts  # it submits jobs, and what submits jobs knows how they end

	first = {(organization, job_type): name for organization, job_type, name in reversed(dead)}
	for (organization, job_type), name in first.items():
		alerts.call(organization, job_type, name)
