"""Where the product is measured (the embedded site, or a site of a bench) and where its peers live."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.remote import Environment
from benchmarks.systems.plain_table import DATABASE
from homes import own_apps
from homes.bench import Bench, open_site
from homes.embedded import open_home
from homes.postgres import Postgres
from homes.redis_server import RedisServer

ROOT = Path(__file__).resolve().parents[1]
APP = "benchmark_app"
APPS = Path("benchmarks", "app")  # where it lies, in this checkout or in a copy of it
REQUIREMENTS = ROOT / "benchmarks" / "requirements.txt"
PEERS_VENV = ROOT / ".venv-benchmarks"


class MeasuredBench(Bench):
	"""A bench whose processes find our apps in a given folder: this checkout, or a copy of another commit."""

	def __init__(self, folder: Path, code: Path = ROOT):
		super().__init__(folder)
		self.code = code

	def environment(self, site: str = "") -> dict[str, str]:
		folders = (self.code, self.code / APPS, self.tools)
		path = os.pathsep.join(str(folder) for folder in folders if folder)
		return {**super().environment(site), "PYTHONPATH": path}

	def install_app(self, site: str) -> None:
		with (self.sites / "apps.txt").open("a") as apps:
			apps.write(f"{APP}\n")
		self.frappe("--site", site, "install-app", APP)

	def uninstall_app(self, site: str) -> None:
		self.frappe("--site", site, "uninstall-app", APP, "--yes", "--no-backup")


@dataclass(frozen=True)
class Place:
	name: str  # of the file with its results
	title: str
	environment: Environment


@contextlib.contextmanager
def embedded_place() -> Iterator[Place]:
	with (
		tempfile.TemporaryDirectory(prefix="dartwing-benchmark-") as folder,
		open_home(Path(folder), apps=[own_apps.OURS, ROOT / APPS / APP]) as home,
	):
		environment = Environment(Path(sys.executable), home.sites, home.environment())
		yield Place("embedded", "the embedded site (PostgreSQL)", environment)


@contextlib.contextmanager
def bench_place(folder: Path, site: str | None, database: str) -> Iterator[Place]:
	bench, is_theirs = MeasuredBench(folder), bool(site)
	with open_site(bench, site, database) as site, contextlib.ExitStack() as stack:
		bench.install_app(site)
		if is_theirs:
			stack.callback(bench.uninstall_app, site)
		kind = {**bench.config(), **bench.config(site)}.get("db_type", "mariadb")
		environment = Environment(bench.python, bench.sites, bench.environment(site))
		yield Place(f"frappe-{kind}", f"real Frappe ({kind})", environment)


@contextlib.contextmanager
def peers_place(product: Environment) -> Iterator[Environment]:
	"""The peers' packages, and servers that only they use; PostgreSQL with its own, durable defaults.

	Jobs that insert a row do so in the product's database.
	"""
	with tempfile.TemporaryDirectory(prefix="dartwing-peers-") as name, contextlib.ExitStack() as stack:
		folder = Path(name)
		folder.chmod(0o755)  # PostgreSQL runs as another user when we are root
		servers = {"redis": RedisServer(folder / "redis"), "postgres": Postgres(folder / "postgres")}
		for server in servers.values():
			stack.callback(server.stop)
			server.start()
		variables = {
			**os.environ,
			"PYTHONPATH": str(ROOT),
			"BENCHMARK_REDIS_URL": servers["redis"].url,
			"BENCHMARK_POSTGRES_URL": servers["postgres"].url.replace("postgres://", "postgresql://"),
			DATABASE: json.dumps(database_of(product)),
		}
		yield Environment(peers_python(), folder, variables)


def database_of(product: Environment) -> dict[str, str | int]:
	"""How to reach the database of a site, as its configuration says."""
	sites, site = product.cwd, product.variables["SITE"]
	files = (sites / "common_site_config.json", sites / site / "site_config.json")
	config = {
		key: value for path in files if path.exists() for key, value in json.loads(path.read_text()).items()
	}
	kind = config.get("db_type", "mariadb")
	return {
		"kind": kind,
		"host": config.get("db_host") or "127.0.0.1",
		"port": int(config.get("db_port") or (5432 if kind == "postgres" else 3306)),
		"user": config.get("db_user") or config["db_name"],
		"password": config["db_password"],
		"name": config["db_name"],
	}


def peers_python() -> Path:
	"""The python of .venv-benchmarks, made anew when the list of peers has changed."""
	python, stamp = PEERS_VENV / "bin" / "python", PEERS_VENV / "installed"
	wanted = REQUIREMENTS.read_text()
	if not stamp.exists() or stamp.read_text() != wanted:
		print(f"Preparing the peers in {PEERS_VENV} ...", flush=True)
		_run([sys.executable, "-m", "venv", "--clear", PEERS_VENV])
		_run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", REQUIREMENTS])
		stamp.write_text(wanted)
	return python


def _run(command: list) -> None:
	done = subprocess.run(command, capture_output=True, text=True)
	if done.returncode:
		lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or [
			done.stderr[-200:]
		]
		raise RuntimeError(f"its packages could not be installed: {lines[-1]}")
