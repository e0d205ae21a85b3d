"""README's example runs as printed: its app is installed, its prompt typed in, its test run."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import frappe
import pytest

from dartwing_jobs.testing import run_job
from dartwing_jobs.tests import readme
from dartwing_jobs.tests.world import stored_status

BENCH = [sys.executable, "-m", "frappe.utils.bench_helper", "frappe", "--site"]


def bench(*arguments: str) -> None:
	done = subprocess.run([*BENCH, frappe.local.site, *arguments], capture_output=True, text=True)
	assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def my_app(site, tmp_path_factory):
	"""The example's app, on this site; and gone again."""
	folder = readme.write_app(tmp_path_factory.mktemp("apps"))
	_forget_acme()
	with found_by_all_processes(folder.parent), listed_in_the_bench():
		bench("install-app", "my_app")
		_look_again()
		yield folder
		_forget_acme()
		bench("uninstall-app", "my_app", "--yes", "--no-backup")
	_look_again()


@contextlib.contextmanager
def found_by_all_processes(folder: Path):
	paths = os.environ.get("PYTHONPATH", "")
	os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [paths, str(folder)]))
	sys.path.append(str(folder))
	try:
		yield
	finally:
		os.environ["PYTHONPATH"] = paths
		sys.path.remove(str(folder))


@contextlib.contextmanager
def listed_in_the_bench():
	apps = Path("apps.txt")
	before = apps.read_text()
	apps.write_text(f"{before.rstrip()}\nmy_app\n")
	try:
		yield
	finally:
		apps.write_text(before)


def _forget_acme() -> None:
	"""The example makes it, and a site may see the example twice."""
	for doctype in ("Job Schedule", "Job Template", "Background Job", "Job Group"):
		for name in frappe.get_all(doctype, {"organization": "Acme"}, pluck="name"):
			frappe.delete_doc(doctype, name)
	for doctype, name in (("Organization", "Acme"), ("Job Type", "export_users")):
		if frappe.db.exists(doctype, name):
			frappe.delete_doc(doctype, name)
	frappe.db.commit()


def _look_again() -> None:
	"""Another process has changed which apps there are."""
	frappe.db.rollback()
	frappe.clear_cache()
	frappe.local.all_apps = frappe.local.installed_apps = None


@pytest.fixture(scope="module")
def prompt(my_app) -> dict:
	"""What was typed in at the prompt has left these names."""
	names: dict = {}
	exec(compile(readme.blocks()[readme.PROMPT], "README.md", "exec"), names)
	return names


def test_the_job_of_the_example_runs(prompt):
	job = run_job(prompt["job"].name)
	assert (job.status, job.priority, list(job.output)) == ("Completed", "High", ["users"])
	assert job.output["users"] >= 1
	assert "/private/files/users-" in job.output_reference


def test_its_schedule_and_its_group_are_there(prompt):
	assert frappe.db.exists("Job Schedule", {"schedule_name": "month end", "organization": "Acme"})
	group = frappe.db.get_value("Job Group", {"organization": "Acme"}, "name")
	members = frappe.get_all("Background Job", {"job_group": group}, pluck="name", order_by="position")
	assert len(members) == 2
	for name in members:
		run_job(name)
	assert [stored_status(name) for name in members] == ["Completed", "Completed"]


def test_its_own_test_passes(prompt):
	names: dict = {}
	exec(compile(readme.blocks()["my_app/test_jobs.py"], "README.md", "exec"), names)
	names["test_users_are_exported"]()
