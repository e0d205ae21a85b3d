"""What a handler gives back: in the status and on the document, without secrets, and never too long."""

import json

import frappe
import pytest

import dartwing_jobs
from dartwing_jobs.engine.handling import outputs
from dartwing_jobs.errors import FrozenFieldError
from dartwing_jobs.testing import run_job
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.world import make_job_type, new_job

STATUS = "dartwing_jobs.api.jobs.status"


def run(world, handler: str, parameters: dict | None = None):
	job_type = make_job_type(handler_method=f"dartwing_jobs.tests.answering.{handler}").name
	job = dartwing_jobs.submit(job_type, parameters, world.a, owner_user=world.user_a)
	frappe.db.commit()
	done = run_job(job.name)
	frappe.set_user("Administrator")
	return done


@pytest.mark.parametrize("value", [{"pages": 3}, [1, "zwei", None], "plain text", 7, 0.5, False, {}, []])
def test_the_result_is_in_the_status_and_on_the_document(world, value):
	job = run(world, "give_back", {"value": value})
	assert (job.status, job.output) == ("Completed", value)
	assert dartwing_jobs.status(job.name)["output"] == value
	assert json.loads(frappe.db.get_value("Background Job", job.name, "output")) == value


def test_the_result_comes_over_http_too(world):
	job = run(world, "give_back", {"value": {"pages": [1, 2]}})
	owner = Browser(world.user_a)
	assert owner.get(f"/api/method/{STATUS}", job=job.name).json["message"]["output"] == {"pages": [1, 2]}
	document = owner.get(f"/api/resource/Background Job/{job.name}").json["data"]
	assert json.loads(document["output"]) == {"pages": [1, 2]}


def test_what_the_context_says_goes_before_what_is_returned(world):
	assert run(world, "say_in_context").output == {"pages": 3}


def test_a_job_without_a_result_has_none(world):
	job = run(world, "give_back", {"value": None})
	assert (job.status, job.output, dartwing_jobs.status(job.name)["output"]) == ("Completed", None, None)
	failed = run(world, "give_back", {})
	assert failed.status != "Completed" and dartwing_jobs.status(failed.name)["output"] is None


def test_secrets_are_masked_wherever_the_result_is_kept(world):
	job = run(world, "give_back_secrets")
	assert job.output["login"] == {"user": "ann", "password": "***"}
	assert job.output["headers"] == [{"name": "Authorization", "value": "***"}]
	assert job.output["rows"] == 7
	kept = frappe.db.get_value("Background Job", job.name, "output")
	attempt = frappe.as_json(frappe.get_all("Job Run", {"background_job": job.name}, ["*"]), indent=None)
	assert "hunter2" not in kept + attempt and "abcdefghijklmnop" not in kept + attempt


def test_a_result_that_is_too_long_says_how_long_it_was_and_how_it_began(world):
	job = run(world, "give_back_much")
	assert job.status == "Completed"
	assert job.output["bytes"] > outputs.MOST_BYTES
	assert job.output["cut"].startswith('["ääää')
	kept = frappe.db.get_value("Background Job", job.name, "output")
	assert len(kept.encode()) < outputs.MOST_BYTES


def test_what_json_does_not_have_is_kept_as_text(world):
	job = run(world, "give_back_what_json_lacks")
	assert job.status == "Completed", job.error_message
	expected = {"not a number": "NaN", "object": "{1}", "half a character": "?", "nothing": "a\x00b"}
	assert job.output == expected


def test_a_result_cannot_be_given_or_edited(world):
	with pytest.raises(FrozenFieldError, match="Output is set by the engine"):
		new_job(world.a, output='{"pages": 3}').insert()
	job = run(world, "give_back", {"value": {"pages": 3}})
	with pytest.raises(FrozenFieldError, match="output cannot be edited"):
		job.db_set("output", "{}")
	job.set("output", '{"pages": 4}')
	with pytest.raises(FrozenFieldError, match="output cannot be edited"):
		job.save()


def test_a_form_draws_the_result_as_text():
	"""Frappe draws a JSON field that cannot be edited as HTML, a Code field as text."""
	field = frappe.get_meta("Background Job").get_field("output")
	assert (field.fieldtype, field.options, field.read_only, field.no_copy) == ("Code", "JSON", 1, 1)
