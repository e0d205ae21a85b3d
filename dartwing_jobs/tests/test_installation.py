"""Migrate twice, uninstall, install again, with the commands an operator uses."""

import subprocess
import sys
from pathlib import Path

import frappe
import pytest
from frappe.utils.background_jobs import get_queue, get_queue_list

from dartwing_jobs import uninstall
from dartwing_jobs.engine import bell, database, pauses
from dartwing_jobs.tests import remains
from dartwing_jobs.tests.world import make_job, make_job_type, make_organization, make_user

LINKING = "Job Keeper"


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


def test_a_dry_run_takes_nothing_away(world, linking_doctype):
	job = make_job(world.a)
	bench("uninstall-app", "dartwing_jobs", "--yes", "--dry-run")
	assert "dartwing_jobs" in frappe.get_installed_apps()
	assert frappe.db.get_value("DocType", "Organization", "module") == "Dartwing Jobs"
	assert frappe.db.get_single_value("Job Engine Settings", "retention_days")
	assert frappe.db.exists("Scheduled Job Type", {"method": "dartwing_jobs.engine.sweep.sweep"})
	assert number_of(make_job(world.a).name) == number_of(job.name) + 1


@pytest.mark.parametrize("is_organization_needed", [False, True])
def test_uninstall_and_install_again(is_organization_needed, request):
	organization = make_organization()
	user = make_user("leaver", ["Dartwing User"], [organization])
	job = make_job(organization, job_type="sample_job")
	file = attach_secret(job)
	pauses.mark_after_commit("queue", "q:bulk")  # a message for a worker
	if is_organization_needed:
		request.getfixturevalue("linking_doctype")
	frappe.db.commit()
	bell.note_due("short", database.utc_now())
	ours = uninstall.our_doctypes()
	planted = remains.plant("Background Job", ours) | remains.plant("Organization", ours)
	assert "tabUser Permission" in planted

	bench("uninstall-app", "dartwing_jobs", "--yes", "--no-backup")

	assert "dartwing_jobs" not in frappe.get_installed_apps()
	assert not frappe.db.table_exists("Background Job", cached=False)
	assert not frappe.db.get_all("DocType", filters={"module": "Dartwing Jobs"})
	gone = ours if is_organization_needed else [*ours, "Organization"]
	assert remains.left(gone, "dartwing_jobs") == set()
	assert not Path(file.get_full_path()).exists()
	assert messages_of_the_site() == []
	assert keys_of_the_site() == []
	is_permitted = frappe.db.exists("User Permission", {"user": user, "for_value": organization})
	assert bool(is_permitted) == is_organization_needed
	assert (
		bool(frappe.db.exists("Has Role", {"parent": user, "role": "Dartwing User"}))
		== is_organization_needed
	)
	if is_organization_needed:
		assert frappe.db.exists("Organization", organization)
		assert frappe.db.get_value("DocType", "Organization", "module") == "Custom"
	remains.uproot()

	bench("install-app", "dartwing_jobs")

	assert "dartwing_jobs" in frappe.get_installed_apps()
	assert frappe.db.count("Job Queue") == 7
	assert frappe.db.exists("Job Type", "sample_job")
	assert frappe.db.exists("Job Type", "dartwing_alert")
	assert frappe.db.get_single_value("Job Engine Settings", "online") == 1
	assert frappe.db.exists("Role", "Dartwing User")
	again = make_job(make_organization(), job_type="sample_job")
	assert number_of(again.name) == number_of(job.name) + 1
	assert not frappe.get_all("File", {"attached_to_doctype": "Background Job"})


@pytest.fixture
def linking_doctype():
	"""As another app would have it: a DocType that links to Organization."""
	field = {
		"fieldname": "organization",
		"fieldtype": "Link",
		"label": "Organization",
		"options": "Organization",
	}
	doctype = {"doctype": "DocType", "name": LINKING, "module": "Custom", "custom": 1, "fields": [field]}
	frappe.get_doc({**doctype, "permissions": [{"role": "System Manager", "read": 1}]}).insert()
	frappe.db.commit()
	yield LINKING
	frappe.delete_doc("DocType", LINKING, force=True)
	# an Organization that stayed belongs to the site; the next run on this site is to find it as this one did
	frappe.db.set_value("DocType", "Organization", "module", "Dartwing Jobs")
	frappe.db.commit()


def attach_secret(job):
	attached = {"attached_to_doctype": job.doctype, "attached_to_name": job.name}
	content = {"file_name": f"{job.name}.txt", "content": f"secret of {job.name}", "is_private": 1}
	return frappe.get_doc({"doctype": "File", **attached, **content}).insert()


def messages_of_the_site() -> list[str]:
	"""Those in RQ that call a function of ours."""
	jobs = [job for name in get_queue_list() for job in get_queue(name).jobs]
	calls = [job.kwargs for job in jobs if job.kwargs["site"] == frappe.local.site]
	return [call["method"] for call in calls if str(call["method"]).startswith("dartwing_jobs.")]


def keys_of_the_site() -> list[bytes]:
	keys = list(bell.client().scan_iter(f"{bell.PREFIX}:*{frappe.local.site}*"))
	due = bell.client().zrange(bell._due(), 0, -1)
	return [*keys, *(member for member in due if bell._site_of(member) == frappe.local.site)]


def number_of(name: str) -> int:
	return int(name.rpartition("-")[2])
