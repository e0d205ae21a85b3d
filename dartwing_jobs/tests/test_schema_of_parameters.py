"""JSON Schema of parameters: which schemas a job type accepts, and what they say about new jobs."""

import json
import subprocess
import sys
import warnings

import frappe
import pytest

from dartwing_jobs import submit, submit_many
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.world import make_job, make_job_type

CUSTOMER = {
	"type": "object",
	"required": ["customer"],
	"properties": {
		"customer": {"$ref": "#/$defs/person"},
		"amounts": {"type": "array", "items": {"type": "number"}},
		"a/b": {"type": "boolean"},
	},
	"$defs": {
		"person": {
			"type": "object",
			"properties": {"name": {"type": "string"}, "boss": {"$ref": "#/$defs/person"}},
		}
	},
}


@pytest.fixture
def job_type():
	return make_job_type(parameters_schema=json.dumps(CUSTOMER)).name


def refusal(world, job_type: str, parameters) -> str:
	with pytest.raises(InvalidJobError) as raised:
		submit(job_type, parameters, world.a)
	return str(raised.value)


def test_parameters_that_fit_are_accepted(world, job_type):
	given = {"customer": {"name": "Ada", "boss": {"name": "Charles"}}, "amounts": [1, 2.5], "more": None}
	assert submit(job_type, given, world.a).name
	assert make_job(world.a, job_type=job_type, input_parameters=json.dumps(given)).name


@pytest.mark.parametrize(
	("parameters", "where"),
	[
		({"customer": {"name": 5}}, "/customer/name: 5 is not of type 'string'"),
		({"customer": {"boss": {"name": []}}}, "/customer/boss/name: [] is not of type 'string'"),
		({"customer": {}, "amounts": [1, "x"]}, "/amounts/1: 'x' is not of type 'number'"),
		({"customer": {}, "a/b": 1}, "/a~1b: 1 is not of type 'boolean'"),
		({}, "/: 'customer' is a required property"),
		(None, "/: 'customer' is a required property"),
	],
)
def test_an_error_says_where(world, job_type, parameters, where):
	message = refusal(world, job_type, parameters)
	assert where in message
	assert job_type in message


def test_every_door_checks(world, job_type):
	with pytest.raises(InvalidJobError, match="/customer/name"):
		make_job(world.a, job_type=job_type, input_parameters={"customer": {"name": 5}})
	with pytest.raises(InvalidJobError, match="/customer/name"):
		submit_many(job_type, [{"customer": {}}, {"customer": {"name": 5}}], world.a)
	assert len(submit_many(job_type, [{"customer": {}}, {"customer": {"name": "x"}}], world.a)) == 2
	frappe.db.commit()
	job = {"job_type": job_type, "organization": world.a, "input_parameters": '{"customer": 1}'}
	answer = Browser(world.admin_a).post("/api/resource/Background Job", **job)
	assert (answer.status_code, "/customer: 1 is not of type" in answer.text) == (417, True)


def test_the_first_three_errors_are_shown_and_none_is_long(world):
	schema = {"additionalProperties": {"type": "string", "maxLength": 3}}
	job_type = make_job_type(parameters_schema=schema).name
	message = refusal(world, job_type, {f"key{number}": "x" * 10_000 for number in range(10)})
	assert message.count("is too long") == 3
	assert len(message) < 1000


@pytest.mark.parametrize(
	("schema", "complaint"),
	[
		("{", "not valid JSON"),
		("[]", "must be a JSON object"),
		("true", "must be a JSON object"),
		('{"type": "text"}', "not a valid JSON Schema. /type: 'text'"),
		('{"properties": {"a": {"minimum": "1"}}}', "/properties/a/minimum: '1' is not of type 'number'"),
		('{"$ref": "#/$defs/nobody"}', "#/$defs/nobody, which is not there"),
		('{"properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}}', "places in the same schema"),
		('{"items": [{"$ref": "file:///etc/passwd"}], "$schema": "http://json-schema.org/draft-07/schema#"}',
			"places in the same schema"),
		("[" * 100_000, "not valid JSON"),
	],
)  # fmt: skip
def test_a_schema_that_cannot_be_used_is_refused(schema, complaint):
	with pytest.raises(InvalidJobError) as raised:
		make_job_type(parameters_schema=schema)
	assert complaint in str(raised.value)
	assert "Parameters Schema" in str(raised.value)


def test_drafts_are_obeyed(world):
	"""`items` with a list is a tuple in draft 7, and `$defs` are `definitions` there."""
	schema = {
		"$schema": "http://json-schema.org/draft-07/schema#",
		"properties": {"pair": {"items": [{"$ref": "#/definitions/word"}, {"type": "number"}]}},
		"definitions": {"word": {"type": "string"}},
	}
	job_type = make_job_type(parameters_schema=json.dumps(schema)).name
	assert submit(job_type, {"pair": ["a", 1]}, world.a).name
	assert "/pair/1" in refusal(world, job_type, {"pair": ["a", "b"]})


def test_nothing_is_ever_fetched(world, job_type):
	"""Even when a schema reached the table past the document: the library would warn as it fetches."""
	schema = {"properties": {"a": {"$ref": "http://127.0.0.1:9/remote.json"}}}
	frappe.db.set_value("Job Type", job_type, "parameters_schema", json.dumps(schema))
	with warnings.catch_warnings():
		warnings.simplefilter("error")
		assert "cannot be used" in refusal(world, job_type, {"a": 1})


def test_a_schema_that_leads_to_itself_is_no_crash(world):
	schema = {"properties": {"a": {"$ref": "#/properties/a"}}}
	job_type = make_job_type(parameters_schema=json.dumps(schema)).name
	assert "cannot be used" in refusal(world, job_type, {"a": 1})


@pytest.mark.parametrize("empty", [None, "", "  \n"])
def test_no_schema_accepts_everything(world, empty):
	job_type = make_job_type(parameters_schema=empty)
	assert job_type.parameters_schema is None
	assert submit(job_type.name, {"anything": 1}, world.a).name


def test_a_schema_is_stored_readable_and_stays_as_it_is():
	job_type = make_job_type(parameters_schema='{"title":"Größe","type":"object"}')
	assert job_type.parameters_schema == '{\n "title": "Größe",\n "type": "object"\n}'
	job_type.reload()
	assert job_type.save().parameters_schema == '{\n "title": "Größe",\n "type": "object"\n}'


def test_types_without_a_schema_do_not_load_the_library():
	program = """
import sys, frappe
from dartwing_jobs import parameters
parameters.check_schema(frappe._dict(parameters_schema=None), {"a": 1})
assert "jsonschema" not in sys.modules
parameters.check_schema(frappe._dict(parameters_schema="{}", name="x"), {"a": 1})
assert "jsonschema" in sys.modules
"""
	subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
