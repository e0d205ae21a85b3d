"""A child that is submitted while its parent ends: neither has seen the other, and it runs all the same."""

import time

import frappe

from dartwing_jobs import clock, submit
from dartwing_jobs.engine import completions, database, outcomes
from dartwing_jobs.testing import start_job
from dartwing_jobs.tests.processes import beside
from dartwing_jobs.tests.world import REPEATABLE, stored_status

PATIENCE_SECONDS = 20


def submit_child(organization: str, parent: str) -> str:
	child = submit(REPEATABLE, None, organization, depends_on=parent).name
	frappe.db.commit()
	return child


def is_there(parent: str) -> bool:
	with database.beside():
		return bool(frappe.db.exists("Background Job", {"depends_on": parent}))


def wait_for_child_of(parent: str) -> None:
	until = time.monotonic() + PATIENCE_SECONDS
	while not is_there(parent):
		assert time.monotonic() < until
		time.sleep(0.01)


def test_it_is_not_forgotten(world):
	parent = submit(REPEATABLE, None, world.a).name
	frappe.db.commit()
	attempt = start_job(parent)
	completions.record([outcomes.completion(attempt, None, clock.now())])  # nobody waits for it yet
	with beside(submit_child, (world.a, parent)) as results:
		wait_for_child_of(parent)
		frappe.db.commit()
		(child,) = results.get(PATIENCE_SECONDS)
	frappe.db.rollback()
	assert (stored_status(parent), stored_status(child)) == ("Completed", "Queued")


def test_whoever_submits_it_does_not_wait_long_for_a_parent_that_somebody_holds(world):
	parent = submit(REPEATABLE, None, world.a).name
	frappe.db.commit()
	database.lock_row("Background Job", parent, 1)
	with beside(submit_child, (world.a, parent)) as results:
		(child,) = results.get(PATIENCE_SECONDS)
	frappe.db.rollback()
	assert stored_status(child) == "Pending"
