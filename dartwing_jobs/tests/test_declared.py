"""Job Types that handlers declare: what a sync makes and updates, and what it leaves alone."""

import json

import frappe
import pytest

from dartwing_jobs import hooks, install, job_handler
from dartwing_jobs.engine.handling import declared, handlers
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.tests import declaring
from dartwing_jobs.tests.world import make_job, make_job_type

MODULE = "dartwing_jobs.tests.declaring"
TYPES = ("test_send_invoice", "test_plain", "test_elsewhere")


@pytest.fixture
def hook(monkeypatch):
	"""Lists paths in a hook, as an app's hooks.py does."""

	def listing(*paths: str) -> None:
		monkeypatch.setattr(hooks, handlers.HOOK, list(paths), raising=False)
		frappe.clear_cache()

	yield listing
	monkeypatch.undo()
	# migrating commits, so what it made does not go away by itself
	frappe.db.rollback()
	frappe.db.delete("Job Type", {"name": ["in", TYPES]})
	frappe.db.commit()
	frappe.clear_cache()


@pytest.fixture
def declare(monkeypatch):
	"""Gives a handler another declaration, as the next version of its app would."""

	def redeclare(handler, **options) -> None:
		monkeypatch.setattr(handler, handlers.MARK, handlers.Declaration(**options))

	return redeclare


def stored(name: str = "test_plain"):
	return frappe.get_doc("Job Type", name)


def edit(name: str = "test_plain", **values) -> None:
	"""What an administrator does in the form."""
	stored(name).update(values).save()


def test_a_missing_type_is_made(hook):
	hook(MODULE)
	assert declared.sync() == ["test_send_invoice", "test_plain"]
	job_type = stored("test_send_invoice")
	assert job_type.handler_method == f"{MODULE}.send_invoice"
	assert (job_type.display_name, job_type.description) == ("Send Invoice", "Sends an invoice by mail.")
	assert (job_type.category, job_type.job_queue) == ("Notification", "q:exports")
	assert (job_type.default_priority, job_type.default_timeout) == ("Critical", 77)
	assert (job_type.retry_mode, job_type.isolation) == ("New Job", "Process")
	assert (job_type.requires_permission, job_type.deduplication_window) == ("User:read", 9)
	assert (job_type.retention_days, json.loads(job_type.parameters_schema)) == (3, declaring.SCHEMA)
	# left open: the category's
	assert (job_type.max_retries, job_type.allow_schedule) == (9, 1)
	assert (stored().display_name, stored().category, stored().max_retries) == ("test_plain", "General", 4)


def test_what_is_listed_is_found_and_nothing_else(hook):
	hook(f"{MODULE}.plain", "dartwing_jobs.tests.more_declaring.elsewhere")
	assert declared.sync() == ["test_plain", "test_elsewhere"]
	assert not frappe.db.exists("Job Type", "test_send_invoice")


def test_handlers_that_declare_nothing_may_be_listed_too(hook):
	hook(
		"dartwing_jobs.samples",
		f"{MODULE}.without_declaration",
		"dartwing_jobs.tests.more_declaring.unmarked",
	)
	assert declared.sync() == []
	assert handlers.resolve("dartwing_jobs.tests.more_declaring.unmarked")


def test_listing_a_module_opens_no_unmarked_function(hook):
	hook("dartwing_jobs.tests.more_declaring")
	with pytest.raises(InvalidJobError, match="is not a job handler"):
		handlers.resolve("dartwing_jobs.tests.more_declaring.unmarked")


def test_a_second_sync_changes_nothing(hook):
	hook(MODULE)
	declared.sync()
	before = stored().modified, stored("test_send_invoice").modified
	assert declared.sync() == []
	assert (stored().modified, stored("test_send_invoice").modified) == before


def test_a_new_declaration_is_taken_over(hook, declare):
	hook(MODULE)
	declared.sync()
	declare(
		declaring.plain, job_type="test_plain", max_retries=7, description="new", schema={"minProperties": 1}
	)
	assert declared.sync() == ["test_plain"]
	assert (stored().max_retries, stored().description) == (7, "new")
	assert json.loads(stored().parameters_schema) == {"minProperties": 1}


def test_what_an_administrator_changed_stays(hook, declare):
	hook(MODULE)
	declared.sync()
	edit(max_retries=2, display_name="Ours", job_queue="q:maintenance", is_enabled=0)
	for retries in (7, 8):
		declare(
			declaring.plain, job_type="test_plain", max_retries=retries, job_queue="q:planning", timeout=60
		)
		declared.sync()
		assert (stored().max_retries, stored().display_name) == (2, "Ours")
		assert (stored().job_queue, stored().is_enabled) == ("q:maintenance", 0)
		assert stored().default_timeout == 60


def test_a_field_that_is_set_back_follows_again(hook, declare):
	hook(MODULE)
	declared.sync()
	edit(max_retries=2)
	declare(declaring.plain, job_type="test_plain", max_retries=7)
	declared.sync()
	edit(max_retries=7)
	declare(declaring.plain, job_type="test_plain", max_retries=8)
	declared.sync()
	assert stored().max_retries == 8


def test_an_option_that_is_no_longer_declared_stays_as_it_is(hook, declare):
	hook(MODULE)
	declared.sync()
	declare(declaring.plain, job_type="test_plain", timeout=60)
	declared.sync()
	declare(declaring.plain, job_type="test_plain")
	assert declared.sync() == []
	assert stored().default_timeout == 60
	declare(declaring.plain, job_type="test_plain", timeout=90)
	declared.sync()
	assert stored().default_timeout == 90


def test_a_type_that_somebody_made_by_hand_is_theirs(hook, declare):
	make_job_type(type_name="test_plain", max_retries=3, description="by hand")
	hook(MODULE)
	for description in ("first", "second"):
		declare(declaring.plain, job_type="test_plain", max_retries=4, description=description)
		declared.sync()
		assert (stored().max_retries, stored().description) == (3, "by hand")
		assert stored().handler_method == "dartwing_jobs.samples.execute_sample_job"


def test_a_type_that_is_no_longer_declared_is_left_alone(world, hook):
	hook(MODULE)
	declared.sync()
	job = make_job(world.a, job_type="test_plain")
	hook()
	assert declared.sync() == []
	assert frappe.db.exists("Job Type", "test_plain")
	assert frappe.db.exists("Background Job", job.name)


def test_the_memory_cannot_be_edited(hook, declare):
	hook(MODULE)
	declared.sync()
	edit(declared='{"max_retries": 2}', max_retries=2)
	declare(declaring.plain, job_type="test_plain", max_retries=7)
	declared.sync()
	assert stored().max_retries == 2
	assert make_job_type(declared='{"max_retries": 2}').reload().declared is None


def test_two_handlers_cannot_declare_the_same_type(hook):
	hook(MODULE, "dartwing_jobs.tests.more_declaring")
	with pytest.raises(
		InvalidJobError, match=r"test_plain is declared twice: by .*declaring.plain and by .*second"
	):
		declared.sync()


def test_one_handler_may_be_listed_twice(hook):
	hook(MODULE, f"{MODULE}.plain")
	assert declared.sync() == ["test_send_invoice", "test_plain"]


def test_a_wrong_declaration_is_refused(hook, declare):
	hook(f"{MODULE}.plain")
	declare(declaring.plain, job_type="test_plain", schema={"type": "text"})
	with pytest.raises(InvalidJobError, match="Parameters Schema is not a valid JSON Schema"):
		declared.sync()


def test_a_path_that_leads_nowhere_is_an_error(hook):
	hook("dartwing_jobs.tests.no_such_module")
	with pytest.raises((ImportError, AttributeError), match="no_such_module"):
		declared.sync()


def test_unknown_options_are_named_where_the_handler_is_imported():
	with pytest.raises(TypeError, match="no option color, retries"):
		job_handler(job_type="x", retries=3, color="red")
	with pytest.raises(TypeError, match="job_type="):
		job_handler(max_retries=3)


@pytest.mark.parametrize("door", [install.after_migrate, lambda: install.after_app_install("some_app")])
def test_migrating_and_installing_an_app_sync(hook, door):
	hook(MODULE)
	door()
	assert frappe.db.exists("Job Type", "test_plain")
	assert install.after_migrate.__name__ in hooks.after_migrate
	assert install.after_app_install.__name__ in hooks.after_app_install


def test_the_samples_bring_no_types():
	"""A production site gets sample_job, as the fixture says, the engine's alerts, and nothing else."""
	assert vars(hooks)[handlers.HOOK] == ["dartwing_jobs.engine.alerts.tell"]


def test_a_handler_declares_what_it_writes_and_what_only_looks_secret(hook, declare):
	hook(f"{MODULE}.plain")
	lists = {"writable_doctypes": ["User", "Organization"], "allowed_secrets": ["devices.*.token"]}
	declare(declaring.plain, job_type="test_plain", category="Planning", **lists)
	declared.sync()
	assert stored().writable_doctypes == "User\nOrganization"
	assert stored().allowed_secrets == "devices.*.token"
