"""Work that fails is set aside: it is logged once, counted, tried again later, and never stops the rest."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import frappe
import pytest

from dartwing_jobs import clock, submit
from dartwing_jobs.engine import database, drain, promote, retention, statements, sweep, troubles
from dartwing_jobs.engine.schedules import schedules
from dartwing_jobs.testing import lose_worker, run_all_due, start_job
from dartwing_jobs.tests.scheduling import MINUTE, NOON, fires_of, forget_all, make_schedule, tick
from dartwing_jobs.tests.world import (
	REPEATABLE,
	make_job,
	make_job_type,
	make_queue,
	plant,
	planted,
	stored_status,
)

REFUSED = "this row cannot be changed"


@contextmanager
def refusing_to_change(
	job: str, table: str = "Background Job", column: str = "name", event: str | None = None
) -> Iterator[None]:
	"""The database itself refuses a job's row, as a damaged one or another program's trigger would."""
	frappe.db.commit()
	event = event or ("update" if column == "name" else "insert")
	for statement in _trigger(job, table, column, event):
		frappe.db.sql_ddl(statement)
	frappe.db.commit()
	try:
		yield
	finally:
		frappe.db.rollback()
		on_table = f' on "tab{table}"' if frappe.db.db_type == "postgres" else ""
		frappe.db.sql_ddl(f"drop trigger refuse_it{on_table}")
		frappe.db.commit()


def _trigger(job: str, table: str, column: str, event: str) -> list[str]:
	row = "old" if event == "delete" else "new"
	if frappe.db.db_type == "mariadb":
		return [
			f"""create trigger refuse_it before {event} on `tab{table}` for each row
			begin if {row}.{column} = '{job}' then
			signal sqlstate '45000' set message_text = '{REFUSED}'; end if; end"""
		]
	return [
		f"""create or replace function refuse_it() returns trigger language plpgsql as $$
		begin if {row}.{column} = '{job}' then raise exception '{REFUSED}'; end if; return {row}; end $$""",
		f'create trigger refuse_it before {event} on "tab{table}" for each row execute function refuse_it()',
	]


@pytest.fixture
def queue(world) -> Iterator[str]:
	_forget()
	yield make_queue()
	_forget()


def test_a_job_that_cannot_be_taken_back_does_not_stop_the_others(world, queue):
	stuck, other = _lost_jobs(world, queue, 2)
	waiting = _submit(world, queue)
	with refusing_to_change(stuck):
		assert sweep.reap_expired() == 1
		assert drain.drain([queue]) >= 1
		sweep.sweep()
		assert stored_status(waiting) == "Completed"
		assert stored_status(stuck) == "Running"
		assert stored_status(other) != "Running"
		assert stuck not in [row.name for row in sweep.expired_leases()]


def test_what_is_set_aside_is_logged_once_counted_and_tried_again_later(world, queue):
	(stuck,) = _lost_jobs(world, queue, 1)
	counted = _counted()
	with refusing_to_change(stuck):
		sweep.reap_expired()
		sweep.reap_expired()
		assert _trouble(stuck).failures == 1, "it was tried again without a pause"
		first = _pause(stuck)
		_let_pause_pass(stuck)
		sweep.reap_expired()
		assert _trouble(stuck).failures == 2
		assert REFUSED in _trouble(stuck).error_message
		assert _pause(stuck) > first * 2
	assert frappe.db.count("Error Log", {"method": ["like", f"%{stuck}%"]}) == 1
	assert _counted() - counted == 2
	assert troubles.by_duty() == {sweep.REAP: 1}
	_let_pause_pass(stuck)
	assert sweep.reap_expired() == 1
	assert stored_status(stuck) == "Queued"


def test_pauses_grow_up_to_an_hour():
	pauses = [troubles.pause_after(failures) for failures in range(1, 40)]
	assert pauses[0] == 5
	assert pauses == sorted(pauses)
	assert pauses[-1] == 3600


def test_a_trouble_that_does_not_come_back_is_forgotten(queue):
	troubles.note("reap", "JOB-1", ValueError("once"))
	troubles.note("reap", "JOB-2", ValueError("still"))
	long_ago = database.utc_now() - timedelta(seconds=troubles.FORGOTTEN_SECONDS + 1)
	statements.execute("update `tabJob Trouble` set next_try_at = %s where about = %s", (long_ago, "JOB-1"))
	frappe.db.commit()
	troubles.forget_settled()
	assert frappe.get_all("Job Trouble", pluck="about") == ["JOB-2"]


def test_secrets_of_an_error_are_masked(queue):
	error = ValueError("https://me:hunter2secret@example.com/")
	troubles.note("reap", "JOB-1", error)
	assert "hunter2secret" not in _trouble("JOB-1").error_message
	logged = frappe.get_all("Error Log", filters={"method": "reap JOB-1: set aside"}, pluck="error")
	assert logged and not any("hunter2secret" in text for text in logged)


def test_a_duty_that_fails_does_not_stop_the_others(queue):
	done = []

	def broken():
		raise ValueError("a fault of ours")

	def working(what):
		done.append(what)

	duties = troubles.Duties()
	assert duties.do(broken) is None
	duties.do(working, "the next one")
	assert done == ["the next one"]
	assert troubles.Duties().set_aside == {f"{__name__.removeprefix('dartwing_jobs.')}.broken"}
	assert troubles.Duties().do(broken) is None
	assert frappe.get_all("Job Trouble", pluck="failures") == [1]


def test_a_job_whose_run_is_gone_is_taken_back(world, queue):
	(job,) = _lost_jobs(world, queue, 1)
	frappe.db.delete("Job Run", {"background_job": job})
	frappe.db.commit()
	assert sweep.reap_expired() == 1
	assert stored_status(job) == "Queued"
	runs = frappe.get_all("Job Run", {"background_job": job}, ["status", "attempt", "error_message"])
	assert [(run.status, run.attempt) for run in runs] == [("Failed", 1)]


def test_a_column_of_json_that_is_not_ours_is_taken_over_by_the_next_job(world, queue):
	"""On PostgreSQL it comes as an object, which no driver writes."""
	job_type = make_job_type(retry_mode="New Job").name
	with a_column_of_json("custom_meta"):
		job = submit(job_type, None, world.a, job_queue=queue).name
		statements.execute(
			"update `tabBackground Job` set custom_meta = %s where name = %s", ('{"a": [1]}', job)
		)
		frappe.db.commit()
		start_job(job)
		lose_worker(job)
		assert sweep.reap_expired() == 1
		(taken,) = statements.fetch("select custom_meta from `tabBackground Job` where retry_of = %s", (job,))
		assert frappe.parse_json(taken.custom_meta) == {"a": [1]}


@contextmanager
def a_column_of_json(column: str) -> Iterator[None]:
	frappe.db.sql_ddl(f"alter table `tabBackground Job` add column {column} json")
	try:
		yield
	finally:
		frappe.db.rollback()
		frappe.db.sql_ddl(f"alter table `tabBackground Job` drop column {column}")


def test_a_job_that_cannot_be_put_in_line_does_not_stop_the_others(world, queue):
	stuck, other = (_submit(world, queue, scheduled_for="2099-01-01 00:00:00") for _ in range(2))
	statements.execute("update `tabBackground Job` set run_at = '2020-01-01' where job_queue = %s", (queue,))
	planted.update([stuck, other])
	with refusing_to_change(stuck):
		assert promote.promote_due([queue]) == 1
		assert promote.promote_due([queue]) == 0
		assert stored_status(other) == "Queued"
		assert _trouble(stuck).failures == 1
	_let_pause_pass(stuck)
	assert promote.promote_due([queue]) == 1


def test_a_job_that_cannot_be_started_does_not_stop_the_others(world, queue):
	stuck, other = _submit(world, queue), _submit(world, queue)
	with refusing_to_change(stuck, "Job Run", "background_job"):
		run_all_due(queue)
		assert stored_status(other) == "Completed"
		row = frappe.db.get_value("Background Job", stuck, ["status", "attempt", "held_reason"], as_dict=True)
		assert (row.status, row.attempt) == ("Queued", 0)
		assert REFUSED in row.held_reason
	_let_pause_pass(stuck)
	statements.execute("update `tabBackground Job` set run_at = utc_timestamp(6) where name = %s", (stuck,))
	frappe.db.commit()
	assert run_all_due(queue) == 1
	assert stored_status(stuck) == "Completed"


def test_a_schedule_that_cannot_be_moved_on_does_not_stop_the_others(world, queue):
	stuck, other = (make_schedule(world.a, NOON + late * MINUTE).name for late in range(2))
	counted = _counted()
	try:
		with refusing_to_change(stuck, "Job Schedule"):
			tick(NOON + 2 * MINUTE)
			tick(NOON + 2 * MINUTE)
			assert fires_of(other) == [(NOON + MINUTE, "Fired")]
			assert fires_of(stuck) == []
			assert _trouble(stuck).failures == 1, "it was tried again without a pause"
		assert frappe.db.count("Error Log", {"method": ["like", f"%{stuck}%"]}) == 1
		assert _counted() - counted == 1
		_let_pause_pass(stuck)
		tick(NOON + 2 * MINUTE)
		assert fires_of(stuck) == [(NOON, "Fired")]
	finally:
		forget_all()


def test_a_schedule_that_is_set_aside_keeps_no_worker_awake(world, queue):
	stuck = make_schedule(world.a).name
	try:
		with refusing_to_change(stuck, "Job Schedule"):
			tick(NOON + MINUTE)
			assert schedules.next_due() is None or schedules.next_due() > NOON
	finally:
		forget_all()


def test_a_held_job_that_cannot_be_put_back_does_not_stop_the_others(world, queue):
	job_type = make_job_type(paused=1)
	stuck, other = (submit(job_type.name, {"steps": 0}, world.a, job_queue=queue).name for _ in range(2))
	run_all_due(queue)
	job_type.reload().update({"paused": 0}).save()
	with refusing_to_change(stuck):
		run_all_due(queue)
		assert stored_status(other) == "Completed"
		assert stored_status(stuck) == "Queued"
		assert _trouble(stuck).failures == 1
	_let_pause_pass(stuck)
	run_all_due(queue)
	assert stored_status(stuck) == "Completed"


def test_a_job_that_cannot_be_deleted_does_not_stop_retention(world, queue):
	job_type = make_job_type().name
	now = clock.now()
	stuck, other = (make_job(world.a, "Completed", job_type=job_type).name for _ in range(2))
	for name, days in ((stuck, 401), (other, 400)):
		plant(name, modified=now - timedelta(days=days))
	with refusing_to_change(stuck, event="delete"):
		assert retention.delete_expired_jobs(now) >= 1
		assert retention.delete_expired_jobs(now) == 0
		assert [bool(frappe.db.exists("Background Job", name)) for name in (stuck, other)] == [True, False]
		assert _trouble(stuck).failures == 1
	_let_pause_pass(stuck)
	assert retention.delete_expired_jobs(now) == 1


def test_a_part_of_retention_that_fails_does_not_stop_the_others(world, queue, monkeypatch):
	def delete_nothing(*_given) -> int:
		raise ValueError("a fault of ours")

	monkeypatch.setattr(retention, "delete_expired_jobs", delete_nothing)
	assert set(retention.clean_up()) == {"jobs", "groups", "keys", "fires"}
	assert frappe.get_all("Job Trouble", pluck="failures") == [1]


def test_a_child_that_cannot_be_released_does_not_undo_its_parent(world, queue):
	"""The end of a parent is written together with what follows for its children."""
	parent = _submit(world, queue)
	stuck, other = (_submit(world, queue, depends_on=parent) for _ in range(2))
	with refusing_to_change(stuck):
		run_all_due(queue)
		assert stored_status(parent) == "Completed"
		sweep.sweep()
		assert stored_status(stuck) == "Pending"
	frappe.db.delete("Job Trouble")
	frappe.db.commit()
	sweep.sweep()
	run_all_due(queue)
	assert [stored_status(name) for name in (stuck, other)] == ["Completed"] * 2


def _submit(world, queue: str, **options) -> str:
	job = submit(REPEATABLE, {"steps": 0}, world.a, job_queue=queue, **options).name
	frappe.db.commit()
	return job


def _lost_jobs(world, queue: str, count: int) -> list[str]:
	names = [_submit(world, queue) for _ in range(count)]
	for name in names:
		start_job(name)
		lose_worker(name)
	return names


def _trouble(about: str):
	(row,) = frappe.get_all("Job Trouble", {"about": about}, ["*"])
	return row


def _pause(about: str) -> float:
	return (_trouble(about).next_try_at - database.utc_now()).total_seconds()


def _let_pause_pass(about: str) -> None:
	statements.execute("update `tabJob Trouble` set next_try_at = '2020-01-01' where about = %s", (about,))
	frappe.db.commit()


def _counted() -> float:
	rows = frappe.get_all("Job Metric", {"metric": troubles.TROUBLES}, pluck="value")
	return sum(map(float, rows))


def _forget() -> None:
	frappe.db.rollback()
	frappe.db.delete("Job Trouble")
	frappe.db.commit()
