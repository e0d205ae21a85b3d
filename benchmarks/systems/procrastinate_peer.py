"""Procrastinate: PostgreSQL with durable commits, two worker processes that run one job at a time."""

import os
import sys
from importlib.metadata import version
from pathlib import Path

import procrastinate
import psycopg

from benchmarks.systems import tally
from benchmarks.systems.system import python_version
from benchmarks.systems.tallied import TalliedSystem

POSTGRES = os.environ["BENCHMARK_POSTGRES_URL"]
DURABILITY = ("fsync", "synchronous_commit", "full_page_writes")
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=POSTGRES))


# not coroutines: a plain function is what the other systems run too
@app.task(name="stamp")
def stamp(number: int) -> None:
	tally.stamp(number)


@app.task(name="hold")
def hold() -> None:
	tally.hold()


class Procrastinate(TalliedSystem):
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

	def submit_many(self, count: int) -> None:
		stamp.batch_defer(*({"number": number} for number in range(count)))

	def submit_stamp(self, number: int) -> None:
		stamp.defer(number=number)

	def submit_hold(self) -> None:
		hold.defer()

	def forget(self) -> None:
		self.database.execute("delete from procrastinate_jobs")

	def worker_command(self) -> list[str]:
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
