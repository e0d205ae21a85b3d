"""The embedded site: a folder laid out like a bench, with running servers and one site.

`python -m homes.embedded [--home DIR] -- COMMAND` runs a command inside it and ends everything afterwards.
"""

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from homes import guardian, own_apps, running
from homes.postgres import Postgres
from homes.redis_server import RedisServer

ROOT = Path(__file__).resolve().parents[1]
PREFIX = "dartwing-home-"


@dataclass
class Home:
	folder: Path
	site: str
	apps: list[str]
	database_url: str = ""
	redis_url: str = ""
	servers: dict[str, Postgres | RedisServer] = field(default_factory=dict)

	@property
	def sites(self) -> Path:
		return self.folder / "sites"

	def environment(self) -> dict[str, str]:
		"""What a program needs to find `frappe`, the apps beside it, and the site."""
		paths = [
			str(ROOT / "embedded"),
			str(ROOT),
			*own_apps.paths(self.folder),
			os.environ.get("PYTHONPATH", ""),
		]
		return {**os.environ, "SITE": self.site, "PYTHONPATH": os.pathsep.join(filter(None, paths))}

	def bench(self, *arguments: str) -> str:
		command = [sys.executable, "-m", "frappe.utils.bench_helper", "frappe", *arguments]
		done = subprocess.run(command, cwd=self.sites, env=self.environment(), capture_output=True, text=True)
		if done.returncode:
			raise RuntimeError(f"{arguments} failed:\n{done.stdout}\n{done.stderr}")
		return done.stdout

	def start_servers(self) -> None:
		self.database_url = os.environ.get("DATABASE_URL") or self._start("postgres", Postgres)
		self.redis_url = os.environ.get("REDIS_URL") or self._start("redis", RedisServer)

	def stop_servers(self) -> None:
		for server in self.servers.values():
			server.stop()

	def write_config(self) -> None:
		(self.folder / "logs").mkdir(exist_ok=True)
		(self.sites / "apps.txt").write_text("\n".join(["frappe", *self.apps]) + "\n")
		database = urlsplit(self.database_url)
		config = self.sites / "common_site_config.json"
		known = json.loads(config.read_text()) if config.exists() else {}
		known |= {"db_type": "postgres", "db_host": database.hostname, "db_port": database.port or 5432}
		known |= {"redis_cache": self.redis_url, "redis_queue": self.redis_url, "default_site": self.site}
		config.write_text(json.dumps(known, indent=1, sort_keys=True))

	def ensure_site(self) -> None:
		config = self.sites / self.site / "site_config.json"
		if config.exists():
			self.bench("--site", self.site, "migrate")
			self._install_what_is_new()
			return
		try:
			self._create_site()
		except RuntimeError:
			# What is half made is made anew next time.
			config.unlink(missing_ok=True)
			raise

	def _install_what_is_new(self) -> None:
		installed = self.bench("--site", self.site, "list-apps").split()
		for app in self.apps:
			if app not in installed:
				self.bench("--site", self.site, "install-app", app)

	def _create_site(self) -> None:
		root = urlsplit(self.database_url)
		# Several homes may share one server named in DATABASE_URL.
		name = "_" + hashlib.sha256(str(self.sites / self.site).encode()).hexdigest()[:16]
		options = ["--db-root-username", unquote(root.username or "postgres"), "--force"]
		options += ["--db-root-password", unquote(root.password or ""), "--db-name", name]
		for app in self.apps:
			options += ["--install-app", app]
		self.bench("new-site", self.site, *options)

	def _start(self, name: str, kind: type[Postgres] | type[RedisServer]) -> str:
		server = self.servers[name] = kind(self.folder / "servers" / name)
		server.start()
		return server.url


@contextlib.contextmanager
def open_home(
	folder: Path, site: str = "embedded.localhost", apps: Sequence[str | Path] = (own_apps.OURS,)
) -> Iterator[Home]:
	"""A ready home; its servers stop when the block ends."""
	home = Home(folder.resolve(), site, [])
	home.sites.mkdir(parents=True, exist_ok=True)
	with (home.folder / running.LOCK).open("w") as lock:
		try:
			fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
		except BlockingIOError:
			raise RuntimeError(f"{home.folder} is in use by another process") from None
		try:
			home.apps = list(dict.fromkeys(own_apps.link(app, home.folder) for app in apps))
			home.start_servers()
			home.write_config()
			home.ensure_site()
			with running.announced(home.folder):
				yield home
		finally:
			home.stop_servers()


def run(command: Callable[[Home], list], folder: Path | None = None, **options: Any) -> int:
	"""Runs a command in a home; without a folder it is a temporary one. Returns the command's exit code."""

	def work() -> int:
		with open_home(Path(place), **options) as home:
			return guardian.call(command(home), cwd=home.sites, env=home.environment())

	with contextlib.nullcontext(folder) if folder else tempfile.TemporaryDirectory(prefix=PREFIX) as place:
		try:
			return guardian.watched(work)
		except RuntimeError as error:
			sys.exit(str(error))


def main() -> int:
	arguments = _parse()
	apps = [own_apps.OURS, *arguments.app]
	return run(lambda _home: arguments.command, arguments.home, site=arguments.site, apps=apps)


def _parse() -> argparse.Namespace:
	parser = argparse.ArgumentParser(prog="python -m homes.embedded", description=__doc__)
	parser.add_argument(
		"--home", type=Path, help="folder to keep everything in; made if missing. Without it nothing is kept"
	)
	parser.add_argument("--site", default="embedded.localhost")
	parser.add_argument("--app", action="append", type=own_apps.given, default=[], help=own_apps.HELP)
	parser.add_argument("command", nargs=argparse.REMAINDER)
	arguments = parser.parse_args()
	arguments.command = arguments.command[arguments.command[:1] == ["--"] :]
	if not arguments.command:
		parser.error("a command is needed after --")
	return arguments


if __name__ == "__main__":
	sys.exit(main())
