"""What became of fires that came too late, or while the job before was not done: the two policies."""

from datetime import datetime, timedelta

import frappe
import pytest

from dartwing_jobs.engine import control, states
from dartwing_jobs.engine.schedules import fire_jobs, fire_times, missed, overlaps
from dartwing_jobs.testing import run_job, start_job
from dartwing_jobs.tests.scheduling import (
	DAY,
	EVERY_MINUTE,
	MINUTE,
	NOON,
	count_jobs,
	fires_of,
	forget_all,
	jobs_of,
	lines_of,
	make_schedule,
	plant,
	read,
	tick,
)
from dartwing_jobs.tests.world import make_job_type, make_template, stored_status

HOUR = timedelta(hours=1)
HOURLY = "0 * * * *"
ON_TIME = timedelta(seconds=300)


@pytest.fixture(autouse=True)
def nothing_fires_afterwards(site):
	yield
	forget_all()


def outcomes(name: str) -> list[str]:
	return [outcome for _at, outcome in fires_of(name)]


# missed


def test_a_fire_is_on_time_for_five_minutes(world):
	"""Longer than the longest tick of a scheduler, and than what clocks may differ by."""
	on_time, late = make_schedule(world.a), make_schedule(world.a, cron_expression="0 0 1 1 *")
	plant(late.name, next_fire_at=NOON - timedelta(microseconds=1))
	tick(NOON + ON_TIME)
	assert (outcomes(on_time.name), outcomes(late.name)) == (["Fired"], ["Missed"])


def test_a_day_of_downtime_is_skipped_in_one_line(world):
	"""River 1035: by default nothing that was missed is run."""
	made = make_schedule(world.a, NOON - DAY, cron_expression=HOURLY)
	tick(NOON + MINUTE)
	assert fires_of(made.name) == [(NOON - HOUR, "Missed"), (NOON, "Fired")]
	line = lines_of(made.name)[0]
	assert line.missed_fires == 24
	assert "24 fire time(s) passed while nothing fired" in line.message
	assert (read(made.name).next_fire_at, read(made.name).last_fire_at) == (NOON + HOUR, NOON)


def test_a_day_of_downtime_is_caught_up_once(world):
	"""River 791: one run for everything that was missed, with what is due now."""
	made = make_schedule(world.a, NOON - DAY, cron_expression=HOURLY, missed_run_policy="Once")
	tick(NOON + MINUTE)
	assert fires_of(made.name) == [(NOON, "Fired")]
	assert (count_jobs(made.name), lines_of(made.name)[0].missed_fires) == (1, 24)


def test_a_missed_fire_is_caught_up_once_though_nothing_is_due_now(world):
	"""Sidekiq 6758 and 6804: what falls due while the process restarts is not lost."""
	made = make_schedule(world.a, NOON - DAY, missed_run_policy="Once")
	tick(NOON - HOUR)
	assert fires_of(made.name) == [(NOON - DAY, "Fired")]
	assert read(made.name).next_fire_at == NOON


def test_a_day_of_downtime_is_caught_up_in_full(world):
	"""River 791: each of them, in order, each for its own fire time."""
	made = make_schedule(world.a, NOON - DAY, cron_expression=HOURLY, missed_run_policy="All")
	assert tick(NOON + MINUTE) == 25
	expected = [NOON - DAY + n * HOUR for n in range(25)]
	assert fires_of(made.name) == [(moment, "Fired") for moment in expected]
	assert len({job.scheduled_for for job in jobs_of(made.name)}) == 25


def test_catching_up_in_full_has_a_limit(world):
	made = make_schedule(world.a, NOON - 10 * HOUR, cron_expression=EVERY_MINUTE, missed_run_policy="All")
	tick(NOON)
	lines = lines_of(made.name)
	assert count_jobs(made.name) == 100 + 6  # what was missed, and what is on time
	assert [line.outcome for line in lines].count("Missed") == 1
	assert (lines[0].outcome, lines[0].missed_fires) == ("Missed", 10 * 60 + 1 - 106)
	assert lines[0].fire_at == NOON - 106 * MINUTE
	assert lines[1].fire_at == NOON - 105 * MINUTE


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 102])
def test_nothing_is_lost_or_doubled_at_the_limit(world, count):
	"""So many missed fires besides the six that are on time."""
	first = NOON - (count + 5) * MINUTE
	made = frappe._dict(cron_expression=EVERY_MINUTE, time_zone="UTC", next_fire_at=first)
	made.missed_run_policy = "All"
	planned, following = missed.plan(made, NOON)
	moments = [fire.fire_at for fire in planned]
	assert moments == sorted(set(moments))
	assert sum(fire.missed_fires or 1 for fire in planned) == count + 6
	assert len(planned) == min(count, 100) + 6 + (count > 100)
	assert following == NOON + MINUTE


def test_years_of_downtime_are_not_counted_to_the_end(world):
	made = make_schedule(world.a, datetime(2020, 1, 1), cron_expression=EVERY_MINUTE)
	tick(NOON)
	line = lines_of(made.name)[0]
	assert line.message.startswith("More than 1000 fire time(s)")
	assert outcomes(made.name) == ["Missed"] + ["Fired"] * 6
	assert read(made.name).next_fire_at == NOON + MINUTE


def test_a_tick_that_comes_four_minutes_late_fires_each(world):
	"""Frappe v16 ticks every 240 seconds: a minute's schedule is not a four minutes' schedule there."""
	made = make_schedule(world.a, cron_expression=EVERY_MINUTE)
	tick(NOON + 4 * MINUTE)
	assert fires_of(made.name) == [(NOON + n * MINUTE, "Fired") for n in range(5)]


@pytest.mark.parametrize("policy", ["Skip", "Once", "All"])
def test_what_is_missed_in_the_hour_that_comes_twice_is_told_by_its_utc(world, policy):
	"""25 hours of a rhythm on the day the clocks go back."""
	first = datetime(2026, 10, 24, 22)  # midnight in Paris; the day that begins has 25 hours
	made = frappe._dict(cron_expression=HOURLY, time_zone="Europe/Paris", next_fire_at=first)
	made.missed_run_policy = policy
	now = datetime(2026, 10, 25, 23)  # the next midnight
	planned, following = missed.plan(made, now)
	counts = {"Skip": [25, 0], "Once": [25], "All": [0] * 26}
	assert [fire.missed_fires for fire in planned] == counts[policy]
	assert following == now + HOUR


def test_the_end_of_the_window_ends_what_is_caught_up(world):
	made = make_schedule(world.a, NOON - DAY, cron_expression=HOURLY, missed_run_policy="All")
	plant(made.name, end_at=NOON - 22 * HOUR)
	tick(NOON)
	assert [moment for moment, _ in fires_of(made.name)] == [NOON - DAY + n * HOUR for n in range(3)]
	assert read(made.name).next_fire_at is None


def test_what_was_announced_fires_whatever_the_expression_says_of_it_now():
	"""Time zone data change: what people were told yesterday still comes today."""
	made = frappe._dict(cron_expression="0 9 * * *", time_zone="UTC", next_fire_at=NOON)
	planned, following = missed.plan(made, NOON)
	assert [fire.fire_at for fire in planned] == [NOON]
	assert following == fire_times.next_after(made, NOON)


# overlaps


def test_overlaps_are_allowed_unless_somebody_says_otherwise(world):
	made = make_schedule(world.a, cron_expression=EVERY_MINUTE)
	tick()
	tick(NOON + MINUTE)
	assert outcomes(made.name) == ["Fired", "Fired"]


@pytest.mark.parametrize("status", ["waiting", "running"])
def test_a_fire_is_skipped_while_the_job_before_is_unfinished(world, status):
	"""frappe/frappe 11655: a job that runs was not counted as queued, and its schedule ran it twice."""
	made = make_schedule(world.a, cron_expression=EVERY_MINUTE, overlap_policy="Skip")
	tick()
	(job,) = jobs_of(made.name)
	if status == "running":
		start_job(job.name)
	tick(NOON + MINUTE)
	assert outcomes(made.name) == ["Fired", "Skipped"]
	assert job.name in lines_of(made.name)[1].message
	assert count_jobs(made.name) == 1


def test_a_fire_follows_a_job_that_is_done(world):
	"""frappe/frappe 31325 and 33335: a job that is gone must not stop its schedule for ever."""
	made = make_schedule(world.a, cron_expression=EVERY_MINUTE, overlap_policy="Skip")
	tick()
	run_job(jobs_of(made.name)[0].name)
	tick(NOON + MINUTE)
	(_done, canceled) = jobs_of(made.name)
	control.cancel(canceled.name)
	frappe.db.commit()
	tick(NOON + 2 * MINUTE)
	frappe.db.delete("Background Job", {"name": jobs_of(made.name)[-1].name})
	tick(NOON + 3 * MINUTE)
	assert outcomes(made.name) == ["Fired"] * 4


def test_of_several_fires_in_one_tick_the_first_is_in_the_way_of_the_others(world):
	made = make_schedule(world.a, cron_expression=EVERY_MINUTE, overlap_policy="Skip")
	tick(NOON + 2 * MINUTE)
	assert outcomes(made.name) == ["Fired", "Skipped", "Skipped"]


def test_schedules_that_limit_overlaps_are_asked_for_and_fired_together(world, monkeypatch):
	"""500 of them took four seconds, one after another."""
	template, alone = make_template(world.a), []
	told = {"template": template, "cron_expression": EVERY_MINUTE}
	policies = ["Skip", "Queue One"] * 3
	made = [make_schedule(world.a, overlap_policy=policy, **told).name for policy in policies]
	monkeypatch.setattr(overlaps, "AT_ONCE", 4)
	monkeypatch.setattr(fire_jobs, "make", lambda *given, do=fire_jobs.make: alone.append(do(*given)))
	tick()
	assert ([outcomes(name) for name in made], alone) == ([["Fired"]] * 6, [])
	run_job(jobs_of(made[0])[0].name)
	tick(NOON + MINUTE)
	expected = {"Skip": "Skipped", "Queue One": "Fired"}
	assert [outcomes(name)[1] for name in made] == ["Fired", *(expected[policy] for policy in policies[1:])]
	assert len(alone) == 3


def test_one_job_queues_behind_the_unfinished_one(world):
	made = make_schedule(world.a, cron_expression=EVERY_MINUTE, overlap_policy="Queue One")
	tick(NOON + 2 * MINUTE)
	assert outcomes(made.name) == ["Fired", "Fired", "Skipped"]
	first, second = jobs_of(made.name)
	assert (second.depends_on, second.on_parent_failure) == (first.name, "Run Anyway")
	assert second.status == "Pending"
	run_job(first.name)
	assert run_job(second.name).status == "Completed"
	tick(NOON + 3 * MINUTE)
	assert outcomes(made.name)[-1] == "Fired"


def test_what_queues_behind_a_canceled_job_runs_all_the_same(world):
	made = make_schedule(world.a, cron_expression=EVERY_MINUTE, overlap_policy="Queue One")
	tick(NOON + MINUTE)
	first, second = jobs_of(made.name)
	control.cancel(first.name)
	frappe.db.commit()
	assert run_job(second.name).status == "Completed"


def test_a_chain_of_retries_is_one_unfinished_job(world):
	"""Retry mode New Job: the failed job rests as it is, its successor is what runs."""
	handler = "dartwing_jobs.tests.retrying.pay_then_fail"
	job_type = make_job_type(handler_method=handler, retry_mode="New Job", max_retries=2)
	template = make_template(world.a, job_type=job_type.name, default_params={"attempts": 2})
	made = make_schedule(world.a, template=template, cron_expression=EVERY_MINUTE, overlap_policy="Skip")
	tick()
	(job,) = jobs_of(made.name)
	run_job(job.name)
	(successor,) = overlaps.unfinished_jobs(made.name)
	assert frappe.db.get_value("Background Job", successor, "retry_of") == job.name
	tick(NOON + MINUTE)
	run_job(successor)
	assert (stored_status(job.name), stored_status(successor)) == (states.FAILED, states.COMPLETED)
	assert overlaps.unfinished_jobs(made.name) == []
	tick(NOON + 2 * MINUTE)
	assert outcomes(made.name) == ["Fired", "Skipped", "Fired"]


def test_a_job_that_runs_for_a_month_does_not_make_each_fire_slower(world):
	"""Only fires that made jobs are looked at, however many were skipped since."""
	made = make_schedule(world.a, cron_expression=EVERY_MINUTE, overlap_policy="Skip")
	tick()
	frappe.db.commit()
	for number in range(1, 60):
		tick(NOON + number * MINUTE)
	assert outcomes(made.name) == ["Fired"] + ["Skipped"] * 59
	assert len(overlaps.unfinished_jobs(made.name)) == 1


def test_schedules_do_not_stand_in_each_others_way(world):
	"""BullMQ 2876: two schedules of the same work are two schedules."""
	template = make_template(world.a)
	made = [make_schedule(world.a, template=template, overlap_policy="Skip") for _ in range(3)]
	tick()
	assert [outcomes(one.name) for one in made] == [["Fired"]] * 3


def test_a_schedule_goes_on_when_its_job_never_ends(world):
	"""BullMQ 2643 and 3272: the next run was made by the last one, and died with its worker."""
	made = make_schedule(world.a, cron_expression=EVERY_MINUTE)
	tick()
	start_job(jobs_of(made.name)[0].name)
	for number in range(1, 4):
		assert tick(NOON + number * MINUTE) == 1
	assert count_jobs(made.name) == 4
