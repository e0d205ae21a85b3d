"""Each way in which a program can end takes along what it started: servers, daemons, and its folder."""

import os
import signal
import sys
from pathlib import Path

import pytest

from homes.tests.processes import Marked, is_running, project_environment, take_terminal, terminal

PROGRAM = """
import sys, tempfile
from pathlib import Path
from homes import guardian
from homes.postgres import Postgres
from homes.redis_server import RedisServer

kind, log, command = {"postgres": Postgres, "redis": RedisServer}[sys.argv[1]], Path(sys.argv[2]), sys.argv[3]
with tempfile.TemporaryDirectory(prefix="dartwing-guardian-") as folder:
	def work():
		server = kind(Path(folder) / "server")
		server.log = log
		server.start()
		try:
			print("folder", folder)
			print("server", server.process.pid, flush=True)
			return guardian.call(["bash", "-c", command])
		finally:
			server.stop()
	code = guardian.watched(work)
sys.exit(code)
"""
DAEMON = "setsid sleep 600 & echo guardian $PPID; echo ready; wait"
DEAF_DAEMON = "(trap '' TERM HUP INT; exec setsid sleep 600) & echo guardian $PPID; echo ready; wait"


class Program(Marked):
	def __init__(self, tmp_path: Path, server: str = "redis", command: str = DAEMON, **options):
		self.server_log = tmp_path / "server.log"
		whole = [sys.executable, "-c", PROGRAM, server, str(self.server_log), command]
		super().__init__(whole, tmp_path / "output", env=project_environment(), **options)
		self.wait_for_text("ready")
		self.facts = dict(line.split(" ", 1) for line in self.text().splitlines() if " " in line)
		assert Path(self.facts["folder"]).exists()
		assert is_running(self.facts["server"])

	@property
	def guardian(self) -> int:
		return int(self.facts["guardian"])

	def wait_until_nothing_is_left(self) -> None:
		self.wait_until_all_has_ended()
		assert not is_running(self.facts["server"])
		assert not Path(self.facts["folder"]).exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_everything_and_shows_in_the_exit_code(tmp_path, number):
	program = Program(tmp_path)
	assert len(program.running()) >= 4  # starter, guardian, command, daemon
	program.process.send_signal(number)
	program.wait_until_nothing_is_left()
	assert program.process.returncode == 128 + number


@pytest.mark.parametrize("server", ["redis", "postgres"])
def test_kill_9_of_the_program_ends_everything(tmp_path, server):
	program = Program(tmp_path, server)
	program.process.kill()
	program.wait_until_nothing_is_left()
	if server == "postgres":
		assert "database system is shut down" in program.server_log.read_text().splitlines()[-1]


def test_kill_9_of_the_whole_group_ends_everything(tmp_path):
	program = Program(tmp_path)
	os.killpg(program.process.pid, signal.SIGKILL)
	program.wait_until_nothing_is_left()


def test_kill_9_of_the_guardian_ends_everything(tmp_path):
	program = Program(tmp_path)
	os.kill(program.guardian, signal.SIGKILL)
	program.wait_until_nothing_is_left()
	assert program.process.returncode == 128 + signal.SIGKILL


def test_a_closed_terminal_ends_everything(tmp_path):
	with terminal() as (ours, theirs):
		program = Program(tmp_path, stdin=theirs, preexec_fn=take_terminal(theirs))
		os.close(theirs)
		os.close(ours)
		program.wait_until_nothing_is_left()


def test_ctrl_c_reaches_the_command_once_and_the_command_can_use_the_terminal(tmp_path):
	"""It reads from the terminal, as a debugger would; the exit code is what it makes of Ctrl-C."""
	command = "trap 'echo interrupted; exit 7' INT; echo ready; read line; echo line $line; sleep 60 & wait"
	with terminal() as (ours, theirs):
		program = Program(tmp_path, command=command, stdin=theirs, preexec_fn=take_terminal(theirs))
		os.write(ours, b"typed\n")
		program.wait_for_text("line typed")
		os.write(ours, b"\x03")
		program.wait_until_all_has_ended()
	assert program.process.returncode == 7
	assert program.text().count("interrupted") == 1


def test_a_daemon_that_does_not_listen_is_killed(tmp_path):
	program = Program(tmp_path, command=DEAF_DAEMON)
	program.process.kill()
	program.wait_until_nothing_is_left()


def test_daemons_end_when_the_command_has_ended_well(tmp_path):
	program = Program(tmp_path, command="setsid sleep 600 & echo guardian $PPID; echo ready; exit 3")
	program.wait_until_nothing_is_left()
	assert program.process.returncode == 3


def test_nohup_is_respected(tmp_path):
	def ignore_hangups():
		signal.signal(signal.SIGHUP, signal.SIG_IGN)

	program = Program(
		tmp_path, command="echo guardian $PPID; echo ready; sleep 1; exit 3", preexec_fn=ignore_hangups
	)
	program.process.send_signal(signal.SIGHUP)
	program.wait_until_all_has_ended()
	assert program.process.returncode == 3
