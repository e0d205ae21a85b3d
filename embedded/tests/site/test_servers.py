"""The servers start where they are told, and end with whoever started them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg2
import pytest
import redis

from homes.embedded import ROOT, Home, open_home
from homes.postgres import Postgres
from homes.redis_server import RedisServer

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


def test_postgres_keeps_its_data_and_its_port_over_a_restart(tmp_path):
	server = Postgres(tmp_path / "with a space" / "postgres")
	server.start()
	port = server.port
	_sql(server, "create table kept (n int)")
	server.stop()
	server.start()
	try:
		assert server.port == port
		_sql(server, "select n from kept")
		assert _sql(server, "show fsync") == [("on",)]
	finally:
		server.stop()
	assert server.process.returncode == 0


def test_postgres_asks_for_the_password(tmp_path):
	server = Postgres(tmp_path / "postgres")
	server.start()
	try:
		with pytest.raises(psycopg2.OperationalError):
			psycopg2.connect(host="127.0.0.1", port=server.port, user="postgres", password="guess")
	finally:
		server.stop()


def test_redis_starts_and_stops(tmp_path):
	server = RedisServer(tmp_path / "re dis")
	server.start()
	client = redis.Redis.from_url(server.url)
	assert client.set("a", 1)
	server.stop()
	with pytest.raises(redis.ConnectionError):
		client.get("a")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent was killed")
def test_the_servers_of_a_killed_program_end(tmp_path):
	environment = {**os.environ, "PYTHONPATH": str(ROOT)}
	command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
	program = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
	pids = [int(pid) for pid in program.stdout.readline().split()]
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
	assert home.servers == {}
	written = (home.sites / "common_site_config.json").read_text()
	assert all(part in written for part in ("db.example", "6543", "redis://cache.example:6379/3"))
	assert "secret" not in written


def test_a_home_is_for_one_program_at_a_time(bench):
	with pytest.raises(RuntimeError, match="in use"), open_home(bench.home.folder):
		pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
	"""Used twice: a home is there already when the second command comes."""
	return tmp_path_factory.mktemp("home")


def test_run_gives_the_commands_exit_code_and_stops_everything(folder):
	script = "import os, sys; print(os.environ['SITE'], os.getcwd()); sys.exit(7)"
	done = _run_in_home(folder, script)
	assert done.returncode == 7, done.stderr
	assert done.stdout.split() == ["embedded.localhost", str(folder / "sites")]
	assert not _pid_file(folder).exists()


def test_run_passes_sigterm_on_and_stops_everything(folder):
	script = "import os, signal; os.kill(os.getppid(), signal.SIGTERM); signal.pause()"
	done = _run_in_home(folder, script)
	assert done.returncode == 128 + signal.SIGTERM, done.stderr
	assert not _pid_file(folder).exists()


def _pid_file(folder: Path) -> Path:
	return folder / "servers" / "postgres" / "data" / "postmaster.pid"


def _run_in_home(folder: Path, script: str) -> subprocess.CompletedProcess:
	command = [sys.executable, "-m", "homes.embedded", "--home", str(folder), "--app", "notes_app"]
	environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ['PYTHONPATH']}"}
	whole = [*command, "--", sys.executable, "-c", script]
	return subprocess.run(whole, env=environment, capture_output=True, text=True, timeout=60)


def _sql(server: Postgres, statement: str) -> list | None:
	connection = psycopg2.connect(server.url)
	connection.autocommit = True
	with connection.cursor() as cursor:
		cursor.execute(statement)
		rows = cursor.fetchall() if cursor.description else None
	connection.close()
	return rows


def _is_running(pid: int) -> bool:
	try:
		with open(f"/proc/{pid}/stat") as file:
			return file.read().rsplit(")", 1)[1].split()[0] != "Z"
	except FileNotFoundError:
		return False
