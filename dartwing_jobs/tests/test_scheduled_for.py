"""scheduled_for: refused where a type may not be scheduled, and an instant wherever clocks are changed."""

from collections.abc import Callable, Iterator
from datetime import datetime

import frappe
import pytest

from dartwing_jobs import group, submit, submit_many, testing
from dartwing_jobs.api import jobs as api
from dartwing_jobs.engine import control, database, successors
from dartwing_jobs.engine.intake import templates
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.world import (
	REPEATABLE,
	make_job,
	make_job_type,
	make_queue,
	make_template,
	new_job,
	set_site_zone,
)

NEW_YORK, KIRITIMATI, PAGO_PAGO = "America/New_York", "Pacific/Kiritimati", "Pacific/Pago_Pago"
# half past one of a night in which clocks go back at two
FIRST, SECOND = "2099-11-01T01:30:00-04:00", "2099-11-01T01:30:00-05:00"
INSTANTS = {FIRST: datetime(2099, 11, 1, 5, 30), SECOND: datetime(2099, 11, 1, 6, 30)}
LATER = "2099-01-01 00:00:00"
REFUSED = "may not be scheduled"


@pytest.fixture
def unschedulable():
	name = make_job_type(category="Planning").name
	assert not frappe.db.get_value("Job Type", name, "allow_schedule")
	return name


@pytest.fixture
def move_to(site) -> Iterator[Callable[[str], None]]:
	"""Changes the site's time zone, as an administrator does."""
	zone = frappe.db.get_single_value("System Settings", "time_zone")

	def move(to: str) -> None:
		set_site_zone(to)
		assert frappe.utils.get_system_timezone() == to

	yield move
	frappe.db.rollback()
	set_site_zone(zone)


def due(job_name: str) -> datetime:
	return frappe.db.get_value("Background Job", job_name, "run_at")


def told(job_name: str) -> str:
	return api.status(job_name)["scheduled_for"]


# where it is refused


DOORS = {
	"submit": lambda organization, job_type: submit(job_type, {}, organization, scheduled_for=LATER),
	"submit in the past": lambda organization, job_type: submit(
		job_type, {}, organization, scheduled_for="2020-01-01 00:00:00"
	),
	"submit_many": lambda organization, job_type: submit_many(
		job_type, [{}] * 2, organization, scheduled_for=LATER
	),
	"document": lambda organization, job_type: new_job(
		organization, job_type=job_type, scheduled_for=LATER
	).insert(),
	"group": lambda organization, job_type: group(
		"g", [{"job_type": job_type, "scheduled_for": LATER}], organization=organization
	),
	"template": lambda organization, job_type: templates.submit_from_template(
		make_template(organization, job_type=job_type).name, {}, organization, scheduled_for=LATER
	),
	"save": lambda organization, job_type: (
		make_job(organization, job_type=job_type).update({"scheduled_for": LATER}).save()
	),
	"db_set": lambda organization, job_type: make_job(organization, job_type=job_type).db_set(
		"scheduled_for", LATER
	),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_type_that_may_not_be_scheduled_takes_no_time(world, unschedulable, door):
	with pytest.raises(InvalidJobError, match=REFUSED):
		DOORS[door](world.a, unschedulable)


@pytest.mark.parametrize("door", DOORS)
def test_the_same_doors_are_open_for_a_type_that_may(world, door):
	DOORS[door](world.a, REPEATABLE)


def test_over_http_it_is_a_417(world, unschedulable):
	frappe.db.commit()
	asked = {"job_type": unschedulable, "organization": world.a, "scheduled_for": "2099-01-01T00:00:00Z"}
	refused = Browser(world.user_a).call("dartwing_jobs.api.jobs.submit", **asked)
	assert (refused.status_code, REFUSED in refused.get_data(as_text=True)) == (417, True)


def test_an_administrator_may_allow_it(world, unschedulable):
	frappe.get_doc("Job Type", unschedulable).update({"allow_schedule": 1}).save()
	assert submit(unschedulable, {}, world.a, scheduled_for=LATER).status == "Pending"


def test_what_was_granted_before_stays_and_can_be_edited(world):
	job_type = make_job_type(allow_schedule=1)
	job = submit(job_type.name, {}, world.a, scheduled_for=LATER)
	job_type.update({"allow_schedule": 0}).save()
	job = frappe.get_doc("Background Job", job.name)
	job.update({"priority": "High"}).save()
	job.update({"scheduled_for": None}).save()
	assert due(job.name) <= database.utc_now()


# the hour that comes twice


@pytest.mark.parametrize("given", [FIRST, SECOND])
@pytest.mark.parametrize("door", ["submit", "document"])
def test_a_time_in_the_repeated_hour_is_the_one_that_was_asked_for(world, move_to, given, door):
	move_to(NEW_YORK)
	make = submit if door == "submit" else None
	job = (
		make(REPEATABLE, {}, world.a, scheduled_for=given) if make else make_job(world.a, scheduled_for=given)
	)
	assert due(job.name) == INSTANTS[given]
	assert told(job.name) == given


@pytest.mark.parametrize("given", [FIRST, SECOND])
def test_an_edit_of_something_else_does_not_move_it(world, move_to, given):
	move_to(NEW_YORK)
	name = submit(REPEATABLE, {}, world.a, scheduled_for=given).name
	job = frappe.get_doc("Background Job", name)
	job.update({"priority": "High", "scheduled_for": str(job.scheduled_for)}).save()  # as forms send it
	assert (due(name), told(name)) == (INSTANTS[given], given)
	job.db_set("priority", "Low")
	assert (due(name), told(name)) == (INSTANTS[given], given)


@pytest.mark.parametrize(("before", "after"), [(FIRST, SECOND), (SECOND, FIRST)])
@pytest.mark.parametrize("door", ["save", "db_set"])
def test_it_can_be_moved_from_one_to_the_other(world, move_to, before, after, door):
	move_to(NEW_YORK)
	name = submit(REPEATABLE, {}, world.a, scheduled_for=before).name
	job = frappe.get_doc("Background Job", name)
	if door == "save":
		job.update({"scheduled_for": after}).save()
	else:
		job.db_set("scheduled_for", after)
	assert (due(name), told(name)) == (INSTANTS[after], after)


@pytest.mark.parametrize("children", [1, 2])
def test_children_wait_for_the_right_one(world, move_to, children):
	move_to(NEW_YORK)
	queue = make_queue()
	parent = submit(REPEATABLE, {"steps": 0}, world.a, job_queue=queue).name
	names = submit_many(
		REPEATABLE, [{}] * children, world.a, job_queue=queue, depends_on=parent, scheduled_for=SECOND
	)
	assert testing.run_all_due(queue) == 1
	assert [due(name) for name in names] == [INSTANTS[SECOND]] * children


def test_a_window_tells_the_two_apart(world, move_to):
	move_to(NEW_YORK)
	windowed = make_job_type(deduplication_window=300).name
	first, second, again = (
		submit(windowed, {}, world.a, scheduled_for=given) for given in (FIRST, SECOND, SECOND)
	)
	assert first.name != second.name == again.name


# a change of the site's zone


def test_it_keeps_its_instant_when_the_zone_of_the_site_changes(world, move_to):
	move_to(KIRITIMATI)
	queue, given = make_queue(), "2099-06-01T12:00:00+00:00"
	instant = datetime(2099, 6, 1, 12)
	parent = submit(REPEATABLE, {"steps": 0}, world.a, job_queue=queue).name
	child = submit(REPEATABLE, {}, world.a, job_queue=queue, depends_on=parent, scheduled_for=given).name
	edited = submit(REPEATABLE, {}, world.a, job_queue=queue, scheduled_for=given).name
	move_to(PAGO_PAGO)
	assert testing.run_all_due(queue) == 1
	job = frappe.get_doc("Background Job", edited)
	assert job.scheduled_for == datetime(2099, 6, 1, 1)
	job.update({"priority": "High"}).save()
	assert [due(name) for name in (child, edited)] == [instant] * 2
	assert [told(name) for name in (child, edited)] == ["2099-06-01T01:00:00-11:00"] * 2


def test_lists_keep_their_order_when_the_zone_of_the_site_changes(world, move_to):
	move_to(KIRITIMATI)
	job_type = make_job_type().name
	names = [submit(job_type, {}, world.a).name, make_job(world.a, job_type=job_type).name]
	move_to(PAGO_PAGO)
	names += [submit(job_type, {}, world.a).name, make_job(world.a, job_type=job_type).name]
	seen, after = [], None
	while after or not seen:
		page = api.list_jobs(job_type=job_type, limit=1, after=after)
		seen, after = [*seen, *(job["name"] for job in page["jobs"])], page["next"]
	assert seen == names[::-1]


def test_a_chain_keeps_its_order_too(world, move_to):
	move_to(KIRITIMATI)
	fields = {"handler_method": "dartwing_jobs.samples.fail_for_good", "job_queue": make_queue()}
	first = submit(make_job_type(**fields).name, {}, world.a).name
	testing.run_job(first)
	move_to(PAGO_PAGO)
	again = control.retry(first).name
	assert [job.name for job in successors.chain(again)] == [first, again]
