"""Job Type: what a kind of work may say about itself."""

from functools import partial

import frappe
import pytest

from dartwing_jobs import hooks, job_handler, submit
from dartwing_jobs.engine.handling import declared, handlers
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.testing import run_job
from dartwing_jobs.tests.world import make_job_type, make_organization


@pytest.mark.parametrize("permission", ["User:read", "Background Job:create", "Job Type:delete", ""])
def test_a_permission_is_a_doctype_and_a_right(permission):
	assert make_job_type(requires_permission=permission).name


@pytest.mark.parametrize(
	"permission",
	[
		"User",
		"User:",
		":read",
		"User:fly",
		"No Such DocType:read",
		"User:read:write",
		"User read",
		"user:read ",
	],
)
def test_other_forms_of_permission_are_refused(permission):
	with pytest.raises(InvalidJobError, match="DocType:permission"):
		make_job_type(requires_permission=permission)


@pytest.mark.parametrize(
	"path", ["print", "os.system('x')", "a..b", ".a.b", "a.b.", "a b.c", "1a.b", "a.b\n", "a-b.c"]
)
def test_a_handler_is_a_dotted_path(path):
	with pytest.raises(InvalidJobError, match="path of a Python function"):
		make_job_type(handler_method=path)


@pytest.mark.parametrize(
	"field", ["default_timeout", "max_retries", "deduplication_window", "backoff_base_seconds"]
)
def test_numbers_are_not_negative(field):
	with pytest.raises(InvalidJobError, match="must be between 0"):
		make_job_type(**{field: -1})


@pytest.mark.parametrize(
	"path", ["os.system", "frappe.delete_doc", "dartwing_jobs.samples.nothing", "no_app.jobs.run"]
)
def test_only_marked_functions_are_handlers(path):
	with pytest.raises(InvalidJobError, match=r"is not a job handler|cannot be imported"):
		make_job_type(handler_method=path)


def test_a_timeout_of_nothing_is_refused():
	with pytest.raises(InvalidJobError, match="at least one second"):
		make_job_type(default_timeout=0)


def test_unknown_words_are_refused():
	with pytest.raises(InvalidJobError, match="Default Priority must be one of"):
		make_job_type(default_priority="Urgent")
	with pytest.raises(frappe.LinkValidationError, match=r"Category.*Fun"):
		make_job_type(category="Fun")


def test_a_type_is_named_by_its_type_name():
	job_type = make_job_type()
	assert job_type.name == job_type.type_name
	with pytest.raises(frappe.DuplicateEntryError):
		make_job_type(type_name=job_type.name)


NOT_PLAIN = "dartwing_jobs.tests.not_plain"


@pytest.mark.parametrize(
	"path",
	[
		*(f"frappe.{name}" for name in ("flags", "conf", "session", "local", "form_dict", "response", "db")),
		*(f"{NOT_PLAIN}.{name}" for name in ("MarkedClass", "_private", "marked_lambda", "marked_partial")),
		*(f"{NOT_PLAIN}.{name}" for name in ("bound_method", "marked_object", "asynchronous", "generator")),
		*(f"{NOT_PLAIN}.{name}" for name in ("asynchronous_generator", "public_name", "__name__")),
	],
)
def test_a_handler_is_a_plain_function(path):
	"""When its Job Type is saved, and again when a job is run."""
	with pytest.raises(InvalidJobError, match=r"is not a job handler|cannot be a job handler|imported"):
		make_job_type(handler_method=path)
	job_type = make_job_type()
	frappe.db.set_value("Job Type", job_type.name, "handler_method", path)
	job = submit(job_type.name, {}, make_organization())
	frappe.db.commit()
	ran = run_job(job.name)
	assert (ran.status, ran.error_type) == ("Dead Letter", "Permanent")
	assert path in ran.error_message


@pytest.mark.parametrize("path", [f"{NOT_PLAIN}.listed", f"{NOT_PLAIN}.asynchronous"])
def test_what_the_hook_lists_is_a_plain_function_too(path, monkeypatch):
	monkeypatch.setattr(hooks, handlers.HOOK, [path], raising=False)
	frappe.clear_cache()
	try:
		with pytest.raises(InvalidJobError, match="cannot be a job handler"):
			make_job_type(handler_method=path)
		with pytest.raises(InvalidJobError, match="cannot be a job handler"):
			declared.sync()
	finally:
		monkeypatch.undo()
		frappe.clear_cache()


async def asynchronous(parameters, context):
	return 1


def generator(parameters, context):
	yield 1


async def asynchronous_generator(parameters, context):
	yield 1


class Callable:
	def __call__(self, parameters, context):
		return 1


@pytest.mark.parametrize(
	("function", "reason"),
	[
		(asynchronous, "async def"),
		(generator, "yield"),
		(asynchronous_generator, "yield"),
		(Callable, "plain function"),
		(Callable(), "plain function"),
		(partial(asynchronous, {}), "plain function"),
		(print, "plain function"),
	],
)
def test_what_would_never_run_cannot_be_marked(function, reason):
	with pytest.raises(TypeError, match=reason):
		job_handler(function)
	with pytest.raises(TypeError, match=reason):
		job_handler(job_type="test_never_runs")(function)


@pytest.mark.parametrize(
	"name", ["returns_coroutine", "returns_generator", "returns_asynchronous_generator", "returns_future"]
)
def test_a_handler_whose_work_has_not_been_done_is_not_completed(name):
	job_type = make_job_type(handler_method=f"{NOT_PLAIN}.{name}")
	job = submit(job_type.name, {}, make_organization())
	frappe.db.commit()
	ran = run_job(job.name)
	assert (ran.status, ran.error_type) == ("Dead Letter", "Permanent")
	assert "has not been run" in ran.error_message
