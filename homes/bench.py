"""The suite inside an existing bench, on real Frappe: `python -m homes.bench --bench DIR -- ARGUMENTS`.

It starts what does not answer, makes a site if none is named, and takes back what it made. The bench lends
its python, its apps and its assets; nothing is installed or written there.
"""

import argparse
import contextlib
import hashlib
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

from homes import environment, guardian, mariadb, style
from homes.postgres import Postgres
from homes.redis_server import RedisServer, redis_answers

ROOT = Path(__file__).resolve().parents[1]
APP = "dartwing_jobs"
TESTS = [ROOT / APP, ROOT / "embedded" / "tests" / "parity"]
TOOLS = ROOT / ".venv" / "bench-tools"


class Bench:
	def __init__(self, folder: Path):
		self.folder = folder.expanduser().resolve()
		self.sites = self.folder / "sites"
		self.python = self.folder / "env" / "bin" / "python"
		self.tools: Path | None = None
		self.variables: dict[str, str] = {}
		if not (self.folder / "apps" / "frappe").exists() or not self.python.exists():
			sys.exit(f"{self.folder} is not a bench: it has no apps/frappe or no env/bin/python.")

	def frappe(self, *arguments: str) -> None:
		command = [self.python, "-m", "frappe.utils.bench_helper", "frappe", *arguments]
		self.run(command, cwd=self.sites, env=self.environment())

	def run(self, command: list, **options) -> str:
		done = subprocess.run(command, capture_output=True, text=True, **options)
		if done.returncode:
			sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
		return done.stdout

	def config(self, site: str | None = None) -> dict:
		path = self.sites / (f"{site}/site_config.json" if site else "common_site_config.json")
		return json.loads(path.read_text()) if path.exists() else {}

	def apps(self) -> list[str]:
		"""The bench's own, without this one, which may be there as another checkout."""
		return [app for app in (self.folder / "sites" / "apps.txt").read_text().split() if app != APP]

	def environment(self, site: str = "") -> dict[str, str]:
		"""For every process: this checkout and our tools go before what the bench has of the same names."""
		kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
		path = os.pathsep.join(str(folder) for folder in (ROOT, self.tools) if folder)
		return {**kept, **self.variables, "SITE": site, "PYTHONPATH": path}


def main() -> int:
	arguments = _parse()
	environment.enter()
	style.check()
	return guardian.watched(lambda: run(arguments))


def run(arguments: argparse.Namespace) -> int:
	bench = Bench(arguments.bench)
	settings = (mariadb.SNAPSHOT_ISOLATION,) if arguments.snapshot_isolation else ()
	with open_site(bench, arguments.site, arguments.db, settings) as site:
		return run_suite(bench, site, arguments.pytest)


@contextlib.contextmanager
def open_site(bench: Bench, site: str | None, database: str, settings: tuple[str, ...] = ()) -> Iterator[str]:
	"""The named site, or one that is made and removed, with this app and running servers.

	`settings` are options of the MariaDB that is started for a site that is made.
	"""
	with contextlib.ExitStack() as stack:
		folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dartwing-bench-")))
		stand_beside(bench, folder)
		bench.tools = tools_for(bench)
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


def stand_beside(bench: Bench, folder: Path) -> None:
	"""A sites folder of our own, with this app in its list, that borrows what is big from the bench's."""
	theirs, bench.sites = bench.sites, folder / "sites"
	for path in (bench.sites, folder / "logs"):
		path.mkdir()
	(folder / "apps").symlink_to(bench.folder / "apps")
	(bench.sites / "assets").symlink_to(theirs / "assets")
	(bench.sites / "apps.txt").write_text("\n".join([*bench.apps(), APP]) + "\n")
	if (theirs / "common_site_config.json").exists():
		shutil.copy(theirs / "common_site_config.json", bench.sites)


def tools_for(bench: Bench) -> Path:
	"""A folder with what this app and its suite need; what the bench's apps need, too, is as they have it."""
	pins = bench.run([bench.python, "-I", ROOT / "homes" / "pins.py", *bench.apps()])
	texts = [path.read_text() for path in (ROOT / "bin" / "test-requirements.txt", ROOT / "pyproject.toml")]
	key = hashlib.sha256("\n".join([str(bench.python), pins, *texts]).encode()).hexdigest()[:16]
	if not (TOOLS / key).exists():
		_say(f"installing what the suite needs into {TOOLS / key}; the bench stays as it is")
		TOOLS.mkdir(parents=True, exist_ok=True)
		with tempfile.TemporaryDirectory(dir=TOOLS, prefix="half-made-") as half_made:
			_install(bench, pins, Path(half_made))
			# another run may have been faster
			with contextlib.suppress(OSError):
				(Path(half_made) / "tools").rename(TOOLS / key)
	return TOOLS / key


def _install(bench: Bench, pins: str, folder: Path) -> None:
	(folder / "pins.txt").write_text(pins)
	has_pip = subprocess.run([bench.python, "-c", "import pip"], capture_output=True).returncode == 0
	pip = [bench.python, "-m", "pip"] if has_pip else [sys.executable, "-m", "pip", "--python", bench.python]
	where = ["--target", folder / "tools", "--constraint", folder / "pins.txt"]
	what = ["--requirement", ROOT / "bin" / "test-requirements.txt", "--editable", ROOT]
	bench.run([*pip, "install", "--quiet", "--disable-pip-version-check", *where, *what])


def use_site(bench: Bench, site: str, folder: Path, stack: contextlib.ExitStack) -> str:
	place = bench.folder / "sites" / site
	if not (place / "site_config.json").exists():
		sys.exit(f"{place.parent} has no site {site}.")
	(bench.sites / site).symlink_to(place)
	config = bench.config(site)
	if not config.get("allow_tests"):
		hint = f"bench --site {site} set-config allow_tests true"
		sys.exit(
			f"Tests and benchmarks make and remove data, even the app. Allow that on {site} with: {hint}"
		)
	start_database_of({**bench.config(), **config}, folder, stack)
	if APP not in _installed_apps(bench, site):
		# the bench could not import an app that it does not have
		stack.callback(bench.frappe, "--site", site, "uninstall-app", APP, "--yes", "--no-backup")
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
	return guardian.call([*command, *whole, *everything], cwd=bench.sites, env=bench.environment(site))


def _is_path(argument: str) -> bool:
	return (ROOT / argument.split("::")[0]).exists()


def _installed_apps(bench: Bench, site: str) -> list[str]:
	script = f"import frappe; frappe.init({site!r}); frappe.connect(); print(*frappe.get_installed_apps())"
	options = {"cwd": bench.sites, "env": bench.environment(site), "capture_output": True, "text": True}
	done = subprocess.run([bench.python, "-c", script], **options)
	if done.returncode:
		sys.exit(f"Site {site} does not answer; is its database running?\n{done.stderr[-2000:]}")
	return done.stdout.split()


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
