"""Many schedules of which some are due, as a site has them in the minute when most fire."""

from datetime import datetime, timedelta

import frappe

from benchmarks.systems.system import timed
from dartwing_jobs import clock
from dartwing_jobs.engine import database, rows, statements
from dartwing_jobs.engine.schedules import ticks
from dartwing_jobs.tests.world import make_template

BATCH = 1000
TEMPLATES = 10
ZONES = ("UTC", "Europe/Paris", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")
IDLE_TICKS = 50
LATER = timedelta(days=1)


def tick(organization: str, user: str, job_type: str, count: int, due: int) -> dict[str, float | list[float]]:
	"""Seconds of the tick that fires those that are due, and of ticks that find nothing to do."""
	moment = database.utc_now().replace(second=0, microsecond=0)
	_plant(organization, user, job_type, count, due, moment)
	seconds = timed(ticks.tick, moment)
	_check(organization, due)
	return {"firing": seconds, "idle": [timed(ticks.tick, moment) for _ in range(IDLE_TICKS)]}


def _plant(organization: str, user: str, job_type: str, count: int, due: int, moment: datetime) -> None:
	"""Past the documents, which would take minutes; each with parameters of its own."""
	templates = [make_template(organization, job_type=job_type).name for _ in range(TEMPLATES)]
	made = [
		rows.new(
			user,
			clock.now(),
			schedule_name=f"Benchmark {number}",
			job_template=templates[number % TEMPLATES],
			organization=organization,
			cron_expression=f"{number % 60} {number // 60 % 24} * * *",
			time_zone=ZONES[number % len(ZONES)],
			enabled=1,
			run_as=user,
			missed_run_policy="Skip",
			overlap_policy="Allow",
			param_overrides=f'{{"number": {number}}}',
			next_fire_at=moment if number < due else moment + LATER,
		)
		for number in range(count)
	]
	for start in range(0, count, BATCH):
		statements.insert("Job Schedule", made[start : start + BATCH])
	frappe.db.commit()


def _check(organization: str, due: int) -> None:
	"""All were fired once, and another connection would see it."""
	frappe.db.rollback()
	jobs = frappe.db.count("Background Job", {"organization": organization, "job_schedule": ["is", "set"]})
	fires = frappe.db.count("Job Schedule Fire", {"organization": organization, "outcome": "Fired"})
	if (jobs, fires) != (due, due):
		raise RuntimeError(f"{due} schedules were due; there are {jobs} jobs and {fires} fires")
