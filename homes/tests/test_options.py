"""Help and mistakes are answered at once, before anything is made, and with any Python."""

import fcntl
import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from homes.tests.processes import Marked, copy_of_the_project


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
	return copy_of_the_project(tmp_path_factory.mktemp("no environment") / "a project")


def ask(project: Path, *command: str) -> subprocess.CompletedProcess:
	"""Runs a command that must end without an environment, after less than a second of work."""
	before = resource.getrusage(resource.RUSAGE_CHILDREN)
	bare = {**os.environ, "PYTHON": os.path.realpath(sys.executable)}  # one that knows no packages
	options = {"env": bare, "capture_output": True, "text": True, "timeout": 20, "cwd": "/"}
	done = subprocess.run([project / "bin" / command[0], *command[1:]], **options)
	after = resource.getrusage(resource.RUSAGE_CHILDREN)
	assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1
	assert not (project / ".venv").exists()
	return done


@pytest.mark.parametrize("command", ["demo", "test", "benchmark", "shell"])
def test_help_is_there_before_the_environment(project, command):
	done = ask(project, command, "--help")
	assert (done.returncode, done.stderr) == (0, "")
	assert f"usage: bin/{command}" in done.stdout


def test_help_for_a_bench_needs_no_bench(project):
	done = ask(project, "test", "--bench", "nowhere", "--help")
	assert done.returncode == 0
	assert "--snapshot-isolation" in done.stdout


@pytest.mark.parametrize(
	("command", "complaint"),
	[
		(["demo", "--bogus"], "unrecognized arguments: --bogus"),
		(["demo", "--port", "65536"], "a port is a number from 1 to 65535"),
		(["test", "--bogus"], "unrecognized arguments: --bogus"),
		(["test", "dartwing_jobs/tests/test_nothing.py"], "there is no dartwing_jobs/tests/test_nothing.py"),
		(["test", "--bench", "x", "--db", "oracle"], "invalid choice"),
		(["benchmark", "--bogus"], "unrecognized arguments: --bogus"),
		(["benchmark", "--only", "luck"], "there is no luck"),
		(["benchmark", "--bench", "x", "--compare", "luck"], "has no commit luck"),
		(["benchmark", "--compare", "HEAD"], "name it with --bench"),
	],
)
def test_a_mistake_is_one_sentence_before_the_environment(project, command, complaint):
	done = ask(project, *command)
	assert (done.returncode, done.stdout) == (2, "")
	assert complaint in done.stderr.splitlines()[-1]


def test_without_an_environment_no_site_runs_that_could_be_joined(project):
	done = ask(project, "shell")
	assert (done.returncode, done.stdout) == (1, "")
	assert done.stderr == "No embedded site is running. Start one in another terminal: bin/demo\n"


def test_a_taken_port_that_was_asked_for_is_one_sentence(project):
	with socket.create_server(("127.0.0.1", 0)) as taken:
		port = taken.getsockname()[1]
		done = ask(project, "demo", "--port", str(port))
	assert done.returncode == 2
	assert f"port {port} cannot be used: Address already in use" in done.stderr.splitlines()[-1]


def test_an_environment_in_use_is_not_made_anew(project, tmp_path):
	with (project / ".venv.lock").open("w") as lock:
		fcntl.flock(lock, fcntl.LOCK_SH)
		run = Marked([project / "bin" / "demo"], tmp_path / "output")
		run.wait_for_text("Another run prepares or uses")
		run.process.terminate()
		run.wait_until_all_has_ended()
	assert not (project / ".venv").exists()
