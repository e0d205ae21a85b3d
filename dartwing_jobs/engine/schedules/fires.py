"""Job Schedule Fire: one row per fire time of a schedule, which says what became of it."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import frappe

from dartwing_jobs import clock
from dartwing_jobs.engine import database, naming, rows, sanitize, statements

DOCTYPE = "Job Schedule Fire"
FIRED, FORCED, SKIPPED, MISSED = "Fired", "Forced", "Skipped", "Missed"
FAILED, DISABLED = "Failed", "Disabled"
OUTCOMES = (FIRED, FORCED, SKIPPED, MISSED, FAILED, DISABLED)
TICK = timedelta(microseconds=1)


@dataclass
class Fire:
	"""A fire time of a schedule (UTC), and what becomes of it."""

	schedule: frappe._dict
	fire_at: datetime
	outcome: str = FIRED
	missed_fires: int = 0
	message: str | None = None
	job: str | None = None
	name: str = field(default_factory=naming.next_row_name)

	def fail(self, message: str) -> None:
		self.outcome, self.message = FAILED, message


def write_new(planned: list[Fire]) -> list[Fire]:
	"""Writes what no scheduler has written before; returns that. The unique index decides."""
	if not planned:
		return []
	now = clock.now()
	if statements.insert_missing(DOCTYPE, [_row(fire, now) for fire in planned]) == len(planned):
		return planned
	places = ", ".join(["%s"] * len(planned))
	names = [fire.name for fire in planned]
	written = statements.fetch(f"select name from `tab{DOCTYPE}` where name in ({places})", names)
	ours = {row.name for row in written}
	return [fire for fire in planned if fire.name in ours]


def record_now(schedule, outcome: str, message: str | None = None) -> None:
	"""A line for what happens to a schedule now, in the caller's transaction."""
	write_apart(Fire(schedule, database.utc_now(), outcome, message=message))


def write_apart(fire: Fire) -> None:
	"""Fire times are whole minutes, and this must be none of them; nor the moment of another such line."""
	if not fire.fire_at.microsecond:
		fire.fire_at += TICK
	while not statements.insert_missing(DOCTYPE, [_row(fire, clock.now())]):
		fire.fire_at += TICK


def tell(fire: Fire, trip: statements.Trip) -> None:
	"""Completes the row of a fire that was written before its job, when the trip is sent."""
	columns = {"background_job": fire.job, "outcome": fire.outcome, "message": _told(fire.message)}
	trip.update(DOCTYPE, fire.name, columns)


def delete_of(schedule: str) -> None:
	frappe.db.delete(DOCTYPE, {"job_schedule": schedule})


def _row(fire: Fire, now: datetime) -> dict:
	row = rows.new(
		frappe.session.user,
		now,
		job_schedule=fire.schedule.name,
		organization=fire.schedule.organization,
		fire_at=fire.fire_at,
		outcome=fire.outcome,
		background_job=fire.job,
		missed_fires=fire.missed_fires,
		message=_told(fire.message),
	)
	return {**row, "name": fire.name}


def _told(message: str | None) -> str | None:
	return message and sanitize.text(message)
