"""An app of one's own on the embedded site, and a second terminal that joins it."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dartwing_jobs.tests import readme
from homes import own_apps, running, shell
from homes.embedded import ROOT, open_home

SHELL = ROOT / "bin" / "shell"
# what the example's reader would look at a little later
LATER = """
import time
until = time.monotonic() + 60
while status(job.name)["status"] != "Completed" and time.monotonic() < until:
	frappe.db.rollback()
	time.sleep(0.1)
import json
print(json.dumps(status(job.name)["output"]))
"""


@pytest.fixture(scope="module")
def my_app(tmp_path_factory) -> Path:
	return readme.write_app(tmp_path_factory.mktemp("apps"))


@pytest.fixture(scope="module")
def home(my_app, tmp_path_factory):
	"""A home with the example's app, given as `--app` would give it."""
	apps = [own_apps.OURS, own_apps.given(str(my_app))]
	with open_home(tmp_path_factory.mktemp("a home"), apps=apps) as home:
		yield home


def join(home, *arguments: str, **options) -> subprocess.CompletedProcess:
	command = [SHELL, "--home", home.folder, *arguments]
	return subprocess.run(command, capture_output=True, text=True, timeout=90, **options)


def test_an_app_of_ones_own_comes_beside_the_default(home):
	assert join(home, "bench", "list-apps").stdout.split() == ["frappe", "dartwing_jobs", "my_app"]


def test_a_home_is_named_as_it_is_seen_from_where_the_user_is(home):
	command = [SHELL, "--home", home.folder.name, "bench", "list-apps"]
	done = subprocess.run(command, capture_output=True, text=True, timeout=90, cwd=home.folder.parent)
	assert "my_app" in done.stdout, done.stderr


def test_its_jobs_are_submitted_in_one_terminal_and_run_by_a_worker_in_another(home):
	worker = subprocess.Popen([SHELL, "--home", home.folder, "bench", "worker"], stderr=subprocess.DEVNULL)
	try:
		typed = join(home, input=readme.blocks()[readme.PROMPT] + LATER)
	finally:
		worker.terminate()
		worker.wait(20)
	assert typed.returncode == 0, typed.stderr
	assert typed.stdout.splitlines()[0] in ("Queued", "Running", "Completed")
	assert json.loads(typed.stdout.splitlines()[1])["users"] >= 1


def test_a_home_that_runs_is_found_without_its_path(home, tmp_path):
	with running.announced(home.folder, tmp_path / "known"):
		assert running.homes(tmp_path / "known") == [home.folder]
		script = (
			f"from homes.shell import main; from pathlib import Path; main(Path({str(tmp_path / 'known')!r}))"
		)
		environment = {**os.environ, "PYTHONPATH": str(ROOT)}
		command = [sys.executable, "-c", script, "python", "-c", "import os; print(os.environ['SITE'])"]
		done = subprocess.run(command, env=environment, capture_output=True, text=True)
	assert done.stdout == "embedded.localhost\n", done.stderr
	assert running.homes(tmp_path / "known") == []


def test_a_note_of_a_home_that_was_killed_is_no_home(tmp_path):
	(tmp_path / ".lock").touch()
	with running.announced(tmp_path, tmp_path / "known"):
		assert running.homes(tmp_path / "known") == []


@pytest.mark.parametrize(
	("found", "said"),
	[([], "No embedded site is running. Start one"), ([Path("/a"), Path("/b")], "--home /a\n  bin/shell")],
)
def test_none_or_several_are_said_clearly(found, said):
	with pytest.raises(SystemExit, match=said):
		shell.the_only(found)


def test_a_folder_in_which_nothing_runs_is_said_clearly(tmp_path):
	done = subprocess.run([SHELL, "--home", tmp_path], capture_output=True, text=True)
	assert (done.returncode, done.stderr) == (1, f"No embedded site is running in {tmp_path}.\n")


def test_an_app_is_a_folder_with_hooks_or_one_inside_of_the_same_name_or_a_name(
	my_app, tmp_path, monkeypatch
):
	monkeypatch.setenv("CALLED_FROM", str(my_app.parent))
	assert own_apps.given("my_app") == own_apps.given(str(my_app)) == my_app
	(tmp_path / "my_app").mkdir()
	(tmp_path / "my_app" / "my_app").symlink_to(my_app)
	assert own_apps.given(str(tmp_path / "my_app")) == tmp_path / "my_app" / "my_app"
	assert own_apps.given("dartwing_jobs") == "dartwing_jobs"


@pytest.mark.parametrize("text", ["nowhere/at/all", "no_such_app", "."])
def test_what_is_no_app_is_refused_before_anything_starts(text, tmp_path, monkeypatch):
	monkeypatch.setenv("CALLED_FROM", str(tmp_path))
	with pytest.raises(argparse.ArgumentTypeError, match=r"there is no folder|is no app"):
		own_apps.given(text)
