"""All 72 moves through every door: jobs are born Pending, and only the engine moves them, along the table."""

import itertools

import frappe
import pytest

from dartwing_jobs.engine import states, transitions
from dartwing_jobs.tests import doors
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.world import REPEATABLE, make_job, stored_status, story

PEOPLE = ["manager", "admin_a"]
ALL_PAIRS = list(itertools.product(states.ALL, states.ALL))


@pytest.fixture(scope="module")
def browsers(world):
	return {person: Browser(getattr(world, person)) for person in PEOPLE}


def test_there_are_72_moves():
	assert len(states.ALL) + len(ALL_PAIRS) == 72


@pytest.mark.parametrize("person", PEOPLE)
@pytest.mark.parametrize("door", doors.EDIT_DOORS, ids=lambda door: door.__name__)
def test_no_door_moves_a_job(world, browsers, door, person):
	jobs = [(make_job(world.a, status=before).name, before, after) for before, after in ALL_PAIRS]
	frappe.db.commit()
	door(browsers[person], "status", [(name, after) for name, _before, after in jobs])
	frappe.db.rollback()
	moved = [(before, stored_status(name)) for name, before, _after in jobs if stored_status(name) != before]
	assert moved == []
	assert all(len(story(name)) == 1 for name, _before, _after in jobs)


@pytest.mark.parametrize("person", PEOPLE)
@pytest.mark.parametrize("door", doors.EDIT_DOORS, ids=lambda door: door.__name__)
def test_every_door_is_open_for_what_may_be_edited(world, browsers, door, person):
	"""Without this, a door that is broken would look like a door that is shut."""
	job = make_job(world.a)
	frappe.db.commit()
	door(browsers[person], "priority", [(job.name, "High")])
	frappe.db.rollback()
	assert frappe.db.get_value("Background Job", job.name, "priority") == "High"


@pytest.mark.parametrize("person", PEOPLE)
@pytest.mark.parametrize("door", doors.CREATE_DOORS, ids=lambda door: door.__name__)
def test_jobs_are_born_pending(world, browsers, door, person):
	mark = frappe.generate_hash(length=12)
	new = {"job_type": REPEATABLE, "organization": world.a, "request_id": mark}
	door(browsers[person], [{**new, "status": status} for status in states.ALL])
	frappe.db.rollback()
	born = frappe.get_all("Background Job", filters={"request_id": mark}, fields=["name", "status", "owner"])
	assert [job.status for job in born] == [states.PENDING]
	assert born[0].owner == getattr(world, person)
	assert story(born[0].name) == [(None, states.PENDING, "job.created")]


@pytest.mark.parametrize(("before", "after"), ALL_PAIRS)
def test_the_engine_moves_along_the_table_only(world, before, after):
	job = make_job(world.a, status=before)
	if (before, after) in states.TRANSITIONS:
		assert transitions.move(job, after)
		assert stored_status(job.name) == after
		assert story(job.name)[-1] == (before, after, states.TRANSITIONS[before, after].event)
	else:
		with pytest.raises(states.IllegalMove):
			transitions.move(job, after)
		assert stored_status(job.name) == before
		assert len(story(job.name)) == 1
