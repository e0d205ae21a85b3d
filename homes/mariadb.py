"""A private MariaDB from the system's own binaries, on a loopback port, with its data in a given folder."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from homes import process

STOP = signal.SIGTERM
SETTINGS = ("--character-set-server=utf8mb4", "--collation-server=utf8mb4_unicode_ci", "--skip-log-bin")
# the default from MariaDB 11.6.2 on: what was changed since it was read cannot be changed
SNAPSHOT_ISOLATION = "--innodb-snapshot-isolation=ON"


class MariaDB:
	user = "root"
	host = "127.0.0.1"

	def __init__(self, folder: Path, settings: tuple[str, ...] = ()):
		self.folder = folder
		self.settings = (*SETTINGS, *settings)
		self.data = folder / "data"
		self.log = folder / "mariadb.log"
		self.port = 0
		self.password = ""
		self.process: subprocess.Popen | None = None

	def start(self) -> None:
		self.port = process.free_port()
		self.password = secrets.token_hex(16)
		self._create()
		command = [_binary("mariadbd"), *self._options(), *self.settings]
		self.process = process.spawn(command, self.log, STOP)
		process.wait_until(self._answers, self.process, self.log)

	def stop(self) -> None:
		if self.process:
			process.stop(self.process, STOP)

	def _create(self) -> None:
		self.data.mkdir(parents=True)
		command = [_binary("mariadb-install-db"), "--no-defaults", f"--datadir={self.data}", "--skip-test-db"]
		command += ["--auth-root-authentication-method=normal", *_as_root()]
		made = subprocess.run(command, capture_output=True, text=True)
		if made.returncode:
			raise RuntimeError(f"mariadb-install-db failed:\n{made.stdout[-1000:]}{made.stderr[-1000:]}")
		(self.folder / "init.sql").write_text(
			f"alter user root@localhost identified by '{self.password}';\n"
			f"create or replace user root@'127.0.0.1' identified by '{self.password}';\n"
			"grant all on *.* to root@'127.0.0.1' with grant option;\n"
		)

	def _options(self) -> list[str]:
		# a socket's path may have 107 characters and the data folder may lie deeper than that
		socket_path = Path("/tmp") / f"dartwing-{os.getpid()}.sock"
		return [
			"--no-defaults",
			*_as_root(),
			f"--datadir={self.data}",
			f"--port={self.port}",
			f"--bind-address={self.host}",
			f"--socket={socket_path}",
			f"--pid-file={self.folder / 'pid'}",
			f"--init-file={self.folder / 'init.sql'}",
		]

	def _answers(self) -> bool:
		return answers(self.host, self.port)


class SystemMariaDB:
	"""The machine's own MariaDB, with its own settings and data, for a site that lives there."""

	def __init__(self, folder: Path, port: int):
		self.log = folder / "mariadb.log"
		self.port = port
		self.process: subprocess.Popen | None = None

	def start(self) -> None:
		user = []
		if os.geteuid() == 0:
			user = ["--user=mysql"]
			Path("/run/mysqld").mkdir(exist_ok=True)
			shutil.chown("/run/mysqld", "mysql")
		self.process = process.spawn([_binary("mariadbd"), *user], self.log, STOP)
		process.wait_until(lambda: answers("127.0.0.1", self.port), self.process, self.log)

	def stop(self) -> None:
		if self.process:
			process.stop(self.process, STOP)


def answers(host: str, port: int) -> bool:
	"""Whether a MariaDB greets on that port; before its init file has run it does not listen."""
	try:
		with socket.create_connection((host, port), timeout=1) as connection:
			return len(connection.recv(5)) == 5
	except OSError:
		return False


def _as_root() -> list[str]:
	return ["--user=root"] if os.geteuid() == 0 else []


def _binary(name: str) -> str:
	found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/opt/homebrew/bin")
	if not found:
		raise RuntimeError(
			f"{name} was not found: install MariaDB's server, or name a site whose database answers"
		)
	return found
