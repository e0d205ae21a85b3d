"""Every door of the engine is also open to an operator at a terminal: `bench --site NAME execute …`."""

import json
import subprocess
import sys

import frappe
import pytest

from dartwing_jobs import submit
from dartwing_jobs.tests.world import make_job, make_job_type, stored_status

DOORS = "dartwing_jobs.api.jobs"


def execute(method: str, **kwargs):
	"""What the command prints, as the program that calls it would read it."""
	frappe.db.commit()
	command = [sys.executable, "-m", "frappe.utils.bench_helper", "frappe", "--site", frappe.local.site]
	done = subprocess.run(
		[*command, "execute", method, "--kwargs", repr(kwargs)], capture_output=True, text=True, timeout=120
	)
	assert done.returncode == 0, done.stderr
	frappe.db.rollback()
	return printed(done.stdout.strip())


def printed(text: str):
	"""JSON; but Frappe 16 prints a plain word without its quotes."""
	if text.isalpha():
		text = json.dumps(text)
	return json.loads(text) if text else None


@pytest.fixture
def job_type():
	return make_job_type().name


def test_a_job_is_submitted_and_canceled_at_a_terminal(world, job_type):
	asked = {"job_type": job_type, "parameters": {"steps": 1}, "organization": world.a}
	job = execute(f"{DOORS}.submit", **asked, scheduled_for="2099-01-01 00:00:00")
	assert (job["status"], job["parameters"]) == ("Pending", {"steps": 1})
	assert execute(f"{DOORS}.cancel", job=job["name"], reason="not needed")["status"] == "Canceled"
	assert stored_status(job["name"]) == "Canceled"


def test_the_python_functions_work_there_too(world, job_type):
	names = execute(
		"dartwing_jobs.submit_many", job_type=job_type, many_parameters=[{}, {}], organization=world.a
	)
	assert [stored_status(name) for name in names] == ["Queued", "Queued"]
	submitted = execute("dartwing_jobs.submit", job_type=job_type, organization=world.a)
	assert submitted["status"] == stored_status(submitted["name"]) == "Queued"
	assert execute("dartwing_jobs.cancel", job_name=submitted["name"]) == "Canceled"
	assert stored_status(submitted["name"]) == "Canceled"


@pytest.mark.parametrize(("function", "argument"), [("retry", "job_name"), ("replay", "job")])
def test_a_dead_letter_is_submitted_again_at_a_terminal(world, function, argument):
	dead = make_job(world.a, "Dead Letter")
	again = execute(f"dartwing_jobs.{function}", **{argument: dead.name})
	assert (again["status"], again["retry_of"]) == ("Queued", dead.name)
	assert stored_status(again["name"]) == "Queued"


def test_schedules_and_groups_are_made_at_a_terminal(world, job_type):
	named = {"organization": world.a, "name": f"at a terminal {frappe.generate_hash(length=8)}"}
	fires = execute("dartwing_jobs.schedule", **named, cron="0 3 * * *", job_type=job_type)
	assert fires["cron_expression"] == "0 3 * * *"
	assert frappe.db.get_value("Job Schedule", fires["name"], "organization") == world.a
	jobs = {"job_type": job_type, "parameters": [{"steps": 1}, {"steps": 2}]}
	group = execute("dartwing_jobs.group", **named, jobs=jobs)
	assert frappe.db.count("Background Job", {"job_group": group["name"]}) == 2


def test_a_document_is_told_the_same_with_its_site_and_without(world, job_type):
	"""Frappe prints what a function returned after it has left the site."""
	job = submit(job_type, {"steps": 1}, world.a)
	at_the_site = json.loads(json.dumps(job.as_dict(no_nulls=True), default=str))
	site = frappe.local.site
	frappe.db.commit()
	frappe.destroy()
	try:
		left = json.loads(json.dumps(job.as_dict(no_nulls=True), default=str))
	finally:
		frappe.init(site)
		frappe.connect()
	assert left == at_the_site


@pytest.mark.parametrize("door", ["status", "history", "list_jobs"])
def test_reading_doors_answer_with_what_a_terminal_can_print(world, job_type, door):
	"""The command prints what `json.dumps` makes of the answer."""
	job = make_job(world.a, job_type=job_type)
	given = {"organization": world.a} if door == "list_jobs" else {"job": job.name}
	answer = json.loads(json.dumps(frappe.get_attr(f"{DOORS}.{door}")(**given)))
	assert job.name in json.dumps(answer) or answer[0]["event"] == "job.created"
