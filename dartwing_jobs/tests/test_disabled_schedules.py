"""A disabled schedule says that it skipped its fire times: one line a look, with their number."""

from datetime import datetime, timedelta

import frappe
import pytest

from dartwing_jobs import pause_schedule, resume_schedule
from dartwing_jobs.engine import sweep
from dartwing_jobs.engine.schedules import skips
from dartwing_jobs.tests.scheduling import DAY, EVERY_DAY, EVERY_MINUTE, lines_of, make_schedule, plant, read

HOUR = timedelta(hours=1)


@pytest.fixture
def make_disabled(world):
	def make(cron_expression: str = EVERY_DAY, **fields) -> tuple[str, datetime]:
		"""A schedule that was disabled just now, and the first midnight after that."""
		made = make_schedule(world.a, None, cron_expression=cron_expression, **fields)
		pause_schedule(made.name, "not needed")
		frappe.db.commit()
		(line,) = lines_of(made.name)
		return made.name, datetime(*line.fire_at.timetuple()[:3]) + DAY

	yield make
	frappe.db.rollback()
	frappe.db.set_value("Job Schedule", {"enabled": 0}, "next_skip_at", skips.NEVER)
	frappe.db.commit()


def skipped(schedule: str) -> list[tuple[datetime, int]]:
	return [(line.fire_at, line.missed_fires) for line in lines_of(schedule) if line.outcome == "Skipped"]


def test_each_day_that_a_daily_schedule_is_disabled_has_a_line(make_disabled):
	name, midnight = make_disabled()
	noon = midnight + 12 * HOUR
	skips.log_due(midnight)
	before = len(skipped(name))
	for number in range(3):
		skips.log_due(noon + number * DAY + timedelta(seconds=30))
	assert skipped(name)[before:] == [(noon + number * DAY, 1) for number in range(3)]
	assert lines_of(name)[-1].message == "1 fire time(s) passed while the schedule was disabled"
	assert read(name).last_fire_at is None


def test_a_schedule_of_every_minute_has_a_line_an_hour(make_disabled):
	name, midnight = make_disabled(EVERY_MINUTE)
	skips.log_due(midnight)
	before = len(skipped(name))
	for minute in range(1, 181):
		skips.log_due(midnight + timedelta(minutes=minute, seconds=1))
	assert skipped(name)[before:] == [(midnight + (number + 1) * HOUR, 60) for number in range(3)]


def test_years_of_fire_times_are_one_line_and_not_counted(make_disabled):
	name, midnight = make_disabled(EVERY_MINUTE)
	skips.log_due(midnight + 365 * DAY)
	((last, count),) = skipped(name)
	assert (last, count) == (midnight + 365 * DAY, 1000)


def test_nothing_is_said_twice_or_of_enabled_ones(make_disabled, world):
	name, midnight = make_disabled()
	enabled = make_schedule(world.a, None).name
	for _look in range(3):
		skips.log_due(midnight + DAY)
	assert len(skipped(name)) == 1
	assert lines_of(enabled) == []


def test_who_enables_it_again_finds_all_of_them(make_disabled):
	name, _midnight = make_disabled(EVERY_MINUTE)
	(line,) = lines_of(name)
	long_ago = datetime(*line.fire_at.timetuple()[:5]) - 2 * HOUR
	frappe.db.set_value("Job Schedule Fire", line.name, "fire_at", long_ago, update_modified=False)
	resume_schedule(name)
	frappe.db.commit()
	((_last, count),) = skipped(name)
	assert count in (119, 120, 121)
	assert read(name).next_skip_at is None


def test_one_that_was_made_disabled_is_looked_at_from_then_on(make_disabled, world):
	name = make_schedule(world.a, None, enabled=0).name
	sweep.sweep()
	following = read(name).next_skip_at
	assert skipped(name) == []
	skips.log_due(following + timedelta(seconds=1))
	assert skipped(name) == [(following, 1)]


@pytest.mark.parametrize(
	"columns", [{"cron_expression": "no cron"}, {"time_zone": "Nowhere/Land"}, {"end_at": "2020-01-01"}]
)
def test_one_without_fire_times_is_not_looked_at_again(make_disabled, columns):
	name, midnight = make_disabled()
	plant(name, **columns)
	skips.log_due(midnight + DAY)
	assert (skipped(name), read(name).next_skip_at) == ([], skips.NEVER)
