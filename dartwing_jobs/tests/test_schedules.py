"""A schedule that fires: its job, whom it runs as, what is checked again, what changes when it fires."""

import time
from datetime import datetime, timedelta

import frappe
import pytest

from dartwing_jobs import clock, parameters, schedule, settings, submit
from dartwing_jobs.engine import bell, database, retention, statements, sweep
from dartwing_jobs.engine.rules import queue_rules
from dartwing_jobs.engine.schedules import fire_jobs, fire_times, schedules, ticks
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.testing import run_all_due, run_job
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
from dartwing_jobs.tests.world import (
	REPEATABLE,
	expel,
	make_job_type,
	make_organization,
	make_queue,
	make_template,
	make_user,
	set_site_zone,
)


@pytest.fixture(autouse=True)
def nothing_fires_afterwards(site):
	yield
	forget_all()


@pytest.fixture
def setting(site):
	"""Changes a setting of the engine until the test ends."""
	changed = {}

	def change(**values) -> None:
		document = frappe.get_doc("Job Engine Settings")
		changed.update({name: document.get(name) for name in values if name not in changed})
		document.update(values).save()
		frappe.db.commit()

	yield change
	frappe.db.rollback()
	frappe.set_user("Administrator")
	if changed:
		change(**changed)


def reason(name: str) -> str:
	return read(name).disabled_reason


# the job


def test_a_fire_makes_a_job_of_the_template_with_the_overrides(world):
	template = make_template(world.a, default_params={"depth": "shallow", "to": {"a": 1, "b": 2}})
	overrides = {"depth": "deep", "to": {"b": None}}
	made = make_schedule(world.a, template=template, param_overrides=overrides, priority="High")
	assert tick() == 1
	(job,) = jobs_of(made.name)
	assert parameters.load(job.input_parameters) == {"depth": "deep", "to": {"a": 1}}
	assert (job.job_template, job.job_schedule, job.organization) == (template.name, made.name, world.a)
	assert (job.priority, job.owner_user, job.owner, job.actor_type) == (
		"High",
		"Administrator",
		"Administrator",
		"system",
	)
	assert job.scheduled_for == database.as_site_time(NOON)
	assert fires_of(made.name) == [(NOON, "Fired")]
	assert job.correlation_id == lines_of(made.name)[0].name
	assert (read(made.name).next_fire_at, read(made.name).last_fire_at) == (NOON + DAY, NOON)
	assert run_job(job.name).status == "Completed"


def test_nothing_fires_before_its_time(world):
	made = make_schedule(world.a)
	assert tick(NOON - timedelta(microseconds=1)) == 0
	assert fires_of(made.name) == []


def test_jobs_of_like_schedules_are_told_apart(world):
	"""They are submitted together; each has its own parameters, template, story and place."""
	made = [make_schedule(world.a, param_overrides={"n": n}) for n in range(5)]
	assert tick() == 5
	for number, one in enumerate(made):
		(job,) = jobs_of(one.name)
		assert parameters.load(job.input_parameters) == {"n": number}
		assert job.job_template == one.job_template
		filters = {"background_job": job.name, "event": "job.created"}
		(row,) = frappe.get_all("Job Execution Log", filters=filters, fields=["details", "correlation_id"])
		assert frappe.parse_json(row.details)["job_schedule"] == one.name
		assert row.correlation_id == job.correlation_id


def test_no_deduplication_window_swallows_a_fire(world):
	job_type = make_job_type(deduplication_window=3600)
	template = make_template(world.a, job_type=job_type.name)
	made = make_schedule(world.a, template=template, cron_expression=EVERY_MINUTE)
	tick()
	tick(NOON + MINUTE)
	assert len({job.name for job in jobs_of(made.name)}) == 2


@pytest.mark.parametrize(
	("category", "queue"),
	[
		("General", "q:maintenance"),
		("Maintenance", "q:maintenance"),
		("Notification", "q:notifications"),
		("Planning", "q:planning"),
	],
)
def test_scheduled_work_waits_where_the_design_says(world, category, queue):
	job_type = make_job_type(category=category, allow_schedule=1)
	made = make_schedule(world.a, template=make_template(world.a, job_type=job_type.name))
	tick()
	assert jobs_of(made.name)[0].job_queue == queue


def test_a_queue_on_the_type_wins(world):
	queue = make_queue()
	job_type = make_job_type(job_queue=queue)
	made = make_schedule(world.a, template=make_template(world.a, job_type=job_type.name))
	tick()
	assert jobs_of(made.name)[0].job_queue == queue


def test_only_scheduled_jobs_of_the_general_kind_wait_in_maintenance(world):
	with pytest.raises(InvalidJobError, match="do not wait in q:maintenance"):
		submit(REPEATABLE, None, world.a, job_queue="q:maintenance")
	assert queue_rules.queue_of_scheduled(frappe.get_doc("Job Type", REPEATABLE)) == "q:maintenance"


# whom it runs as


@pytest.mark.parametrize(
	"change", [{"param_overrides": {"a": 2}}, {"priority": "High"}, {"job_template": "another"}]
)
def test_it_runs_as_whoever_last_changed_what_it_does(world, change):
	"""Otherwise an admin could make work run with a manager's rights."""
	made = make_schedule(world.a)
	assert made.run_as == "Administrator"
	frappe.set_user(world.admin_a)
	if "job_template" in change:
		change = {"job_template": make_template(world.a).name}
	made.update(change).save()
	assert made.run_as == world.admin_a


def test_it_runs_as_before_when_only_its_name_or_its_times_change(world):
	made = make_schedule(world.a)
	frappe.set_user(world.admin_a)
	made.update({"schedule_name": "another", "cron_expression": "5 5 * * *", "overlap_policy": "Skip"}).save()
	assert made.run_as == "Administrator"


def test_who_changes_the_template_does_not_borrow_the_rights_of_who_made_the_schedule(world):
	made = make_schedule(world.a)
	frappe.set_user(world.admin_a)
	template = frappe.get_doc("Job Template", made.job_template)
	template.update({"default_params": {"target": "everything"}}).save()
	assert read_uncommitted(made.name).run_as == world.admin_a


def test_who_changes_the_template_does_not_lend_rights_to_overrides_of_others(world):
	template, other = make_template(world.a), make_user("other", ["Dartwing Admin"], [world.a])
	frappe.set_user(other)
	theirs = make_schedule(world.a, template=template, param_overrides={"target": "everything"})
	frappe.set_user(world.admin_a)
	own = make_schedule(world.a, template=template, param_overrides={"a": 1})
	template.reload()
	template.update({"default_params": {"b": 2}}).save()
	frappe.db.commit()
	assert (read(theirs.name).run_as, read(theirs.name).enabled) == (other, 0)
	assert f"changed by {world.admin_a}; enable it again" in reason(theirs.name)
	assert [outcome for _at, outcome in fires_of(theirs.name)] == ["Disabled"]
	assert (read(own.name).run_as, read(own.name).enabled) == (world.admin_a, 1)


def test_a_manager_who_changes_a_template_lends_nobody_his_rights(world):
	frappe.set_user(world.admin_a)
	made = make_schedule(world.a)
	frappe.set_user(world.manager)
	frappe.get_doc("Job Template", made.job_template).update({"default_params": {"a": 1}}).save()
	assert read_uncommitted(made.name).run_as == world.admin_a


def read_uncommitted(name: str):
	return frappe.db.get_value("Job Schedule", name, "*", as_dict=True)


# what is checked again


def as_somebody(world, **fields):
	"""A schedule of a user of its own, and the user."""
	user = make_user("owner", ["Dartwing Admin"], [world.a])
	frappe.set_user(user)
	made = make_schedule(world.a, **fields)
	frappe.set_user("Administrator")
	return made, user


def test_a_disabled_user_disables_the_schedule(world, setting):
	setting(disable_broken_schedules=0)
	made, user = as_somebody(world)
	frappe.db.set_value("User", user, "enabled", 0)
	tick()
	assert [outcome for _at, outcome in fires_of(made.name)] == ["Failed", "Disabled"]
	assert lines_of(made.name)[0].message == f"Permission denied: user {user} is disabled or gone"
	assert not read(made.name).enabled and read(made.name).next_fire_at is None
	assert user in reason(made.name)


def test_a_user_who_left_the_organization_disables_the_schedule(world):
	made, user = as_somebody(world)
	expel(user, world.a)
	tick()
	assert "is not in organization" in reason(made.name)
	assert jobs_of(made.name) == []


def test_an_inactive_organization_disables_the_schedule(world):
	organization = make_organization()
	made = make_schedule(organization)
	frappe.db.set_value("Organization", organization, "status", "Inactive")
	tick()
	assert "Inactive" in reason(made.name)


@pytest.mark.parametrize("end", ["archived", "deleted"])
def test_a_template_that_is_gone_disables_the_schedule(world, end):
	"""Past the document, which would have disabled it at once."""
	made = make_schedule(world.a)
	if end == "archived":
		frappe.db.set_value("Job Template", made.job_template, "status", "Archived")
	else:
		frappe.db.delete("Job Template", {"name": made.job_template})
	tick()
	assert end in reason(made.name)
	assert [outcome for _at, outcome in fires_of(made.name)] == ["Failed", "Disabled"]


def test_a_broken_schedule_can_be_left_enabled(world, setting):
	setting(disable_broken_schedules=0)
	made = make_schedule(world.a)
	frappe.db.set_value("Job Template", made.job_template, "status", "Archived")
	tick()
	assert fires_of(made.name) == [(NOON, "Failed")]
	assert read(made.name).next_fire_at == NOON + DAY


def test_a_template_that_is_deleted_leaves_its_schedules_disabled_with_the_reason(world):
	made = make_schedule(world.a)
	frappe.delete_doc("Job Template", made.job_template)
	frappe.db.commit()
	assert tick() == 0
	assert "deleted" in reason(made.name)
	assert [outcome for _at, outcome in fires_of(made.name)] == ["Disabled"]


def test_a_disabled_type_fails_the_fire_and_the_schedule_goes_on(world):
	job_type = make_job_type()
	made = make_schedule(world.a, template=make_template(world.a, job_type=job_type.name))
	job_type.update({"is_enabled": 0}).save()
	tick()
	assert fires_of(made.name) == [(NOON, "Failed")]
	assert "is disabled" in lines_of(made.name)[0].message
	assert read(made.name).next_fire_at == NOON + DAY
	job_type.update({"is_enabled": 1}).save()
	tick(NOON + DAY)
	assert fires_of(made.name)[-1] == (NOON + DAY, "Fired")


def test_parameters_that_do_not_fit_fail_only_their_own_fire(world):
	job_type = make_job_type(parameters_schema={"properties": {"n": {"type": "integer"}}})
	template = make_template(world.a, job_type=job_type.name)
	made = [make_schedule(world.a, template=template, param_overrides={"n": n}) for n in (1, "two", 3)]
	made.append(make_schedule(world.b))  # of another kind, submitted beside them
	tick()
	assert [fires_of(one.name)[0][1] for one in made] == ["Fired", "Failed", "Fired", "Fired"]
	(failed,) = lines_of(made[1].name)
	assert "two" in failed.message and not failed.background_job
	assert [len(jobs_of(one.name)) for one in made] == [1, 0, 1, 1]


def test_one_bad_fire_of_many_is_found_by_halves(world, monkeypatch):
	"""Each of the others was submitted alone, and a tick took seconds."""
	job_type = make_job_type(parameters_schema={"properties": {"n": {"type": "integer"}}})
	template = make_template(world.a, job_type=job_type.name)
	values = [1] * 15 + ["two"]
	made = [make_schedule(world.a, template=template, param_overrides={"n": n}).name for n in values]
	tries, do = [], fire_jobs.refusal_of
	monkeypatch.setattr(fire_jobs, "refusal_of", lambda submitting: tries.append(1) or do(submitting))
	tick()
	assert [fires_of(name)[0][1] for name in made] == ["Fired"] * 15 + ["Failed"]
	assert len(tries) < len(made)


def test_a_full_queue_fails_the_fires_that_have_no_place(world):
	queue = make_queue()
	frappe.get_doc("Job Queue", queue).update({"max_waiting": 2}).save()
	template = make_template(world.a, job_type=make_job_type(job_queue=queue).name)
	made = [make_schedule(world.a, template=template) for _ in range(4)]
	tick()
	outcomes = [fires_of(one.name)[0][1] for one in made]
	assert sorted(outcomes) == ["Failed", "Failed", "Fired", "Fired"]
	(message,) = {row.message for one in made for row in lines_of(one.name) if row.outcome == "Failed"}
	assert "Queue full" in message


def test_types_that_may_not_be_scheduled_are_refused_when_saved_and_when_fired(world):
	job_type = make_job_type(category="Planning")
	template = make_template(world.a, job_type=job_type.name)
	with pytest.raises(InvalidJobError, match="may not be scheduled"):
		make_schedule(world.a, template=template)
	job_type.update({"allow_schedule": 1}).save()
	made = make_schedule(world.a, template=template)
	job_type.update({"allow_schedule": 0}).save()
	tick()
	assert fires_of(made.name) == [(NOON, "Failed")]
	assert "may not be scheduled" in lines_of(made.name)[0].message
	assert read(made.name).enabled


# when it fires


def test_an_edited_expression_catches_nothing_up(world):
	made = make_schedule(world.a, missed_run_policy="All")
	made.reload()
	made.update({"cron_expression": EVERY_MINUTE}).save()
	frappe.db.commit()
	assert read(made.name).next_fire_at > database.utc_now()
	assert tick() == 0


@pytest.mark.parametrize("again", ["resume", "save"])
def test_a_pause_catches_nothing_up(world, again):
	made = make_schedule(world.a, missed_run_policy="All")
	schedules.pause(made.name, "holidays")
	assert (read_uncommitted(made.name).next_fire_at, reason_uncommitted(made.name)) == (None, "holidays")
	assert tick() == 0
	if again == "resume":
		schedules.resume(made.name)
	else:
		frappe.get_doc("Job Schedule", made.name).update({"enabled": 1}).save()
	assert tick() == 0
	assert read(made.name).next_fire_at > database.utc_now()
	assert read(made.name).disabled_reason is None
	assert [row.message for row in lines_of(made.name)] == ["holidays"]


def reason_uncommitted(name: str) -> str:
	return read_uncommitted(name).disabled_reason


def test_a_form_that_was_open_while_the_schedule_fired_can_be_saved(world):
	made = make_schedule(world.a)
	form = frappe.get_doc("Job Schedule", made.name)
	tick()
	form.update({"schedule_name": "another name"}).save()
	frappe.db.commit()
	assert (read(made.name).next_fire_at, read(made.name).last_fire_at) == (NOON + DAY, NOON)


def test_the_times_are_not_typed_in(world):
	made = make_schedule(world.a)
	made.reload()
	made.update({"next_fire_at": NOON - DAY, "last_fire_at": NOON}).save()
	assert (made.next_fire_at, made.last_fire_at) == (NOON, None)


def test_a_form_that_was_open_does_not_undo_what_disabled_the_schedule(world):
	made = make_schedule(world.a)
	form = frappe.get_doc("Job Schedule", made.name)
	schedules.disable_for_template(made.job_template, "gone")
	with pytest.raises(frappe.TimestampMismatchError):
		form.update({"schedule_name": "another name"}).save()


def test_a_changed_site_time_zone_changes_nothing(world):
	made = make_schedule(world.a, None, time_zone=None, cron_expression="0 9 * * *")
	before, zone = read(made.name).next_fire_at, frappe.db.get_single_value("System Settings", "time_zone")
	assert read(made.name).time_zone == frappe.utils.get_system_timezone()
	set_site_zone("Pacific/Kiritimati")
	try:
		assert frappe.utils.get_system_timezone() == "Pacific/Kiritimati"
		tick(before)
		following = read(made.name).next_fire_at
	finally:
		set_site_zone(zone)
	assert fires_of(made.name) == [(before, "Fired")]
	assert abs(following - before - DAY) <= timedelta(hours=1)  # on the same wall as before


@pytest.mark.parametrize(
	("expression", "first", "following"),
	[
		# the clocks go back on 1 November: once, at the first 01:30
		("30 1 * * *", datetime(2026, 11, 1, 5, 30), datetime(2026, 11, 2, 6, 30)),
		# the second hour of that night is an hour of its own for a rhythm
		("0 * * * *", datetime(2026, 11, 1, 5), datetime(2026, 11, 1, 6)),
		# 02:30 does not exist on 8 March
		("30 2 * * *", datetime(2026, 3, 7, 7, 30), datetime(2026, 3, 8, 7)),
	],
)
def test_fire_times_are_stored_in_utc_across_changes_of_the_clocks(world, expression, first, following):
	made = make_schedule(world.a, first, cron_expression=expression, time_zone="America/New_York")
	tick(first)
	assert (read(made.name).last_fire_at, read(made.name).next_fire_at) == (first, following)


def test_a_window_begins_and_ends_on_the_schedules_own_wall(world):
	"""Both borders belong to it."""
	window = {"start_at": "2030-01-01 09:00:00", "end_at": "2030-01-02 09:00:00"}
	made = make_schedule(world.a, None, cron_expression="0 9 * * *", time_zone="Asia/Tokyo", **window)
	assert made.next_fire_at == datetime(2030, 1, 1)
	assert [moment.isoformat() for moment in schedules.upcoming(made.name)] == [
		"2030-01-01T09:00:00+09:00",
		"2030-01-02T09:00:00+09:00",
	]
	tick(datetime(2030, 1, 1))
	tick(datetime(2030, 1, 2))
	assert [outcome for _at, outcome in fires_of(made.name)] == ["Fired", "Fired"]
	assert read(made.name).next_fire_at is None


def test_a_window_with_an_offset_is_put_on_the_schedules_wall(world):
	made = make_schedule(world.a, None, time_zone="Asia/Tokyo", start_at="2030-01-01T00:00:00Z")
	assert made.start_at == datetime(2030, 1, 1, 9)


@pytest.mark.parametrize(
	"window",
	[
		{"end_at": "2026-01-01 00:00:00"},
		{"start_at": "2030-01-01 12:00:01", "end_at": "2030-01-02 11:59:59"},
	],
)
def test_a_schedule_whose_window_has_no_fire_left_is_refused(world, window):
	with pytest.raises(InvalidJobError, match="never fires"):
		make_schedule(world.a, None, **window)
	made = make_schedule(world.a, None, enabled=0, **window)
	with pytest.raises(InvalidJobError, match="never fires"):
		schedules.resume(made.name)


def test_a_schedule_whose_window_is_over_can_still_be_renamed(world):
	made = make_schedule(world.a, None)
	plant(made.name, end_at="2026-01-01 00:00:00", next_fire_at=None)
	frappe.get_doc("Job Schedule", made.name).update({"schedule_name": "of old"}).save()
	assert read_uncommitted(made.name).enabled
	assert schedules.upcoming(made.name) == []


@pytest.mark.parametrize(
	("expression", "border", "expected"),
	[
		# 02:00 is 03:00 on 8 March: 02:30 fires at 03:00, and a window that starts or ends there has it
		("30 2 * * *", {"start_at": "2026-03-08 02:30:00"}, datetime(2026, 3, 8, 7)),
		("30 2 * * *", {"end_at": "2026-03-08 02:30:00"}, datetime(2026, 3, 8, 7)),
		("45 1 * * *", {"end_at": "2026-03-08 02:30:00"}, datetime(2026, 3, 8, 6, 45)),
		("15 3 * * *", {"end_at": "2026-03-08 02:30:00"}, None),
	],
)
def test_a_window_may_begin_and_end_in_the_hour_that_is_jumped_over(expression, border, expected):
	row = frappe._dict(cron_expression=expression, time_zone="America/New_York", **border)
	assert fire_times.next_after(row, datetime(2026, 3, 8, 6, 30)) == expected


def test_a_window_that_ends_in_the_hour_that_comes_twice_has_it_both_times():
	row = frappe._dict(cron_expression="*/30 * * * *", time_zone="America/New_York")
	row.end_at = "2026-11-01 01:30:00"
	assert fire_times.upcoming(row, datetime(2026, 11, 1, 5), 5) == [
		datetime(2026, 11, 1, 5, 30),
		datetime(2026, 11, 1, 6),
		datetime(2026, 11, 1, 6, 30),
	]


def test_jitter_stays_within_its_bounds_and_is_the_same_each_time():
	one = frappe._dict(name="a", jitter_seconds=30)
	moments = [NOON + n * MINUTE for n in range(500)]
	offsets = [(fire_jobs.start_of(one, moment) - moment).total_seconds() for moment in moments]
	assert set(offsets) == set(range(31))
	assert offsets == [(fire_jobs.start_of(one, moment) - moment).total_seconds() for moment in moments]
	other = frappe._dict(name="b", jitter_seconds=30)
	assert offsets != [(fire_jobs.start_of(other, moment) - moment).total_seconds() for moment in moments]
	assert fire_jobs.start_of(frappe._dict(name="a"), NOON) == NOON


def test_jitter_delays_the_job_and_not_the_fire(world):
	soon = database.utc_now().replace(microsecond=0)
	made = make_schedule(world.a, soon, jitter_seconds=100_000)
	tick(soon)
	(job,) = jobs_of(made.name)
	assert job.run_at == fire_jobs.start_of(read(made.name), soon)
	assert job.status == "Pending"
	assert fires_of(made.name) == [(soon, "Fired")]


def test_an_engine_that_is_offline_fires_nothing(world, setting):
	made = make_schedule(world.a)
	setting(online=0)
	assert tick() == 0
	assert ticks.fire_due() == 0
	setting(online=1)
	assert tick() == 1
	assert fires_of(made.name) == [(NOON, "Fired")]


# forced


def test_a_forced_job_runs_as_whoever_forces_it(world):
	made = make_schedule(world.a, jitter_seconds=1000, overlap_policy="Skip")
	frappe.set_user(world.admin_a)
	names = [schedules.trigger(made.name) for _ in range(5)]
	frappe.db.commit()
	assert len(set(names)) == 5 == count_jobs(made.name)
	assert {outcome for _at, outcome in fires_of(made.name)} == {"Forced"}
	job = frappe.get_doc("Background Job", names[0])
	assert (job.owner_user, job.job_queue, job.status) == (world.admin_a, "q:maintenance", "Queued")
	assert read(made.name).next_fire_at == NOON


def test_a_disabled_schedule_can_be_forced_but_not_an_archived_template(world):
	made = make_schedule(world.a, enabled=0)
	assert schedules.trigger(made.name)
	frappe.db.set_value("Job Template", made.job_template, "status", "Archived")
	with pytest.raises(InvalidJobError, match="archived"):
		schedules.trigger(made.name)


def test_lines_at_the_same_moment_do_not_collide(world, monkeypatch):
	made = make_schedule(world.a)
	monkeypatch.setattr(database, "utc_now", lambda: NOON)
	for _ in range(3):
		schedules.trigger(made.name)
	frappe.db.commit()
	monkeypatch.undo()
	assert tick() == 1
	assert [outcome for _at, outcome in fires_of(made.name)] == ["Fired", "Forced", "Forced", "Forced"]


@pytest.mark.parametrize("act", ["trigger", "pause", "resume", "upcoming"])
@pytest.mark.parametrize("person", ["admin_b", "user_a", "stranger"])
def test_outsiders_learn_nothing_of_a_schedule(world, act, person):
	made = make_schedule(world.a)
	frappe.set_user(getattr(world, person))
	for name in (made.name, "no-such-schedule"):
		with pytest.raises(frappe.DoesNotExistError, match=f"Job Schedule {name} was not found"):
			getattr(schedules, act)(name)


# one bad schedule


@pytest.mark.parametrize(
	("planted", "told"),
	[
		({"cron_expression": "what is this"}, "not a cron expression"),
		({"cron_expression": "61 * * * *"}, "not a valid cron expression"),
		({"time_zone": "Mars/Olympus"}, "Its fire times cannot be told"),
		({"run_as": None}, "no user to run as"),
	],
)
def test_a_schedule_that_was_broken_past_the_document_is_disabled_and_stops_nobody(world, planted, told):
	"""frappe/frappe: one impossible date ended the scheduler's loop for the whole site."""
	bad, good = make_schedule(world.a, NOON - MINUTE), make_schedule(world.a)
	plant(bad.name, **planted)
	tick()
	assert fires_of(good.name) == [(NOON, "Fired")]
	assert told in reason(bad.name)
	assert tick() == 0


def test_an_expression_that_never_fires_again_stops_nobody(world):
	"""What Frappe lets through: 30 February."""
	bad, good = make_schedule(world.a, NOON - MINUTE), make_schedule(world.a)
	plant(bad.name, cron_expression="0 0 30 2 *")
	tick()
	assert fires_of(good.name) == [(NOON, "Fired")]
	assert read(bad.name).next_fire_at is None


def test_a_schedule_that_fails_for_a_reason_nobody_foresaw_goes_on_and_stops_nobody(world):
	template = make_template(world.a, default_params={"a": 1})
	good = [make_schedule(world.a, template=template) for _ in range(2)]
	bad = make_schedule(world.a, NOON - MINUTE, template=template, cron_expression=EVERY_MINUTE)
	plant(bad.name, param_overrides="[1, 2]")
	assert tick(NOON) == 3
	assert [fires_of(one.name) for one in good] == [[(NOON, "Fired")]] * 2
	assert [outcome for _at, outcome in fires_of(bad.name)] == ["Failed"]
	assert read(bad.name).next_fire_at == NOON + MINUTE
	plant(bad.name, param_overrides='{"a": 2}')
	tick(NOON + MINUTE)
	assert fires_of(bad.name)[-1] == (NOON + MINUTE, "Fired")


def test_schedules_from_before_there_was_a_tick_fire_from_now_on(world):
	made, ended, broken = (make_schedule(world.a) for _ in range(3))
	plant(ended.name, end_at="2026-01-01 00:00:00")
	for one in (made, ended, broken):
		plant(one.name, next_fire_at=None, time_zone=None)
	plant(broken.name, cron_expression="@daily")
	schedules.announce_all()
	frappe.db.commit()
	assert read(made.name).next_fire_at > database.utc_now()
	assert read(ended.name).next_fire_at is None and read(ended.name).enabled
	assert "cannot be told" in reason(broken.name)


def test_a_schedule_that_was_disabled_past_the_document_does_not_fire(world):
	made = make_schedule(world.a)
	plant(made.name, enabled=0)
	assert tick() == 0
	assert fires_of(made.name) == []
	assert read(made.name).next_fire_at is None


# by program


def test_schedule_makes_a_schedule_once(world):
	name = f"nightly {frappe.generate_hash(length=6)}"
	told = {
		"job_type": REPEATABLE,
		"parameters": {"a": 1},
		"organization": world.a,
		"time_zone": "Europe/Paris",
	}
	first = schedule(name, "0 3 * * *", start_at="2030-01-01", priority=5, jitter_seconds=10, **told)
	frappe.set_user(world.admin_a)
	again = schedule(name, "0 3 * * *", start_at="2030-01-01", priority=5, jitter_seconds=10, **told)
	assert (again.name, again.run_as) == (first.name, "Administrator")
	assert str(again.modified) == str(first.modified)
	assert (first.priority, first.time_zone, first.jitter_seconds) == ("High", "Europe/Paris", 10)
	assert frappe.db.count("Job Template", {"template_name": name}) == 1


def test_schedule_changes_what_differs_and_leaves_the_rest(world):
	name = f"nightly {frappe.generate_hash(length=6)}"
	told = {"job_type": REPEATABLE, "organization": world.a}
	first = schedule(name, "0 3 * * *", overlap_policy="Skip", parameters={"a": 1}, **told)
	schedules.pause(first.name)
	changed = schedule(name, "0 4 * * *", parameters={"a": 2}, **told)
	assert (changed.name, changed.cron_expression, changed.overlap_policy) == (
		first.name,
		"0 4 * * *",
		"Skip",
	)
	assert not changed.enabled
	template = frappe.get_doc("Job Template", changed.job_template)
	assert parameters.load(template.default_params) == {"a": 2}


def test_schedule_of_a_template_lays_overrides_over_it(world):
	template = make_template(world.a)
	made = schedule(
		"of a template", "0 3 * * *", template=template.name, overrides={"b": 1}, organization=world.a
	)
	assert (made.job_template, parameters.load(made.param_overrides)) == (template.name, {"b": 1})


def test_schedule_shows_nobody_a_schedule_of_others(world):
	name = f"secret {frappe.generate_hash(length=6)}"
	told = {"job_type": REPEATABLE, "organization": world.b}
	schedule(name, "0 3 * * *", **told)
	for person in (world.admin_a, world.user_a, world.stranger):
		frappe.set_user(person)
		with pytest.raises(frappe.PermissionError):
			schedule(name, "0 3 * * *", **told)


@pytest.mark.parametrize("is_of_a_type", [True, False])
def test_a_program_does_not_lend_its_rights_to_what_an_admin_laid_over(world, is_of_a_type):
	"""It asks for the same at each start, as Administrator."""
	name = f"program {frappe.generate_hash(length=6)}"
	told = {"job_type": REPEATABLE, "parameters": {"a": 1}}
	told = told if is_of_a_type else {"template": make_template(world.a).name}
	made = schedule(name, "5 5 * * *", organization=world.a, priority="High", **told)
	frappe.set_user(world.admin_a)
	made.update({"param_overrides": {"target": "everything"}, "priority": "Low"}).save()
	frappe.set_user("Administrator")
	again = schedule(name, "5 5 * * *", organization=world.a, priority="High", **told)
	laid_over = parameters.load(again.param_overrides)
	expected = ("Administrator", {}) if is_of_a_type else (world.admin_a, {"target": "everything"})
	assert (again.priority, again.run_as, laid_over) == ("High", *expected)


def test_a_program_does_not_lend_its_rights_to_parameters_of_an_admin(world):
	name = f"program {frappe.generate_hash(length=6)}"
	told = {"job_type": REPEATABLE, "organization": world.a, "priority": "High"}
	made = schedule(name, "5 5 * * *", **told)
	frappe.set_user(world.admin_a)
	template = frappe.get_doc("Job Template", made.job_template)
	template.update({"default_params": {"target": "everything"}}).save()
	frappe.get_doc("Job Schedule", made.name).update({"priority": "Low"}).save()
	frappe.set_user("Administrator")
	again = schedule(name, "5 5 * * *", **told)
	assert (again.priority, again.run_as) == ("High", world.admin_a)
	kept = frappe.get_doc("Job Template", made.job_template).default_params
	assert parameters.load(kept) == {"target": "everything"}


def test_schedule_does_not_overwrite_a_template_of_somebody_else(world):
	template = make_template(world.a, default_params={"of": "somebody"})
	told = {"job_type": REPEATABLE, "organization": world.a}
	for given in ({"of": "a program"}, None):
		with pytest.raises(InvalidJobError, match="for other work"):
			schedule(template.template_name, "0 3 * * *", parameters=given, **told)
	template.reload()
	assert parameters.load(template.default_params) == {"of": "somebody"}
	job_type = template.job_type
	told |= {"job_type": job_type, "parameters": {"of": "somebody"}}
	assert schedule(template.template_name, "0 3 * * *", **told).job_template == template.name


def test_schedule_does_not_bring_back_an_archived_template(world):
	name = f"put away {frappe.generate_hash(length=6)}"
	told = {"job_type": REPEATABLE, "organization": world.a}
	made = schedule(name, "0 3 * * *", **told)
	frappe.get_doc("Job Template", made.job_template).update({"status": "Archived"}).save()
	with pytest.raises(InvalidJobError, match="is archived"):
		schedule(name, "0 3 * * *", **told)


def test_a_window_with_an_offset_is_the_same_when_asked_for_again(world):
	name = f"window {frappe.generate_hash(length=6)}"
	told = {"job_type": REPEATABLE, "organization": world.a, "time_zone": "Asia/Tokyo"}
	told |= {"start_at": "2030-01-01T00:00:00Z", "end_at": "2031-01-01T00:00:00Z"}
	first = schedule(name, "0 3 * * *", **told)
	again = schedule(name, "0 3 * * *", **told)
	assert (first.start_at, str(again.modified)) == (datetime(2030, 1, 1, 9), str(first.modified))
	moved = schedule(name, "0 3 * * *", **(told | {"time_zone": "UTC"}))
	assert moved.start_at == datetime(2030, 1, 1)


@pytest.mark.parametrize(
	("told", "message"),
	[
		({}, "Say what to do"),
		({"job_type": REPEATABLE, "template": "t"}, "Say what to do"),
		({"template": "t", "parameters": {}}, "Parameters belong to a job type"),
		({"job_type": REPEATABLE, "color": "red"}, "has no option color"),
	],
)
def test_schedule_says_what_it_needs(world, told, message):
	with pytest.raises(InvalidJobError, match=message):
		schedule("s", "0 3 * * *", organization=world.a, **told)


def test_submit_with_repeat_makes_a_schedule_once(world):
	given = {"repeat": "0 0 * * *", "time_zone": "Asia/Tokyo"}
	first = submit(REPEATABLE, {"a": 1, "b": 2}, world.a, **given)
	again = submit(REPEATABLE, {"b": 2, "a": 1}, world.a, **given)
	other = submit(REPEATABLE, {"a": 2}, world.a, **given)
	assert first.doctype == "Job Schedule" and first.cron_expression == "0 0 * * *"
	assert first.name == again.name != other.name
	named = submit(REPEATABLE, {"a": 1}, world.a, unique_key="nightly-report", **given)
	assert named.schedule_name == "nightly-report"


def test_submit_with_repeat_takes_what_a_schedule_has(world):
	with pytest.raises(InvalidJobError, match="has no option depends_on"):
		submit(REPEATABLE, None, world.a, repeat="0 0 * * *", depends_on="JOB-1")
	with pytest.raises(InvalidJobError, match="never fires"):
		submit(REPEATABLE, None, world.a, repeat="0 0 30 2 *")
	frappe.set_user(world.user_a)
	with pytest.raises(frappe.PermissionError):
		submit(REPEATABLE, None, world.a, repeat="0 0 * * *")


# the rest


def test_the_next_ten_fire_times_can_be_asked_for(world):
	made = make_schedule(world.a, None, cron_expression="30 2 * * *", time_zone="Europe/Paris")
	moments = schedules.upcoming(made.name)
	assert len(moments) == 10
	assert [moment.tzinfo.key for moment in moments] == ["Europe/Paris"] * 10
	assert moments == schedules.preview("30 2 * * *", "Europe/Paris")
	assert len(schedules.upcoming(made.name, 1000)) == schedules.MOST_UPCOMING


def test_deleting_a_schedule_leaves_its_jobs(world):
	made = make_schedule(world.a)
	tick()
	(job,) = jobs_of(made.name)
	frappe.delete_doc("Job Schedule", made.name)
	assert lines_of_uncommitted(made.name) == []
	assert run_job(job.name).status == "Completed"


def lines_of_uncommitted(name: str) -> list:
	return frappe.get_all("Job Schedule Fire", filters={"job_schedule": name})


def test_fires_go_with_their_jobs_and_others_when_they_are_old(world):
	made = make_schedule(world.a, NOON - DAY, missed_run_policy="Skip")
	tick(NOON)
	assert [outcome for _at, outcome in fires_of(made.name)] == ["Missed", "Fired"]
	now = clock.now()
	assert retention.delete_old_fires(now) == 0
	long_ago = now - timedelta(days=settings.retention_days() + 1)
	frappe.db.set_value("Job Schedule Fire", {"job_schedule": made.name}, "creation", long_ago)
	frappe.db.commit()
	assert retention.delete_old_fires(now) >= 1
	assert [outcome for _at, outcome in fires_of(made.name)] == ["Fired"]
	(job,) = jobs_of(made.name)
	run_job(job.name)
	frappe.delete_doc("Background Job", job.name)
	assert lines_of_uncommitted(made.name) == []


def test_an_idle_tick_is_one_look_at_an_index(world):
	soon = database.utc_now() - MINUTE
	make_schedule(world.a, None)
	moments = []
	for _ in range(20):
		began = time.perf_counter()
		assert ticks.fire_due() == 0
		moments.append(time.perf_counter() - began)
	assert sorted(moments)[10] < 0.02
	explained = statements.fetch(f"explain {ticks.DUE}", (soon, 100))
	assert (
		"idx_next_fire" in str([list(row.values()) for row in explained]) or frappe.db.db_type == "postgres"
	)


def test_sweeps_and_drains_fire_what_is_due(world):
	first, second = make_schedule(world.a), make_schedule(world.a, NOON + DAY)
	plant(second.name, next_fire_at=None)
	sweep.sweep()
	assert count_jobs(first.name) == 0  # months late, and missed fires are skipped
	assert [outcome for _at, outcome in fires_of(first.name)] == ["Missed"]
	plant(second.name, next_fire_at=database.utc_now().replace(microsecond=0))
	run_all_due("q:maintenance")
	(job,) = jobs_of(second.name)
	assert job.status == "Completed"


def test_a_sweep_calls_a_worker_for_a_fire_that_comes_soon(world, monkeypatch):
	"""One of the queue that its job will wait in; nobody for a fire that comes later."""
	queue = make_queue("long")
	template = make_template(world.a, job_type=make_job_type(job_queue=queue).name)
	now, rung = database.utc_now().replace(microsecond=0), []
	monkeypatch.setattr(bell, "ring", rung.append)
	made = make_schedule(world.a, now + timedelta(hours=1), template=template)
	sweep.ring_for_waiting()
	without = rung.count("long")
	rung.clear()
	plant(made.name, next_fire_at=now + MINUTE)
	sweep.ring_for_waiting()
	assert (rung.count("long"), rung[-1]) == (without + 1, "long")


def test_a_batch_of_schedules_that_catch_up_is_no_giant_transaction(world, monkeypatch):
	monkeypatch.setattr(ticks, "MOST_FIRES", 5)
	told = {"cron_expression": EVERY_MINUTE, "missed_run_policy": "All"}
	made = [make_schedule(world.a, NOON - 9 * MINUTE, **told).name for _ in range(3)]
	commits = []
	monkeypatch.setattr(
		ticks, "_settle", lambda due, written, do=ticks._settle: commits.append(do(due, written))
	)
	assert tick() == 30
	assert count_jobs(*made) == 30
	assert len(commits) == 4  # one for each schedule, and one that found nothing more


def test_the_next_fire_is_a_duty_that_workers_wait_for(world):
	soon = database.utc_now().replace(microsecond=0) + timedelta(seconds=30)
	make_schedule(world.a, soon)
	assert sweep.next_duty([make_queue()]) <= soon
	assert schedules.next_due() == soon
