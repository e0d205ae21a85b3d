"""A drain inside one process that can look at itself: its memory, its steps, its statements."""

import os
import time
from pathlib import Path

import frappe

from benchmarks.systems import native
from benchmarks.systems.engine_parts import STEPS, drain_here
from benchmarks.systems.stopwatch import Stopwatch
from dartwing_jobs.engine import database

COUNTERS = {
	"mariadb": "select variable_name, variable_value + 0 from information_schema.session_status"
	" where variable_name in ('questions', 'com_commit')",
	"postgres": "select 'com_commit', xact_commit + xact_rollback from pg_stat_database"
	" where datname = current_database()",
}


class Inside:
	"""Others submit, so that only what a worker does is seen here."""

	def __init__(self, folder: Path):
		self.folder = folder

	def prepare(self) -> None:
		native.connect()
		database.read_committed()

	def close(self) -> None:
		frappe.destroy()

	def drain(self, count: int) -> int:
		"""Runs so many jobs; returns this process's resident memory in bytes."""
		_drain_exactly(count)
		pages = int(Path("/proc/self/statm").read_text().split()[1])
		return pages * os.sysconf("SC_PAGE_SIZE")

	def steps(self, count: int) -> dict[str, float]:
		"""Microseconds per job of each step, and of all."""
		watch = Stopwatch()
		with watch.timing(STEPS):
			started = time.perf_counter()
			_drain_exactly(count)
			total = time.perf_counter() - started
		micro = {label: watch.seconds[label] / count * 1e6 for label, _path in STEPS}
		micro["everything else"] = (total - sum(watch.seconds.values())) / count * 1e6
		return {**micro, "all": total / count * 1e6}

	def statements(self, count: int) -> dict[str, float]:
		"""Statements and transactions per job, as the server counts them."""
		before = _counters()
		_drain_exactly(count)
		after = _counters()
		return {name: (after[name] - before[name]) / count for name in after}


def _drain_exactly(count: int) -> None:
	done = drain_here()
	if done != count:
		raise RuntimeError(f"{done} jobs were run where {count} were submitted")


def _counters() -> dict[str, float]:
	kind = frappe.db.db_type
	if kind == "postgres":
		frappe.db.sql("select pg_stat_force_next_flush()")
	frappe.db.rollback()
	rows = frappe.db.sql(COUNTERS[kind])
	frappe.db.rollback()
	return {str(name).lower(): float(value) for name, value in rows}
