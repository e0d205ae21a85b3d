"""Job Type: what a kind of work may say about itself."""

import frappe
import pytest

from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.tests.world import make_job_type


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
