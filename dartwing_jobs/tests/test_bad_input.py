"""Bad input through HTTP: a clear error, and no row left behind."""

import frappe
import pytest

from dartwing_jobs.parameters import MAX_DEPTH
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.world import AWKWARD, REPEATABLE, make_job, make_organization


@pytest.fixture(scope="module")
def manager(world):
	return Browser(world.manager)


def nested(levels: int) -> str:
	return '{"a":' * levels + "1" + "}" * levels


BAD = {
	"wrong JSON": ({"input_parameters": "{not json"}, "is not valid JSON"),
	"half a JSON": ({"input_parameters": '{"a": '}, "is not valid JSON"),
	"a JSON list": ({"input_parameters": "[1, 2]"}, "must be a JSON object"),
	"a JSON number": ({"input_parameters": "12"}, "must be a JSON object"),
	"NaN": ({"input_parameters": '{"a": NaN}'}, "JSON does not have"),
	"infinity": ({"input_parameters": '{"a": [1e999]}'}, "JSON does not have"),
	"10 MB": ({"input_parameters": '{"a": "%s"}' % ("x" * 10_000_000)}, "at most 1048576 bytes"),
	"10 MB of brackets": ({"input_parameters": "[" * 10_000_000}, "at most 1048576 bytes"),
	"deep nesting": ({"input_parameters": nested(MAX_DEPTH + 1)}, "levels deep"),
	"very deep nesting": ({"input_parameters": nested(100_000)}, "levels deep"),
	"NUL in parameters": ({"input_parameters": '{"a": "\\u0000"}'}, "cannot be stored"),
	"NUL in a parameter's name": ({"input_parameters": '{"\\u0000": 1}'}, "cannot be stored"),
	"half a surrogate pair": ({"input_parameters": '{"a": "\\ud800"}'}, "cannot be stored"),
	"NUL in text": ({"project_id": "a\x00b"}, "NUL character"),
	"NUL in a link": ({"job_type": "sample\x00job"}, "NUL character"),
	"NUL in the organization": ({"organization": "\x00"}, "NUL character"),
	"unknown field": ({"prioritty": "High"}, "has no field prioritty"),
	"negative retries": ({"max_retries": -1}, "must be between 0"),
	"negative timeout": ({"timeout_seconds": -300}, "must be between 0"),
	"negative position": ({"position": -1}, "must be between 0"),
	"huge number": ({"max_retries": 10**18}, "must be between 0"),
	"no number": ({"timeout_seconds": "soon"}, "must be a whole number"),
	"date out of range": ({"scheduled_for": "99999-01-01 00:00:00"}, "must be a date and time"),
	"no date": ({"scheduled_for": "tomorrow-ish"}, "must be a date and time"),
	"31 February": ({"scheduled_for": "2026-02-31 00:00:00"}, "must be a date and time"),
	"date before computers": ({"scheduled_for": "0001-01-01 00:00:00"}, "must be a date and time"),
	"too long text": ({"project_id": "x" * 141}, "140"),
	"unknown priority": ({"priority": "Urgent"}, "Priority must be one of"),
	"unknown child policy": ({"on_parent_failure": "Panic"}, "Panic"),
	"markup in the type": ({"job_type": "<script>alert(1)</script>"}, "Job Type"),
	"SQL in the type": ({"job_type": "x' or '1'='1"}, "Job Type"),
	"percent in the type": ({"job_type": "100%s %(name)s"}, "Job Type"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_a_clear_error_and_leaves_no_row(world, manager, case):
	fields, explanation = BAD[case]
	before = frappe.db.count("Background Job"), frappe.db.count("Job Execution Log")
	body = {"job_type": REPEATABLE, "organization": world.a, **fields}
	answer = manager.post("/api/resource/Background Job", **body)
	frappe.db.rollback()
	assert answer.status_code == 417, answer.get_data(as_text=True)[-2000:]
	assert explanation in answer.get_data(as_text=True)
	assert (frappe.db.count("Background Job"), frappe.db.count("Job Execution Log")) == before


@pytest.mark.parametrize(
	"text", [AWKWARD, "%", "%s", "%(a)s", "'", '"', "\\", "`;--", "🦜", "a\u00adb", "é" * 140]
)
def test_odd_text_is_only_text(world, manager, text):
	body = {
		"job_type": REPEATABLE,
		"organization": world.a,
		"project_id": text,
		"input_parameters": {text: text, "lines": f"{text}\n{text}"},
	}
	answer = manager.post("/api/resource/Background Job", **body)
	assert answer.status_code == 200, answer.get_data(as_text=True)[-2000:]
	frappe.db.rollback()
	job = frappe.get_doc("Background Job", answer.json["data"]["name"])
	assert job.project_id == text
	assert frappe.parse_json(job.input_parameters) == {text: text, "lines": f"{text}\n{text}"}
	assert frappe.db.exists("Background Job", {"project_id": text, "name": job.name}) == job.name


@pytest.mark.parametrize("name", ["50% 'Off'", 'Say "Hi"', "a/b", "Zürich 東京 🦜", "back\\slash", "%s %d"])
def test_organizations_may_have_odd_names(world, name):
	organization = make_organization(name)
	job = make_job(organization)
	assert frappe.get_list("Background Job", filters={"organization": organization}, pluck="name") == [
		job.name
	]


def test_parameters_of_the_largest_allowed_depth_and_size_are_stored(world):
	deep = nested(MAX_DEPTH)
	assert frappe.parse_json(make_job(world.a, input_parameters=deep).input_parameters) == frappe.parse_json(
		deep
	)
	large = {"a": "x" * (1048576 - len('{"a":""}'))}
	job = make_job(world.a, input_parameters=large)
	job.reload()
	assert frappe.parse_json(job.input_parameters) == large


@pytest.mark.parametrize("empty", [None, "", "   ", {}])
def test_parameters_may_be_empty(world, empty):
	assert not frappe.parse_json(make_job(world.a, input_parameters=empty).input_parameters or "{}")


def test_a_moment_with_an_offset_becomes_site_time(world):
	plain = make_job(world.a, scheduled_for="2030-06-01T12:00:00+00:00").scheduled_for
	shifted = make_job(world.a, scheduled_for="2030-06-01T14:00:00+02:00").scheduled_for
	assert plain == shifted
	assert plain.tzinfo is None
