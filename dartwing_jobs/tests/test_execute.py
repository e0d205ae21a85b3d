"""Every door of the engine is also open to an operator at a terminal: `bench --site NAME execute …`."""

import json
import subprocess
import sys

import frappe
import pytest

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
	return json.loads(done.stdout) if done.stdout.strip() else None


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
	again = execute("dartwing_jobs.retry", job_name=make_job(world.a, "Dead Letter").name)
	assert again["status"] == "Queued"


@pytest.mark.parametrize("door", ["status", "history", "list_jobs"])
def test_reading_doors_answer_with_what_a_terminal_can_print(world, job_type, door):
	"""The command prints what `json.dumps` makes of the answer."""
	job = make_job(world.a, job_type=job_type)
	given = {"organization": world.a} if door == "list_jobs" else {"job": job.name}
	answer = json.loads(json.dumps(frappe.get_attr(f"{DOORS}.{door}")(**given)))
	assert job.name in json.dumps(answer) or answer[0]["event"] == "job.created"
