"""The servers start where they are told, and end with whoever started them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg2
import pytest

from homes.embedded import ROOT, Home, open_home
from homes.postgres import Postgres

from .conftest import wait_for

PROGRAM = """
import sys, time
from pathlib import Path
from homes.postgres import Postgres
from homes.redis_server import RedisServer
started = [Postgres(Path(sys.argv[1]) / "postgres"), RedisServer(Path(sys.argv[1]) / "redis")]
for server in started: server.start()
print(*(server.process.pid for server in started), flush=True)
time.sleep(60)
"""


def test_postgres_keeps_its_data_its_port_and_its_password(tmp_path):
	server = Postgres(tmp_path / "with a space" / "postgres")
	server.start()
	port, kept = server.port, "create table kept as select current_setting('fsync') as fsync"
	with psycopg2.connect(server.url) as connection:
		connection.cursor().execute(kept)
	connection.close()
	server.stop()
	server.start()
	try:
		assert server.port == port
		with psycopg2.connect(server.url) as connection, connection.cursor() as cursor:
			cursor.execute("select fsync from kept")
			assert cursor.fetchall() == [("on",)]
		connection.close()
		with pytest.raises(psycopg2.OperationalError, match="password"):
			psycopg2.connect(host="127.0.0.1", port=port, user="postgres", password="guess")
	finally:
		server.stop()
	assert server.process.returncode == 0


def test_the_servers_of_a_killed_program_end(tmp_path):
	command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
	options = {"env": {**os.environ, "PYTHONPATH": str(ROOT)}, "stdout": subprocess.PIPE, "text": True}
	program = subprocess.Popen(command, **options)
	pids = program.stdout.readline().split()
	assert len(pids) == 2
	assert all(_is_running(pid) for pid in pids)
	program.kill()
	program.communicate()
	wait_for(lambda: not any(_is_running(pid) for pid in pids))


def test_servers_named_in_the_environment_are_used(tmp_path, monkeypatch):
	monkeypatch.setenv("DATABASE_URL", "postgres://me:secret@db.example:6543/postgres")
	monkeypatch.setenv("REDIS_URL", "redis://cache.example:6379/3")
	home = Home(tmp_path, "x.localhost", [])
	home.sites.mkdir()
	home.start_servers()
	home.write_config()
	written = (home.sites / "common_site_config.json").read_text()
	assert home.servers == {}
	assert all(part in written for part in ("db.example", "6543", "redis://cache.example:6379/3"))
	assert "secret" not in written


def test_a_home_is_for_one_program_at_a_time(bench):
	with pytest.raises(RuntimeError, match="in use"), open_home(bench.home.folder):
		pass


def test_a_home_gives_the_commands_exit_code_passes_sigterm_on_and_stops(tmp_path):
	done = _run_in_home(tmp_path, "import os, sys; print(os.environ['SITE'], os.getcwd()); sys.exit(7)")
	assert (done.returncode, done.stdout.split()) == (7, ["embedded.localhost", str(tmp_path / "sites")])
	done = _run_in_home(tmp_path, "import os, signal; os.kill(os.getppid(), signal.SIGTERM); signal.pause()")
	assert done.returncode == 128 + signal.SIGTERM, done.stderr


def _run_in_home(folder: Path, script: str) -> subprocess.CompletedProcess:
	command = [sys.executable, "-m", "homes.embedded", "--home", str(folder), "--app", "notes_app"]
	environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ['PYTHONPATH']}"}
	options = {"env": environment, "capture_output": True, "text": True, "timeout": 60}
	done = subprocess.run([*command, "--", sys.executable, "-c", script], **options)
	assert not (folder / "servers" / "postgres" / "data" / "postmaster.pid").exists()
	return done


def _is_running(pid: str) -> bool:
	state = Path(f"/proc/{pid}/stat")
	return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"
