"""Groups: made as one, in order or side by side, settled once, called back, canceled as one."""

import frappe
import pytest

from dartwing_jobs import group, group_status
from dartwing_jobs.engine import drain
from dartwing_jobs.testing import run_job
from dartwing_jobs.tests.world import make_job_type, make_queue, stored_status, story

GOOD = "dartwing_jobs.samples.execute_sample_job"
BAD = "dartwing_jobs.samples.fail_for_good"


@pytest.fixture
def queue():
	return make_queue()


@pytest.fixture
def made(world, queue):
	"""Makes a committed group whose members do what they are told: "good" or "bad"."""
	types = {"good": make_job_type(handler_method=GOOD), "bad": make_job_type(handler_method=BAD)}

	def making(*members: str, **options):
		jobs = [{"job_type": types[one].name, "job_queue": queue} for one in members]
		new = group("a group", jobs, organization=world.a, **options)
		frappe.db.commit()
		return new

	making.types = types
	return making


def members(new) -> list[str]:
	return frappe.get_all(
		"Background Job", filters={"job_group": new.name}, order_by="position asc, creation asc", pluck="name"
	)


def statuses(new) -> list[str]:
	frappe.db.rollback()
	return [stored_status(name) for name in members(new)]


def stored(new) -> str:
	frappe.db.rollback()
	return frappe.db.get_value("Job Group", new.name, "status")


def test_a_group_is_made_with_its_members_in_order(world, made):
	new = made("good", "bad", "good")
	fields = ["position", "job_type"]
	rows = frappe.get_all("Background Job", {"job_group": new.name}, fields, order_by="position")
	kinds = [made.types[one].name for one in ("good", "bad", "good")]
	assert [(row.position, row.job_type) for row in rows] == list(zip([1, 2, 3], kinds, strict=True))
	assert (new.status, new.last_position, new.mode) == ("Queued", 3, "Parallel")
	assert statuses(new) == ["Queued"] * 3


def test_a_group_ends_with_its_last_member(made, queue):
	new = made("good", "good")
	first, last = members(new)
	run_job(first)
	assert (stored(new), group_status(new.name)) == ("Running", "Running")
	run_job(last)
	assert (stored(new), group_status(new.name)) == ("Completed", "Completed")
	assert frappe.db.get_value("Job Group", new.name, "ended_at")


def test_members_of_a_sequential_group_run_one_after_another(made, queue):
	new = made("good", "good", "good", mode="Sequential")
	assert statuses(new) == ["Queued", "Pending", "Pending"]
	first, second, third = members(new)
	assert frappe.db.get_value("Background Job", third, "depends_on") == second
	run_job(first)
	assert statuses(new) == ["Completed", "Pending", "Pending"]
	assert drain.drain([queue]) == 2
	assert (statuses(new), stored(new)) == (["Completed"] * 3, "Completed")


def test_a_sequential_group_stops_after_a_failure(made, queue):
	new = made("good", "bad", "good", "good", mode="Sequential")
	drain.drain([queue])
	assert statuses(new) == ["Completed", "Dead Letter", "Canceled", "Canceled"]
	assert stored(new) == "Partial"
	_first, failed, third, last = members(new)
	assert story(last)[-1] == ("Pending", "Canceled", "job.canceled")
	said = frappe.get_last_doc("Job Execution Log", {"background_job": third, "event": "job.canceled"})
	assert said.message == f"{failed} ended as Dead Letter"


def test_a_sequential_group_can_go_on_after_a_failure(made, queue):
	new = made("bad", "good", "good", mode="Sequential", on_failure="Continue")
	drain.drain([queue])
	assert (statuses(new), stored(new)) == (["Dead Letter", "Completed", "Completed"], "Partial")
