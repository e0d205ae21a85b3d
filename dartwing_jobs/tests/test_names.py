"""Names are stored as the database has them, and what does not exist is refused. Keys differ by any byte."""

import frappe
import pytest

from dartwing_jobs import group, schedule, submit, submit_many
from dartwing_jobs.dartwing_jobs.doctype.background_job import background_job
from dartwing_jobs.engine import statements, states
from dartwing_jobs.engine.intake.templates import submit_from_template
from dartwing_jobs.errors import SubmitConflict
from dartwing_jobs.testing import run_job
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.world import (
	REPEATABLE,
	make_job_type,
	make_organization,
	make_queue,
	make_template,
	new_job,
	stored_status,
)

MISSING = "no such thing"
# what a database without capitals, accents and spaces at the end takes for the same
LOOK_ALIKES = [("key", "KEY"), ("key", "key "), ("resume", "résumé")]
# what a digest of moments takes for the same
SAME_MOMENT = ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00")


def insert_with_links_ignored(job_type: str, parameters, organization: str, **options):
	job = new_job(organization, job_type=job_type, **options)
	return job.insert(ignore_links=True)


def insert(job_type: str, parameters, organization: str, **options):
	return new_job(organization, job_type=job_type, **options).insert()


def one_of_many(job_type: str, parameters, organization: str, **options):
	(name,) = submit_many(job_type, [parameters], organization, **options)
	return frappe.get_doc("Background Job", name)


def member_of_a_group(job_type: str, parameters, organization: str, **options):
	made = group("members", [{"job_type": job_type, **options}], organization=organization)
	return frappe.get_doc("Background Job", {"job_group": made.name})


def from_template(job_type: str, parameters, organization: str, **options):
	template = make_template(organization, job_type=job_type)
	return submit_from_template(template.name, None, organization, **options)


DOORS = [submit, one_of_many, insert, insert_with_links_ignored, member_of_a_group, from_template]
EVERY_DOOR = pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
THREE_DOORS = pytest.mark.parametrize(
	"door", [submit, one_of_many, insert_with_links_ignored], ids=lambda door: door.__name__
)
LINKS = ["depends_on", "job_queue", "job_group", "job_template", "retry_of", "owner_user"]


def of(world) -> dict[str, str]:
	"""Something of each kind that a job may name."""
	return {
		"depends_on": submit(REPEATABLE, None, world.a).name,
		"job_queue": make_queue(),
		"job_group": group("named", [{"job_type": REPEATABLE}], organization=world.a).name,
		"job_template": make_template(world.a).name,
		"retry_of": submit(REPEATABLE, None, world.a).name,
		"owner_user": world.user_a,
	}


@EVERY_DOOR
def test_a_queue_that_does_not_exist_is_refused(world, door):
	with pytest.raises(frappe.ValidationError):
		door(REPEATABLE, None, world.a, job_queue=MISSING)


@THREE_DOORS
@pytest.mark.parametrize("field", ["depends_on", "job_group", "job_template", "retry_of", "job_schedule"])
def test_what_does_not_exist_is_refused(world, door, field):
	with pytest.raises(frappe.ValidationError):
		door(REPEATABLE, None, world.a, **{field: MISSING})


@THREE_DOORS
def test_an_organization_or_a_type_that_does_not_exist_is_refused(world, door):
	with pytest.raises(frappe.ValidationError):
		door(REPEATABLE, None, MISSING)
	with pytest.raises(frappe.ValidationError):
		door(MISSING, None, world.a)


def test_a_request_that_names_a_missing_queue_gets_no_job(world):
	frappe.db.commit()
	arguments = {"job_type": REPEATABLE, "organization": world.a, "job_queue": "q:defualt"}
	answer = Browser(world.user_a).call("dartwing_jobs.api.jobs.submit", **arguments)
	assert answer.status_code == 417
	assert "q:defualt was not found" in answer.get_data(as_text=True)
	frappe.db.rollback()
	assert not frappe.db.exists("Background Job", {"job_queue": "q:defualt"})


def test_a_queue_that_was_deleted_by_another_process_is_refused(world):
	"""What a process remembers of queues is some seconds old."""
	queue = make_queue()
	submit(REPEATABLE, None, world.a, job_queue=queue)
	statements.execute("delete from `tabJob Queue` where name = %s", (queue,))
	with pytest.raises(frappe.ValidationError):
		submit(REPEATABLE, None, world.a, job_queue=queue)


@EVERY_DOOR
def test_a_queue_is_stored_as_the_database_has_it(world, door):
	queue = make_queue()
	job = taken_or_refused(lambda: door(REPEATABLE, None, world.a, job_queue=queue.upper()))
	assert job is None or stored(job).job_queue == queue


@THREE_DOORS
@pytest.mark.parametrize("field", LINKS)
def test_links_are_stored_as_the_database_has_them(world, door, field):
	name = of(world)[field]
	job = taken_or_refused(lambda: door(REPEATABLE, None, world.a, **{field: name.swapcase()}))
	assert job is None or stored(job)[field] == name


@THREE_DOORS
def test_type_and_organization_are_stored_as_the_database_has_them(world, door):
	organization = make_organization("Capitals")
	job = taken_or_refused(lambda: door(REPEATABLE.upper(), None, organization.swapcase()))
	assert job is None or (stored(job).job_type, stored(job).organization) == (REPEATABLE, organization)
	assert job is None or stored(job).idempotency_key.startswith(f"{REPEATABLE}:{organization}:")


def test_an_organization_that_changed_its_capitals_is_not_stored_as_it_was(world):
	organization = make_organization("Capitals")
	submit(REPEATABLE, None, organization)
	statements.execute(
		"update `tabOrganization` set name = %s where name = %s", (organization.upper(), organization)
	)
	job = taken_or_refused(lambda: submit(REPEATABLE, None, organization))
	assert job is None
	job = submit(REPEATABLE, None, organization.upper())
	assert stored(job).organization == organization.upper()


def test_a_member_of_an_organization_may_type_its_name_in_other_letters(world):
	frappe.set_user(world.user_a)
	job = taken_or_refused(lambda: submit(REPEATABLE, None, world.a.swapcase()))
	frappe.set_user("Administrator")
	assert job is None or stored(job).organization == world.a


def test_a_stranger_does_not_learn_how_an_organization_is_spelled(world):
	organization = make_organization("Secret")
	frappe.set_user(world.user_a)
	with pytest.raises(frappe.PermissionError) as refusal:
		submit(REPEATABLE, None, organization.upper())
	frappe.set_user("Administrator")
	assert organization not in str(refusal.value)


def test_other_letters_do_not_open_the_queue_for_critical_work(world):
	frappe.set_user(world.user_a)
	with pytest.raises(frappe.ValidationError):
		submit(REPEATABLE, None, world.a, job_queue="Q:CRITICAL")
	frappe.set_user("Administrator")


def test_a_type_that_was_disabled_is_disabled_in_other_letters_too(world):
	job_type = make_job_type()
	taken_or_refused(lambda: submit(job_type.name.upper(), None, world.a))
	job_type.reload().update({"is_enabled": 0}).save()
	with pytest.raises(frappe.ValidationError):
		submit(job_type.name.upper(), None, world.a)


def test_a_parent_in_other_letters_releases_its_child(world):
	parent = submit(REPEATABLE, {"steps": 0}, world.a)
	child = taken_or_refused(lambda: submit(REPEATABLE, None, world.a, depends_on=parent.name.lower()))
	if child is None:
		return
	frappe.db.commit()
	run_job(parent.name)
	assert stored_status(child.name) == states.QUEUED


def test_a_schedule_in_other_letters_is_the_same_schedule(world):
	organization = make_organization("Capitals")
	made = schedule("nightly", "0 3 * * *", job_type=REPEATABLE, organization=organization)
	typed = {"job_type": REPEATABLE.upper(), "organization": organization.upper()}
	again = taken_or_refused(lambda: schedule("nightly", "0 3 * * *", **typed))
	assert again is None or (again.name, again.organization) == (made.name, organization)


@pytest.mark.parametrize("pair", LOOK_ALIKES)
@pytest.mark.parametrize("door", [submit, insert], ids=lambda door: door.__name__)
def test_unique_keys_differ_by_any_byte(world, door, pair):
	organization = make_organization("Keys")
	first, second = (door(REPEATABLE, None, organization, unique_key=key) for key in pair)
	assert first.name != second.name
	for key, job in zip(pair, (first, second), strict=True):
		assert submit(REPEATABLE, None, organization, unique_key=key).name == job.name


@pytest.mark.parametrize("pair", [*LOOK_ALIKES, SAME_MOMENT])
@pytest.mark.parametrize("door", [submit, insert], ids=lambda door: door.__name__)
def test_idempotency_keys_differ_by_any_byte(world, door, pair):
	organization = make_organization("Keys")
	first, second = (door(REPEATABLE, None, organization, idempotency_key=key) for key in pair)
	assert first.name != second.name
	for key, job in zip(pair, (first, second), strict=True):
		assert submit(REPEATABLE, None, organization, idempotency_key=key).name == job.name


@pytest.mark.parametrize("column", ["unique_key", "idempotency_key", "job_hash"])
def test_the_database_compares_keys_byte_by_byte(site, column):
	key = f"key-{frappe.generate_hash()}"
	job = submit("sample_job", None, make_organization("Keys"), unique_key=key, idempotency_key=key)
	stored_key = stored(job)[column]
	assert _jobs_with(column, stored_key) == [job.name]
	assert _jobs_with(column, stored_key.upper()) == []
	assert _jobs_with("unique_key", f"{key} ") == []


def test_keys_are_compared_so_after_a_migration_too(site):
	if frappe.db.db_type == "mariadb":
		statements.execute("alter table `tabBackground Job` modify unique_key varchar(140)")
	background_job.on_doctype_update()
	job = submit(REPEATABLE, None, make_organization("Keys"), unique_key="migrated")
	assert _jobs_with("unique_key", "migrated") == [job.name]
	assert _jobs_with("unique_key", "MIGRATED") == []


def test_nobody_gives_a_job_the_hash_of_another(world):
	job = insert(REPEATABLE, None, world.a, job_hash="given")
	assert not stored(job).job_hash


def taken_or_refused(act):
	"""PostgreSQL knows no such name; MariaDB finds the one that is meant."""
	frappe.db.savepoint("before_the_try")
	try:
		return act()
	except (frappe.ValidationError, frappe.PermissionError, SubmitConflict):
		frappe.db.rollback(save_point="before_the_try")
		return None


def stored(job):
	return frappe.db.get_value("Background Job", job.name, "*", as_dict=True)


def _jobs_with(column: str, value: str) -> list[str]:
	rows = statements.fetch(f"select name from `tabBackground Job` where `{column}` = %s", (value,))
	return [row.name for row in rows]
