"""The suite inside an existing bench, on real Frappe: `python -m homes.bench --bench DIR -- ARGUMENTS`.

It starts what does not answer, makes a site if none is named, and takes back what it made.
"""

import argparse
import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from homes import mariadb
from homes.postgres import Postgres
from homes.redis_server import RedisServer, redis_answers

ROOT = Path(__file__).resolve().parents[1]
APP = "dartwing_jobs"
TESTS = [ROOT / APP, ROOT / "embedded" / "tests" / "parity"]
# modules, and the packages that bring them
NEEDED_FOR_TESTS = {"pytest": "pytest", "hypothesis": "hypothesis", "opentelemetry.sdk": "opentelemetry-sdk"}


class Bench:
	def __init__(self, folder: Path):
		self.folder = folder.expanduser().resolve()
		self.sites = self.folder / "sites"
		self.python = self.folder / "env" / "bin" / "python"
		self.variables: dict[str, str] = {}
		if not (self.folder / "apps" / "frappe").exists() or not self.python.exists():
			sys.exit(f"{self.folder} is not a bench: it has no apps/frappe or no env/bin/python.")

	def frappe(self, *arguments: str) -> None:
		command = [self.python, "-m", "frappe.utils.bench_helper", "frappe", *arguments]
		self.run(command, cwd=self.sites, env={**os.environ, **self.variables})

	def run(self, command: list, **options) -> None:
		done = subprocess.run(command, capture_output=True, text=True, **options)
		if done.returncode:
			sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")

	def config(self, site: str | None = None) -> dict:
		path = self.sites / (f"{site}/site_config.json" if site else "common_site_config.json")
		return json.loads(path.read_text()) if path.exists() else {}

	def environment(self, site: str) -> dict[str, str]:
		"""The bench's own python, and nothing of ours on its path: `frappe` must be the bench's."""
		kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
		return {**kept, **self.variables, "SITE": site}


def main() -> int:
	arguments = _parse()
	bench = Bench(arguments.bench)
	settings = (mariadb.SNAPSHOT_ISOLATION,) if arguments.snapshot_isolation else ()
	with open_site(bench, arguments.site, arguments.db, settings) as site:
		install_what_tests_need(bench)
		return run_suite(bench, site, arguments.pytest)


@contextlib.contextmanager
def open_site(bench: Bench, site: str | None, database: str, settings: tuple[str, ...] = ()) -> Iterator[str]:
	"""The named site, or one that is made and removed, with this app and running servers.

	`settings` are options of the MariaDB that is started for a site that is made.
	"""
	with contextlib.ExitStack() as stack:
		folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dartwing-bench-")))
		put_app_into(bench)
		if site:
			start_redis_of(bench, folder, stack)
			yield use_site(bench, site, folder, stack)
		else:
			start_private_redis(bench, folder, stack)
			yield make_site(bench, private_server(database, settings, folder), stack)


def start_private_redis(bench: Bench, folder: Path, stack: contextlib.ExitStack) -> None:
	"""Not the bench's: its own workers would take the tests' jobs, and it may be stopped at any time."""
	for purpose in ("cache", "queue"):
		server = RedisServer(folder / f"redis-{purpose}")
		stack.callback(server.stop)
		server.start()
		bench.variables[f"FRAPPE_REDIS_{purpose.upper()}"] = server.url


def start_redis_of(bench: Bench, folder: Path, stack: contextlib.ExitStack) -> None:
	config = bench.config()
	for url in {config.get("redis_cache"), config.get("redis_queue")}:
		if not url:
			sys.exit(f"{bench.sites}/common_site_config.json names no redis_cache or redis_queue.")
		if not redis_answers(url):
			server = RedisServer(folder / f"redis-{urlsplit(url).port}")
			server.port = urlsplit(url).port
			stack.callback(server.stop)
			server.start()
			_say(f"started Redis on port {server.port}")


def put_app_into(bench: Bench) -> None:
	"""The bench runs this very checkout, by a link; a clone that somebody works in is left alone."""
	place = bench.folder / "apps" / APP
	if place.exists() and not place.is_symlink() and place.resolve() != ROOT:
		sys.exit(f"{place} is a copy of the app: run its own bin/test, or move it away.")
	if place.resolve() != ROOT or not place.exists():
		place.unlink(missing_ok=True)
		place.symlink_to(ROOT)
	apps = (bench.sites / "apps.txt").read_text().split()
	if APP not in apps:
		(bench.sites / "apps.txt").write_text("\n".join([*apps, APP]) + "\n")
	if not _imports_this_checkout(bench):
		_say("installing the app into the bench")
		bench.run([bench.python, "-m", "pip", "install", "-q", "-e", ROOT])


def install_what_tests_need(bench: Bench) -> None:
	missing = [package for name, package in NEEDED_FOR_TESTS.items() if not _has_module(bench, name)]
	if missing:
		bench.run([bench.python, "-m", "pip", "install", "-q", *missing])


def use_site(bench: Bench, site: str, folder: Path, stack: contextlib.ExitStack) -> str:
	config = bench.config(site)
	if not config:
		sys.exit(f"{bench.sites} has no site {site}.")
	if not config.get("allow_tests"):
		hint = f"bench --site {site} set-config allow_tests true"
		sys.exit(
			f"Tests and benchmarks make and remove data, even the app. Allow that on {site} with: {hint}"
		)
	start_database_of({**bench.config(), **config}, folder, stack)
	if APP not in _installed_apps(bench, site):
		bench.frappe("--site", site, "install-app", APP)
	bench.frappe("--site", site, "migrate")
	return site


def start_database_of(config: dict, folder: Path, stack: contextlib.ExitStack) -> None:
	"""A site of this machine's MariaDB gets it started; other databases are their owners' business."""
	host, port = config.get("db_host") or "127.0.0.1", int(config.get("db_port") or 3306)
	is_ours = config.get("db_type", "mariadb") == "mariadb" and host in ("localhost", "127.0.0.1")
	if is_ours and not mariadb.answers("127.0.0.1", port):
		server = mariadb.SystemMariaDB(folder, port)
		stack.callback(server.stop)
		server.start()
		_say(f"started MariaDB on port {port}")


def private_server(database: str, settings: tuple[str, ...], folder: Path) -> mariadb.MariaDB | Postgres:
	if database == "postgres":
		return Postgres(folder / database)
	return mariadb.MariaDB(folder / database, settings)


def make_site(bench: Bench, server: mariadb.MariaDB | Postgres, stack: contextlib.ExitStack) -> str:
	database = "postgres" if isinstance(server, Postgres) else "mariadb"
	stack.callback(server.stop)
	server.start()
	site = f"dartwing-{secrets.token_hex(4)}.localhost"
	_say(f"making site {site} on a private {database}")
	stack.callback(shutil.rmtree, bench.sites / site, ignore_errors=True)
	where = ["--db-type", database, "--db-host", server.host, "--db-port", str(server.port)]
	who = ["--db-root-username", server.user, "--db-root-password", server.password]
	extra = ["--no-mariadb-socket"] if database == "mariadb" else []
	bench.frappe("new-site", site, *where, *who, *extra, "--admin-password", secrets.token_hex(8))
	bench.frappe("--site", site, "install-app", APP)
	return site


def run_suite(bench: Bench, site: str, arguments: list[str]) -> int:
	_say(f"running the suite on {site}")
	command = [bench.python, "-m", "pytest", f"--rootdir={ROOT}", "-c", ROOT / "pyproject.toml"]
	# pytest runs in the sites folder: paths below the project are made whole; without any, it is everything
	whole = [ROOT / argument if _is_path(argument) else argument for argument in arguments]
	everything = [] if any(map(_is_path, arguments)) else TESTS
	return subprocess.run(
		[*command, *whole, *everything], cwd=bench.sites, env=bench.environment(site)
	).returncode


def _is_path(argument: str) -> bool:
	return (ROOT / argument.split("::")[0]).exists()


def _installed_apps(bench: Bench, site: str) -> list[str]:
	script = f"import frappe; frappe.init({site!r}); frappe.connect(); print(*frappe.get_installed_apps())"
	done = subprocess.run([bench.python, "-c", script], cwd=bench.sites, capture_output=True, text=True)
	if done.returncode:
		sys.exit(f"Site {site} does not answer; is its database running?\n{done.stderr[-2000:]}")
	return done.stdout.split()


def _imports_this_checkout(bench: Bench) -> bool:
	"""This very one, and installed since its requirements were changed last."""
	script = f"import {APP}, importlib.metadata as m; print({APP}.__file__, *m.requires({APP!r}), sep='\\n')"
	done = subprocess.run([bench.python, "-c", script], cwd=bench.sites, capture_output=True, text=True)
	place, *installed = done.stdout.split("\n")[:-1] or [""]
	installed = [line for line in installed if "extra ==" not in line]
	needed = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if "#" not in line]
	return Path(place).is_relative_to(ROOT) and sorted(installed) == sorted(needed)


def _has_module(bench: Bench, name: str) -> bool:
	return subprocess.run([bench.python, "-c", f"import {name}"], capture_output=True).returncode == 0


def _say(text: str) -> None:
	print(f"bench: {text}", flush=True)


def _parse() -> argparse.Namespace:
	parser = argparse.ArgumentParser(prog="bin/test", description="The suite inside an existing bench.")
	parser.add_argument("--bench", type=Path, required=True, metavar="DIR", help="the bench's folder")
	parser.add_argument(
		"--site", help="an existing site that allows tests; without it one is made and removed"
	)
	parser.add_argument(
		"--db", choices=["mariadb", "postgres"], default="mariadb", help="for the site that is made"
	)
	parser.add_argument(
		"--snapshot-isolation",
		action="store_true",
		help="the MariaDB that is made refuses to change what was changed since it was read",
	)
	parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
	arguments = parser.parse_args()
	if arguments.snapshot_isolation and (arguments.site or arguments.db != "mariadb"):
		parser.error("--snapshot-isolation is for the private MariaDB of a site that is made")
	return arguments


if __name__ == "__main__":
	sys.exit(main())
