"""The jobs that schedules make: of their template, with their overrides, in the name of one user."""

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta

import frappe

from dartwing_jobs import parameters
from dartwing_jobs.engine import database, runs, statements
from dartwing_jobs.engine.dependents import RUN_ANYWAY
from dartwing_jobs.engine.intake import bounds, keys, templates
from dartwing_jobs.engine.rules import queue_rules
from dartwing_jobs.engine.schedules.fires import Fire
from dartwing_jobs.engine.schedules.grounds import Grounds
from dartwing_jobs.engine.submit import submit, submit_alike

SAVEPOINT = "dartwing_fire"


def make_all(fired: list[Fire], grounds: Grounds, now: datetime) -> None:
	"""Submits the jobs of many fires, those that are alike together; a fire without a job says why."""
	alike: dict[tuple, list[Fire]] = {}
	for fire in fired:
		alike.setdefault(_kind(fire, grounds, now), []).append(fire)
	if refusal_of(lambda: [_make_together(some, grounds) for some in alike.values()]):
		for fire in fired:
			fire.job = None  # it was taken back with the others
		for some in alike.values():
			_make_or_tell_each(some, grounds)


def _make_or_tell_each(some: list[Fire], grounds: Grounds) -> None:
	"""If one of several is refused all are: it is looked for by halves."""
	refusal = refusal_of(lambda: _make_together(some, grounds))
	if refusal and len(some) > 1:
		half = len(some) // 2
		_make_or_tell_each(some[:half], grounds)
		_make_or_tell_each(some[half:], grounds)
	elif refusal:
		some[0].fail(refusal)


def make_or_tell(fire: Fire, grounds: Grounds, behind: str | None = None) -> None:
	"""Submits the job of a fire, to run behind another one if need be, or says why there is none."""
	if refusal := refusal_of(lambda: make(fire, grounds, fire.schedule.run_as, behind)):
		fire.fail(refusal)


def make(fire: Fire, grounds: Grounds, user: str, behind: str | None = None) -> None:
	"""No deduplication window swallows it: each fire is a wish of its own."""
	with bounds.lifted():
		job = submit(
			grounds.type_of(fire.schedule).name,
			parameters_of(fire, grounds),
			if_duplicate=keys.ALLOW,
			must_submit=True,
			depends_on=behind,
			on_parent_failure=RUN_ANYWAY if behind else None,
			**_options(fire, grounds, user),
			**_own(fire),
		)
	fire.job = job.name


def _make_together(some: list[Fire], grounds: Grounds) -> None:
	"""Submits as one what differs in nothing that a submit asks for: templates were looked at already."""
	first = some[0]
	options = {**_options(first, grounds, first.schedule.run_as), **_own(first), "job_template": None}
	own = [_own(fire) | {"scheduled_utc": start_of(fire.schedule, fire.fire_at)} for fire in some]
	many = [parameters_of(fire, grounds) for fire in some]
	names = submit_alike(grounds.type_of(first.schedule).name, many, own, **options)
	for fire, name in zip(some, names, strict=True):
		fire.job = name


def refusal_of(submitting: Callable[[], object]) -> str | None:
	"""Submits something; what the engine has against it, in which case nothing of it is left."""
	shown = len(frappe.local.message_log)
	statements.execute(f"savepoint {SAVEPOINT}")
	try:
		submitting()
	except (frappe.ValidationError, frappe.PermissionError) as error:
		statements.execute(f"rollback to savepoint {SAVEPOINT}")
		del frappe.local.message_log[shown:]  # nobody is at the screen
		return runs.message_of(error)
	return None


def _kind(fire: Fire, grounds: Grounds, now: datetime) -> tuple:
	"""Fires of the same kind make jobs of one owner that start together: now, or after their jitter."""
	schedule, job_type = fire.schedule, grounds.template_of(fire.schedule).job_type
	start = max(now, start_of(schedule, fire.fire_at))
	return schedule.organization, job_type, schedule.run_as, schedule.priority, start


def _options(fire: Fire, grounds: Grounds, user: str) -> dict:
	schedule = fire.schedule
	return {
		"organization": schedule.organization,
		"owner_user": user,
		"priority": schedule.priority,
		"job_queue": queue_rules.queue_of_scheduled(grounds.type_of(schedule)),
	}


def _own(fire: Fire) -> dict:
	return {
		"job_schedule": fire.schedule.name,
		"job_template": fire.schedule.job_template,
		"scheduled_for": database.as_site_time(start_of(fire.schedule, fire.fire_at)),
		"request_id": fire.name,
		"correlation_id": fire.name,
	}


def parameters_of(fire: Fire, grounds: Grounds) -> dict:
	defaults = grounds.template_of(fire.schedule).default_params
	return templates.merged(parameters.load(defaults), parameters.load(fire.schedule.param_overrides))


def start_of(schedule, fire_at: datetime) -> datetime:
	"""When the job is to start: at its fire time, or within the jitter behind it, the same each time."""
	if not schedule.jitter_seconds:
		return fire_at
	digest = hashlib.sha256(f"{schedule.name} {fire_at.isoformat()}".encode()).digest()
	share = int.from_bytes(digest[:8], "big") / 2**64
	return fire_at + timedelta(seconds=int(share * (schedule.jitter_seconds + 1)))
