"""First runs, as people have them: from a copy of the project, in a folder that is closed to others.

The folder has mode 0700 and a space in its path, the umask is 077, HOME cannot be written to. As root, all is
tried as root and as a user who is made for it; otherwise as the user who runs the tests.
"""

import contextlib
import fcntl
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from homes.tests.processes import Marked, copy_of_the_project, take_terminal, terminal, wait_for

IS_ROOT = os.geteuid() == 0
MINUTES = 60


@dataclass
class Person:
	folder: Path
	account: pwd.struct_passwd
	path: str

	@property
	def project(self) -> Path:
		return self.folder / "a project"

	@property
	def temporary(self) -> Path:
		return self.folder / "temporary files"

	def start(self, *command: str, **options) -> Marked:
		output = self.folder / f"output {secrets.token_hex(4)}"
		kept = {key: value for key, value in os.environ.items() if key.startswith(("PIP_", "SSL_", "LANG"))}
		home = {"HOME": str(self._home()), "TMPDIR": str(self.temporary), "PATH": self.path}
		if IS_ROOT:
			options |= {"user": self.account.pw_uid, "group": self.account.pw_gid, "extra_groups": []}
		options = {"env": {**kept, **home}, "umask": 0o077, "cwd": "/", **options}
		return Marked([self.project / command[0], *command[1:]], output, self.temporary, **options)

	def _home(self) -> Path:
		"""Not even root can write below /proc."""
		return Path("/proc") if self.account.pw_uid == 0 else self.folder / "home"


def wait_until_done(*runs: Marked) -> None:
	for run in runs:
		assert run.process.wait(5 * MINUTES) == 0, run.text()


@pytest.fixture(scope="module", params=["root", "a normal user"] if IS_ROOT else ["this user"])
def person(request) -> Iterator[Person]:
	folder = Path(tempfile.mkdtemp(prefix="dartwing first runs ", dir="/tmp"))
	with contextlib.ExitStack() as stack:
		stack.callback(shutil.rmtree, folder)
		account, path = pwd.getpwuid(os.geteuid()), os.environ["PATH"]
		if request.param == "a normal user":
			account = stack.enter_context(made_user())
			path = "/usr/local/bin:/usr/bin:/bin"
		person = Person(folder, account, path)
		copy_of_the_project(person.project)
		person.temporary.mkdir()
		(folder / "home").mkdir()
		subprocess.run(["chown", "-R", f"{account.pw_uid}:{account.pw_gid}", folder], check=True)
		subprocess.run(["chmod", "-R", "go=", folder], check=True)
		(folder / "home").chmod(0o500)
		yield person


@contextlib.contextmanager
def made_user() -> Iterator[pwd.struct_passwd]:
	name = f"dartwing{secrets.token_hex(4)}"
	subprocess.run(["useradd", "--no-create-home", "--home-dir", "/nonexistent", name], check=True)
	try:
		yield pwd.getpwnam(name)
	finally:
		subprocess.run(["userdel", name], check=True)


@pytest.fixture(scope="module")
def port_8000_is_taken() -> Iterator[None]:
	with contextlib.ExitStack() as stack:
		with contextlib.suppress(OSError):  # by another program, which is as good
			stack.enter_context(socket.create_server(("127.0.0.1", 8000)))
		yield


def test_a_killed_installation_ends_and_two_first_runs_at_once_start_it_anew(person, port_8000_is_taken):
	killed = person.start("bin/demo", "--once")
	log = person.project / ".venv" / "installation.log"
	wait_for(lambda: log.exists() and b"Collecting" in log.read_bytes(), 2 * MINUTES, killed.text)
	killed.process.kill()
	killed.wait_until_all_has_ended()

	runs = [person.start("bin/demo", "--once") for _ in range(2)]
	wait_until_done(*runs)
	texts = [run.text() for run in runs]
	assert sorted("Another run prepares or uses" in text for text in texts) == [False, True], texts
	assert any(" packages, " in text for text in texts), texts
	for text in texts:
		assert text.endswith("All ended as expected.\n")
		assert "Port 8000 is taken: the API is served on port " in text
		assert "WARNING" not in text and "\033" not in text
	assert not list(person.temporary.iterdir())


def test_the_suite_runs_there_and_leaves_no_files(person):
	run = person.start("bin/test", "-q", "homes/tests/test_closed_folders.py")
	wait_until_done(run)
	assert "1 passed" in run.text()
	assert not list(person.temporary.iterdir())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_demo_that_is_ended_takes_everything_along(person, number):
	run = person.start("bin/demo")
	run.wait_for_text("JOB-", 2 * MINUTES)
	assert len(run.running()) > 8, run.running()
	assert not _environment_is_free(person)
	run.process.send_signal(number)
	run.wait_until_all_has_ended()
	assert not list(person.temporary.iterdir())
	assert _environment_is_free(person)


def test_a_demo_whose_terminal_is_closed_takes_everything_along(person):
	with terminal() as (ours, theirs):
		os.chmod(os.ttyname(theirs), 0o666)
		run = person.start("bin/demo", stdin=theirs, preexec_fn=take_terminal(theirs))
		os.close(theirs)
		run.wait_for_text("JOB-", 2 * MINUTES)
		os.close(ours)
		run.wait_until_all_has_ended()
	assert not list(person.temporary.iterdir())


def test_a_suite_that_is_killed_takes_everything_along(person):
	run = person.start("bin/test", "embedded/tests/site")
	run.wait_for_text("test_commands.py ", 2 * MINUTES)
	assert len(run.running()) > 5, run.running()
	run.process.kill()
	run.wait_until_all_has_ended()
	assert not list(person.temporary.iterdir())


def test_a_command_that_does_not_listen_is_killed(person):
	deaf = ["bash", "-c", "trap '' TERM HUP INT; echo ready; while :; do sleep 1; done"]
	run = person.start(".venv/bin/python", "-m", "homes.embedded", "--", *deaf, cwd=person.project)
	run.wait_for_text("ready", 2 * MINUTES)
	run.process.terminate()
	run.wait_until_all_has_ended()
	assert run.process.returncode == 128 + signal.SIGKILL
	assert not list(person.temporary.iterdir())


def _environment_is_free(person: Person) -> bool:
	with (person.project / ".venv.lock").open() as lock:
		try:
			fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
		except BlockingIOError:
			return False
		return True
