"""Children whose parent, or the job that stands for it, was deleted meanwhile: they are settled, in time."""

import frappe
import pytest

from dartwing_jobs import submit
from dartwing_jobs.engine import database, dependents, statements, states, sweep
from dartwing_jobs.testing import run_job
from dartwing_jobs.tests.world import REPEATABLE, make_job, make_queue, plant, stored_status

RUN_ANYWAY = {"on_parent_failure": "Run Anyway"}


def delete(job_name: str) -> None:
	"""As a program does that asks no rule, or as retention does at the same moment."""
	statements.execute("delete from `tabBackground Job` where name = %s", (job_name,))


@pytest.fixture
def family(world):
	"""A parent that waits, its child, and the child of that."""
	parent = submit(REPEATABLE, None, world.a).name
	child = submit(REPEATABLE, None, world.a, depends_on=parent).name
	grandchild = submit(REPEATABLE, None, world.a, depends_on=child).name
	frappe.db.commit()
	return parent, child, grandchild


def why_canceled(job_name: str) -> str:
	of_child = {"background_job": job_name, "to_status": states.CANCELED}
	return frappe.db.get_value("Job Execution Log", of_child, "message")


def statuses_after_a_sweep(*names: str) -> list[str]:
	frappe.db.commit()
	sweep.sweep()
	frappe.db.rollback()
	return [stored_status(name) for name in names]


def test_children_of_a_deleted_parent_are_canceled(family):
	parent, child, grandchild = family
	delete(parent)
	assert statuses_after_a_sweep(child, grandchild) == ["Canceled", "Canceled"]
	assert why_canceled(child) == f"{parent} was deleted"


def test_a_child_that_runs_anyway_runs_after_a_deleted_parent(world):
	parent = submit(REPEATABLE, None, world.a).name
	child = submit(REPEATABLE, None, world.a, depends_on=parent, **RUN_ANYWAY).name
	frappe.db.commit()
	delete(parent)
	assert statuses_after_a_sweep(child) == ["Queued"]


def test_a_parent_that_is_deleted_while_its_child_is_submitted(world):
	parent = make_job(world.a, "Completed").name
	frappe.db.commit()
	child = submit(REPEATABLE, None, world.a, depends_on=parent).name
	with database.beside():
		delete(parent)
		frappe.db.commit()
	frappe.db.commit()
	frappe.db.rollback()
	assert stored_status(child) == "Canceled"


@pytest.mark.parametrize("status", sorted(states.REPLACEABLE))
def test_a_child_of_a_failed_job_whose_successor_was_deleted(world, status):
	parent = make_job(world.a).name
	child = submit(REPEATABLE, None, world.a, depends_on=parent).name
	anyway = submit(REPEATABLE, None, world.a, depends_on=parent, **RUN_ANYWAY).name
	plant(parent, status=status, run_at=None)
	assert statuses_after_a_sweep(child, anyway) == ["Canceled", "Queued"]


def test_a_child_of_a_failed_job_waits_for_its_successor(world):
	parent = make_job(world.a).name
	child = submit(REPEATABLE, None, world.a, depends_on=parent).name
	plant(parent, status="Failed", run_at=None)
	successor = make_job(world.a).name
	plant(successor, retry_of=parent)
	assert statuses_after_a_sweep(child) == ["Pending"]
	assert frappe.db.get_value("Background Job", child, "depends_on") == successor


def test_children_of_parents_that_have_yet_to_end_are_left_alone(family):
	_parent, child, grandchild = family
	assert statuses_after_a_sweep(child, grandchild) == ["Pending", "Pending"]


def test_a_child_that_was_released_for_later_is_left_alone(world):
	parent = make_job(world.a, "Completed").name
	child = make_job(world.a, depends_on=parent).name
	plant(child, run_at="2099-01-01")
	frappe.db.commit()
	assert parent not in dependents.left_behind()


# names that were stored as they were typed, before they were stored as the database has them


@pytest.fixture
def typed(world):
	"""A parent that waits, and a child that names it in small letters: another name on PostgreSQL."""
	parent = submit(REPEATABLE, {"steps": 0}, world.a, job_queue=make_queue()).name
	child = submit(REPEATABLE, None, world.a, depends_on=parent).name
	plant(child, depends_on=parent.lower())
	frappe.db.commit()
	return parent, child


def on_mariadb(there: str, elsewhere: str) -> str:
	return there if frappe.db.db_type == "mariadb" else elsewhere


def test_a_parent_in_other_letters_is_not_taken_for_a_deleted_one(typed):
	parent, child = typed
	assert statuses_after_a_sweep(child) == [on_mariadb("Pending", "Canceled")]
	run_job(parent)
	assert stored_status(child) == on_mariadb("Queued", "Canceled")


def test_a_parent_in_other_letters_releases_its_child(typed):
	parent, child = typed
	assert run_job(parent).status == "Completed"
	assert stored_status(child) == on_mariadb("Queued", "Pending")


def test_a_look_is_bounded_and_each_has_its_turn(world, monkeypatch):
	"""However many wait, a look reads so many rows, and goes on where the last one ended."""
	monkeypatch.setattr(dependents, "PAGE", 2)
	monkeypatch.setattr(dependents, "PAGES", 2)
	parents = [make_job(world.a).name for _number in range(12)]
	for parent in parents:
		make_job(world.a, depends_on=parent)
	frappe.db.commit()
	for parent in parents:
		delete(parent)
	frappe.db.commit()
	looks = [set(dependents.left_behind()) for _look in range(200)]
	assert max(len(look) for look in looks) <= 4
	assert set(parents) <= set.union(*looks)
