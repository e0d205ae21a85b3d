"""Procrastinate: PostgreSQL with durable commits, worker processes that run one job at a time."""

import os
import sys
from importlib.metadata import version
from pathlib import Path

import procrastinate
import psycopg

from benchmarks.systems import work
from benchmarks.systems.peer import Peer
from benchmarks.systems.system import python_version

POSTGRES = os.environ["BENCHMARK_POSTGRES_URL"]
DURABILITY = ("fsync", "synchronous_commit", "full_page_writes")
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=POSTGRES))


# not a coroutine: a plain function is what the other systems run too
@app.task(name="do")
def do(kind: str, number: int) -> None:
	work.do(kind, number)


class Procrastinate(Peer):
	def __init__(self, folder: Path):
		super().__init__(folder)
		self.database = psycopg.connect(POSTGRES, autocommit=True)

	def prepare(self) -> None:
		app.open()
		app.schema_manager.apply_schema()

	def versions(self) -> dict[str, str]:
		settings = [f"{name}={self._show(name)}" for name in DURABILITY]
		database = f"{self._show('server_version')} ({', '.join(settings)})"
		return {"procrastinate": version("procrastinate"), "PostgreSQL": database, "Python": python_version()}

	def submit_many(self, count: int, kind: str = work.EMPTY) -> None:
		do.batch_defer(*({"kind": kind, "number": number} for number in range(count)))

	def send(self, kind: str, number: int) -> None:
		do.defer(kind=kind, number=number)

	def forget(self) -> None:
		self.database.execute("delete from procrastinate_jobs")

	def worker_command(self, _processes: int) -> list[str]:
		# its log would tell of each job
		command = [
			sys.executable,
			"-m",
			"procrastinate",
			"--app",
			f"{__name__}.app",
			"--log-level",
			"warning",
		]
		return [*command, "worker", "--concurrency", "1"]

	def close(self) -> None:
		app.close()
		self.database.close()

	def _show(self, setting: str) -> str:
		return self.database.execute(f"show {setting}").fetchone()[0]
