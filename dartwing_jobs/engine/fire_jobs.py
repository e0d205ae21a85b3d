"""The jobs that schedules make: of their template, with their overrides, in the name of one user."""

import hashlib
from datetime import datetime, timedelta

from dartwing_jobs import parameters
from dartwing_jobs.engine import database, keys, queue_rules, templates
from dartwing_jobs.engine.dependents import RUN_ANYWAY
from dartwing_jobs.engine.fires import Fire
from dartwing_jobs.engine.grounds import Grounds
from dartwing_jobs.engine.submit import submit


def make(fire: Fire, grounds: Grounds, user: str, behind: str | None = None) -> str:
	"""Submits the job of a fire, to run behind another one if need be; returns its name.

	No deduplication window swallows it: each fire is a wish of its own.
	"""
	schedule, job_type = fire.schedule, grounds.type_of(fire.schedule)
	job = submit(
		job_type.name,
		parameters_of(schedule, grounds.template_of(schedule)),
		schedule.organization,
		owner_user=user,
		job_template=schedule.job_template,
		job_schedule=schedule.name,
		priority=schedule.priority,
		job_queue=queue_rules.queue_of_scheduled(job_type),
		scheduled_for=database.as_site_time(start_of(schedule, fire.fire_at)),
		depends_on=behind,
		on_parent_failure=RUN_ANYWAY if behind else None,
		request_id=fire.name,
		correlation_id=fire.name,
		if_duplicate=keys.ALLOW,
		must_submit=True,
	)
	return job.name


def parameters_of(schedule, template) -> dict:
	return templates.merged(
		parameters.load(template.default_params), parameters.load(schedule.param_overrides)
	)


def start_of(schedule, fire_at: datetime) -> datetime:
	"""When the job is to start: at its fire time, or within the jitter behind it, the same each time."""
	if not schedule.jitter_seconds:
		return fire_at
	digest = hashlib.sha256(f"{schedule.name} {fire_at.isoformat()}".encode()).digest()
	share = int.from_bytes(digest[:8], "big") / 2**64
	return fire_at + timedelta(seconds=int(share * (schedule.jitter_seconds + 1)))
