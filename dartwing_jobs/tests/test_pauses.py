"""Pauses: waiting work waits and says why, running work finishes, and nobody else is held up."""

import time

import frappe
import pytest

from dartwing_jobs import cancel, testing
from dartwing_jobs.engine import attempt, bell, order, pauses, statements
from dartwing_jobs.engine.limits import holds
from dartwing_jobs.engine.submit import submit, submit_many
from dartwing_jobs.tests.world import make_job_type, make_queue, stored_status

NOTHING = "dartwing_jobs.samples.do_nothing"


@pytest.fixture
def queue():
	return make_queue()


@pytest.fixture
def job_type():
	return make_job_type(handler_method=NOTHING).name


@pytest.fixture(autouse=True)
def everything_goes_on(world):
	yield
	frappe.db.rollback()
	frappe.set_user("Administrator")
	pauses.resume(pauses.ENGINE)
	for organization in (world.a, world.b):
		frappe.db.delete("Job Organization Policy", {"name": organization})
	frappe.db.commit()


def held_reason(job) -> str | None:
	return frappe.db.get_value("Background Job", job.name, "held_reason")


@pytest.mark.parametrize("what", [pauses.JOB_TYPE, pauses.ORGANIZATION])
def test_what_is_paused_waits_and_says_why(world, queue, job_type, what):
	held = submit(job_type, {}, world.a, job_queue=queue)
	other = submit(make_job_type(handler_method=NOTHING).name, {}, world.b, job_queue=queue)
	pauses.pause(what, {pauses.JOB_TYPE: job_type, pauses.ORGANIZATION: world.a}[what], "the printer burns")
	testing.run_all_due(queue)
	assert (stored_status(held.name), stored_status(other.name)) == ("Queued", "Completed")
	assert held_reason(held).endswith("is paused: the printer burns")


@pytest.mark.parametrize("what", [pauses.JOB_TYPE, pauses.ORGANIZATION])
def test_what_is_resumed_runs_where_it_stood(world, queue, job_type, what):
	name = {pauses.JOB_TYPE: job_type, pauses.ORGANIZATION: world.a}[what]
	names = submit_many(job_type, [{}] * 3, world.a, job_queue=queue)
	urgent = submit(job_type, {}, world.a, job_queue=queue, priority="Critical").name
	pauses.pause(what, name)
	testing.run_all_due(queue)
	pauses.resume(what, name)
	assert testing.run_all_due(queue) == 4
	jobs = frappe.get_all(
		"Background Job",
		filters={"job_queue": queue},
		fields=["name", "status", "held_reason"],
		order_by="started_at asc",
	)
	assert [job.name for job in jobs] == [urgent, *names]
	assert {(job.status, job.held_reason) for job in jobs} == {("Completed", None)}


def test_a_job_that_is_submitted_while_its_type_is_paused_waits_too(world, queue, job_type):
	pauses.pause(pauses.JOB_TYPE, job_type)
	job = submit(job_type, {}, world.a, job_queue=queue)
	assert testing.run_all_due(queue) == 0
	assert held_reason(job)


def test_a_running_job_finishes(world, queue, job_type):
	job = submit(job_type, {}, world.a, job_queue=queue)
	started = testing.start_job(job.name)
	pauses.pause(pauses.JOB_TYPE, job_type)
	frappe.db.commit()
	attempt.run(started)
	assert stored_status(job.name) == "Completed"


def test_a_held_job_can_be_canceled_and_moved_up(world, queue, job_type):
	canceled, moved = (submit(job_type, {}, world.a, job_queue=queue) for _ in range(2))
	pauses.pause(pauses.JOB_TYPE, job_type)
	testing.run_all_due(queue)
	assert cancel(canceled.name) == "Canceled"
	moved = frappe.get_doc("Background Job", moved.name)
	moved.priority = "High"
	moved.save()
	pauses.resume(pauses.JOB_TYPE, job_type)
	assert testing.run_all_due(queue) == 1
	assert (stored_status(canceled.name), stored_status(moved.name)) == ("Canceled", "Completed")


def test_the_engine_and_a_queue_can_be_paused(world, queue, job_type):
	job = submit(job_type, {}, world.a, job_queue=queue)
	frappe.db.commit()
	row = frappe.db.get_value("Background Job", job.name, "*", as_dict=True)
	assert pauses.why_it_waits(row) is None
	pauses.pause(pauses.QUEUE, queue, "moving house")
	assert pauses.why_it_waits(row) == f"Queue {queue} is paused: moving house"
	pauses.pause(pauses.ENGINE, reason="upgrade")
	assert pauses.why_it_waits(row) == "The engine is offline: upgrade"
	assert testing.run_all_due(queue) == 0
	pauses.resume(pauses.ENGINE)
	pauses.resume(pauses.QUEUE, queue)
	assert testing.run_all_due(queue) == 1


def test_thousands_of_jobs_are_paused_in_seconds_and_block_nobody(world, queue, job_type):
	"""In short transactions; meanwhile a job of somebody else behind them all is not kept waiting."""
	crowd(queue, job_type, world.a, 10_000)
	behind = submit(make_job_type(handler_method=NOTHING).name, {}, world.a, job_queue=queue)
	frappe.db.commit()
	began = time.monotonic()
	pauses.pause(pauses.JOB_TYPE, job_type)
	frappe.db.commit()
	assert time.monotonic() - began < 1
	pauses.mark_held(pauses.JOB_TYPE, job_type)
	assert time.monotonic() - began < 10
	assert (
		frappe.db.count("Background Job", {"job_queue": queue, "held_by": f"paused type|{job_type}"})
		== 10_000
	)
	assert testing.run_all_due(queue) == 1
	assert stored_status(behind.name) == "Completed"
	frappe.db.delete("Background Job", {"job_queue": queue, "job_type": job_type})
	frappe.db.commit()


def test_jobs_at_the_same_place_are_all_marked(world, queue, job_type, monkeypatch):
	"""Those of two organizations may share a key, and a batch may end between them."""
	monkeypatch.setattr(holds, "BATCH", 3)
	names = submit_many(job_type, [{}] * 7, world.a, job_queue=queue)
	key = frappe.db.get_value("Background Job", names[0], "claim_key")
	frappe.db.set_value("Background Job", {"name": ["in", names]}, "claim_key", key, update_modified=False)
	pauses.pause(pauses.JOB_TYPE, job_type)
	frappe.db.commit()
	pauses.mark_held(pauses.JOB_TYPE, job_type)
	held = {"job_queue": queue, "held_by": f"paused type|{job_type}"}
	assert frappe.db.count("Background Job", held) == 7


def crowd(queue: str, job_type: str, organization: str, many: int) -> None:
	"""Jobs in line, as far as pausing is concerned; the engine would take a minute to write them."""
	source = {"mariadb": f"seq_1_to_{many}", "postgres": f"generate_series(1, {many}) as numbers(seq)"}
	start = order.band(order.RANKS["Normal"])[0]
	statements.execute(
		f"""insert into `tabBackground Job` (name, creation, modified, job_queue, line, organization,
		job_type, status, priority, claim_key)
		select concat(%s, seq), '2026-01-01', '2026-01-01', %s, %s, %s, %s, 'Queued', 'Normal', {start} + seq
		from {source[frappe.db.db_type]}""",
		(f"{queue}-", queue, queue, organization, job_type),
	)


def test_only_those_who_may_change_it_may_pause_it(world, job_type):
	for user in (world.admin_a, world.user_a):
		frappe.set_user(user)
		for what, name in (
			(pauses.JOB_TYPE, job_type),
			(pauses.ORGANIZATION, world.a),
			(pauses.ENGINE, None),
		):
			with pytest.raises(frappe.PermissionError):
				pauses.pause(what, name)


def test_pausing_rings_when_it_is_over(world, queue, job_type, monkeypatch):
	rung = []
	monkeypatch.setattr(bell, "ring", rung.append)
	pauses.pause(pauses.JOB_TYPE, job_type)
	pauses.resume(pauses.JOB_TYPE, job_type)
	frappe.db.commit()
	assert "default" in rung
