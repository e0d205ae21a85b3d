"""Limits on what runs at once and on what starts within a time: never more, and no place is ever lost."""

import time
from datetime import timedelta

import frappe
import pytest

from dartwing_jobs import testing
from dartwing_jobs.engine import attempt, bell, burials, database, drain, naming, sweep
from dartwing_jobs.engine.facts import Facts
from dartwing_jobs.engine.handling.handlers import job_handler
from dartwing_jobs.engine.limits import brakes
from dartwing_jobs.engine.submit import submit, submit_many
from dartwing_jobs.tests.processes import in_other_processes
from dartwing_jobs.tests.world import make_job_type, make_organization, make_queue, stored_status

NOTHING = "dartwing_jobs.samples.do_nothing"
COUNTING = "dartwing_jobs.tests.test_limits.count_those_who_run"


@job_handler
def count_those_who_run(parameters: dict, context) -> int:
	"""How many jobs of this type run now, as another connection sees it."""
	time.sleep(0.02)
	with database.beside():
		return frappe.db.count("Background Job", {"job_type": context.job_type, "status": "Running"})


@pytest.fixture
def queue():
	return make_queue()


def limited_type(**limits) -> str:
	return make_job_type(handler_method=NOTHING, **limits).name


def start_alone(queue: str):
	"""What a worker starts next in a queue; None when nothing may start."""
	worker = drain.Drain(None, None, [queue])
	worker.look()
	batch = worker.take_apart()
	return batch and batch.attempts[0]


@pytest.mark.parametrize("what", ["type", "organization", "queue"])
def test_no_more_run_at_once_than_may(world, queue, what):
	organization = make_organization("Limited")
	job_type = limited_type(max_running=2 if what == "type" else 0)
	if what == "organization":
		frappe.get_doc(
			{"doctype": "Job Organization Policy", "organization": organization, "max_running": 2}
		).insert()
	if what == "queue":
		frappe.db.set_value("Job Queue", queue, "max_running", 2)
	names = submit_many(job_type, [{}] * 4, organization, job_queue=queue)
	frappe.db.commit()
	first, second, third = (start_alone(queue) for _ in range(3))
	assert (first.job.name, second.job.name, third) == (names[0], names[1], None)
	assert "run at once" in frappe.db.get_value("Background Job", names[2], "held_reason")
	attempt.run(first)
	assert start_alone(queue).job.name == names[2]
	assert start_alone(queue) is None


def test_others_pass_those_who_are_held(world, queue):
	limited = limited_type(max_running=1)
	submit_many(limited, [{}] * 5, world.a, job_queue=queue)
	other = submit(limited_type(), {}, world.a, job_queue=queue)
	frappe.db.commit()
	assert start_alone(queue).job.job_type == limited
	assert start_alone(queue).job.name == other.name
	assert start_alone(queue) is None


def test_held_jobs_keep_their_order(world, queue):
	limited = limited_type(max_running=1)
	low, normal, high = (
		submit(limited, {}, world.a, job_queue=queue, priority=priority).name
		for priority in ("Low", "Normal", "High")
	)
	frappe.db.commit()
	running = start_alone(queue)
	assert (running.job.name, start_alone(queue)) == (high, None)
	attempt.run(running)
	running = start_alone(queue)
	assert running.job.name == normal
	attempt.run(running)
	assert start_alone(queue).job.name == low


def test_later_ones_do_not_overtake_those_who_are_held(world, queue):
	limited = limited_type(max_running=1)
	first, second, third = submit_many(limited, [{}] * 3, world.a, job_queue=queue)
	frappe.db.commit()
	running = start_alone(queue)
	assert (running.job.name, start_alone(queue)) == (first, None)
	late = submit(limited, {}, world.a, job_queue=queue).name
	stranger = submit(limited, {}, world.b, job_queue=queue).name
	frappe.db.commit()
	order = []
	for _ in range(4):
		attempt.run(running)
		running = start_alone(queue)
		order.append(running.job.name)
	assert [name for name in order if name != stranger] == [second, third, late]
	assert stranger in order[:3]  # another organization's does not wait for all of ours


def test_who_is_held_in_another_queue_is_released_and_rung_for(world, queue, monkeypatch):
	"""By workers of other RQ queues, who may have left long ago."""
	rung, organization, elsewhere = [], make_organization("Limited"), make_queue("short")
	policy = {"doctype": "Job Organization Policy", "organization": organization, "max_running": 1}
	frappe.get_doc(policy).insert()
	job_type = limited_type()
	submit(job_type, {}, organization, job_queue=queue)
	held = submit(job_type, {}, organization, job_queue=elsewhere).name
	frappe.db.commit()
	worker = drain.Drain(None, None, [queue])
	worker.look()
	batch = worker.take_apart()
	(running,) = batch.attempts
	assert start_alone(elsewhere) is None
	monkeypatch.setattr(bell, "ring", rung.append)
	attempt.run(running)
	worker.make_room(batch)
	assert rung == ["short"]
	assert start_alone(elsewhere).job.name == held


def test_a_renamed_organization_keeps_its_limits(world, queue):
	organization = make_organization("Before")
	policy = {"doctype": "Job Organization Policy", "organization": organization, "max_running": 1}
	name = frappe.get_doc(policy).insert().name
	frappe.db.set_value("Job Organization Policy", name, "organization", world.b)
	job = frappe._dict(job_type=limited_type(), organization=world.b, job_queue=queue)
	assert [limit.most for limit in brakes.limits_on(job, Facts())] == [1]
	frappe.db.rollback()


def test_alerts_are_not_held_by_the_brakes_of_those_they_tell(world, queue):
	organization = make_organization("Braked")
	policy = {
		"doctype": "Job Organization Policy",
		"organization": organization,
		"max_running": 1,
		"paused": 1,
	}
	frappe.get_doc(policy).insert()
	frappe.db.set_value("Job Type", burials.ALERT, "is_enabled", 1)  # the suite has switched it off
	job = frappe._dict(job_type=burials.ALERT, organization=organization, job_queue=queue)
	assert (brakes.pause_on(job, Facts()), brakes.limits_on(job, Facts())) == (None, [])


def test_a_drain_runs_all_that_is_limited_one_after_another(world, queue):
	names = submit_many(limited_type(max_running=1), [{}] * 20, world.a, job_queue=queue)
	assert testing.run_all_due(queue) == 20
	assert {stored_status(name) for name in names} == {"Completed"}


def test_a_killed_worker_takes_no_place_with_it(world, queue):
	limited = limited_type(max_running=1)
	killed, waiting = submit_many(limited, [{}] * 2, world.a, job_queue=queue)
	frappe.db.commit()
	assert start_alone(queue).job.name == killed
	assert start_alone(queue) is None
	testing.lose_worker(killed)
	sweep.sweep()
	assert start_alone(queue).job.name == waiting


def test_a_limit_that_is_lifted_holds_nobody(world, queue):
	limited = limited_type(max_running=1)
	submit_many(limited, [{}] * 3, world.a, job_queue=queue)
	frappe.db.commit()
	assert start_alone(queue)
	assert start_alone(queue) is None
	frappe.db.set_value("Job Type", limited, "max_running", 0)
	frappe.db.commit()
	assert start_alone(queue)
	assert start_alone(queue)


def test_processes_that_start_at_once_never_exceed_a_limit(world, queue):
	limited = make_job_type(handler_method=COUNTING, max_running=2).name
	names = submit_many(limited, [{}] * 120, world.a, job_queue=queue)
	frappe.db.commit()
	taken = in_other_processes(_drain_until_done, *[(queue, names[-1])] * 5)
	frappe.db.rollback()
	assert sum(taken) == len(names)
	counts = frappe.get_all("Job Run", filters={"job_type": limited}, pluck="output")
	assert len(counts) == len(names)
	assert {int(frappe.parse_json(count)) for count in counts} <= {1, 2}


def _drain_until_done(queue: str, _last: str) -> int:
	database.read_committed()
	taken, deadline = 0, time.monotonic() + 60
	while _is_unfinished(queue) and time.monotonic() < deadline:
		taken += drain.drain([queue])
	return taken


def _is_unfinished(queue: str) -> bool:
	frappe.db.rollback()
	return frappe.db.count("Background Job", {"job_queue": queue, "status": ["!=", "Completed"]}) > 0


def test_no_more_start_within_a_window_than_may(world, queue):
	limited = limited_type(rate_limit=3, rate_window_seconds=60)
	names = submit_many(limited, [{}] * 5, world.a, job_queue=queue)
	assert testing.run_all_due(queue) == 3
	assert [stored_status(name) for name in names] == ["Completed"] * 3 + ["Queued"] * 2
	waiting = frappe.db.get_value("Background Job", names[3], ["held_reason", "run_at"], as_dict=True)
	assert waiting.held_reason == f"At most 3 of Job Type {limited} start within 60 seconds"
	frappe.db.rollback()
	assert timedelta(0) < waiting.run_at - database.utc_now() <= timedelta(seconds=60)
	_let_a_minute_pass(limited)
	testing.fall_due(names[3])
	assert testing.run_all_due(queue) == 2


def test_the_window_moves_with_the_time(world, queue):
	"""The next may start when the oldest start of the window leaves it, not when a new minute begins."""
	limited = limited_type(rate_limit=2, rate_window_seconds=60)
	submit_many(limited, [{}] * 3, world.a, job_queue=queue)
	assert testing.run_all_due(queue) == 2
	runs = frappe.get_all("Job Run", filters={"job_type": limited}, pluck="name", order_by="name asc")
	job = frappe._dict(job_type=limited, organization=world.a, job_queue=queue)
	(limit,) = brakes.limits_on(job, Facts())
	assert limit.free_at() == naming.moment_of_row(runs[0]) + timedelta(seconds=60)


def _let_a_minute_pass(job_type: str) -> None:
	for name in frappe.get_all("Job Run", filters={"job_type": job_type}, pluck="name"):
		earlier = f"{int(name[:14], 16) - 61_000_000:014x}{name[14:]}"
		frappe.db.sql("update `tabJob Run` set name = %s where name = %s", (earlier, name))
	frappe.db.commit()


def test_maintenance_has_a_limit_of_its_own(world):
	job_type = make_job_type(handler_method=NOTHING, category="Maintenance")
	job = frappe._dict(job_type=job_type.name, organization=world.a, job_queue="q:maintenance")
	(limit,) = brakes.limits_on(job, Facts())
	assert (limit.most, limit.seconds) == (60, 60)
	job_type.rate_limit, job_type.rate_window_seconds = 5, 10
	job_type.save()
	(limit,) = brakes.limits_on(job, Facts())
	assert (limit.most, limit.seconds) == (5, 10)


def test_types_without_limits_ask_nothing(world, queue):
	job = frappe._dict(job_type=limited_type(), organization=world.a, job_queue=queue)
	assert brakes.limits_on(job, Facts()) == []
	assert brakes.pause_on(job, Facts()) is None
