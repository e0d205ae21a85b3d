"""Where the product is measured (the embedded site, or a site of a bench) and where its peers live."""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.remote import Environment
from homes.bench import Bench, open_site
from homes.embedded import open_home
from homes.postgres import Postgres
from homes.redis_server import RedisServer

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = ROOT / "benchmarks" / "requirements.txt"
PEERS_VENV = ROOT / ".venv-benchmarks"


@dataclass(frozen=True)
class Place:
	name: str  # of the file with its results
	title: str
	environment: Environment


@contextlib.contextmanager
def embedded_place() -> Iterator[Place]:
	with (
		tempfile.TemporaryDirectory(prefix="dartwing-benchmark-") as folder,
		open_home(Path(folder)) as home,
	):
		environment = Environment(Path(sys.executable), home.sites, home.environment())
		yield Place("embedded", "the embedded site (PostgreSQL)", environment)


@contextlib.contextmanager
def bench_place(folder: Path, site: str | None, database: str) -> Iterator[Place]:
	bench = Bench(folder)
	with open_site(bench, site, database) as site:
		kind = {**bench.config(), **bench.config(site)}.get("db_type", "mariadb")
		environment = Environment(bench.python, bench.sites, bench.environment(site))
		yield Place(f"frappe-{kind}", f"real Frappe ({kind})", environment)


@contextlib.contextmanager
def peers_place() -> Iterator[Environment]:
	"""The peers' packages, and servers that only they use; PostgreSQL with its own, durable defaults."""
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
		}
		yield Environment(peers_python(), folder, variables)


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
