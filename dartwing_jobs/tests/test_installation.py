"""Migrate twice, uninstall, install again, with the commands an operator uses."""

import subprocess
import sys

import frappe
import pytest

from dartwing_jobs.tests.world import make_job, make_job_type


def bench(*arguments: str) -> str:
	"""The command line of the home under test, on its site, while this process holds no lock."""
	frappe.db.commit()
	# what runs after a commit may have read something, and a table that is being read cannot be altered
	frappe.db.rollback()
	command = [
		sys.executable,
		"-m",
		"frappe.utils.bench_helper",
		"frappe",
		"--site",
		frappe.local.site,
		*arguments,
	]
	run = subprocess.run(command, capture_output=True, text=True, timeout=300)
	assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
	frappe.clear_cache()
	frappe.db.rollback()
	return run.stdout


def test_migrating_twice_keeps_an_administrators_edits(world):
	job_type = make_job_type(default_timeout=123, is_enabled=1)
	job = make_job(world.a)
	frappe.db.set_value("Job Queue", "q:planning", {"rq_queue": "short", "max_running": 3, "paused": 1})
	settings = frappe.get_doc("Job Engine Settings")
	settings.update({"retention_days": 7, "online": 0}).save()
	for _ in range(2):
		bench("migrate")
	queue = frappe.db.get_value("Job Queue", "q:planning", ["rq_queue", "max_running", "paused"])
	assert tuple(queue) == ("short", 3, 1)
	assert frappe.db.get_value("Job Type", job_type.name, "default_timeout") == 123
	settings.reload()
	assert (settings.retention_days, settings.online) == (7, 0)
	assert frappe.db.exists("Background Job", job.name)
	settings.update({"retention_days": 30, "online": 1}).save()
	frappe.db.commit()


def test_an_organization_that_is_already_there_is_left_alone():
	frappe.db.set_value("DocType", "Organization", "description", "somebody else's")
	bench("migrate")
	assert frappe.db.get_value("DocType", "Organization", "description") == "somebody else's"


@pytest.mark.parametrize("round_trip", [1, 2])
def test_uninstall_and_install_again(round_trip):
	bench("uninstall-app", "dartwing_jobs", "--yes", "--no-backup")
	assert "dartwing_jobs" not in frappe.get_installed_apps()
	assert not frappe.db.table_exists("Background Job", cached=False)
	assert not frappe.db.get_all("DocType", filters={"module": "Dartwing Jobs"})
	assert not frappe.db.sql("select field from `tabSingles` where doctype = 'Job Engine Settings'")
	bench("install-app", "dartwing_jobs")
	assert "dartwing_jobs" in frappe.get_installed_apps()
	assert frappe.db.count("Job Queue") == 7
	assert frappe.db.exists("Job Type", "sample_job")
	assert frappe.db.exists("Job Type", "dartwing_alert")
	assert frappe.db.get_single_value("Job Engine Settings", "online") == 1
	organization = frappe.get_doc(
		{"doctype": "Organization", "organization_name": f"Again {round_trip}"}
	).insert()
	assert make_job(organization.name, job_type="sample_job").name.endswith("-00001")
