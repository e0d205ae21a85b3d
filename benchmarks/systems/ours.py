"""Dartwing Jobs, as an app would use it: a user of an organization submits, stock workers run."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import frappe
from frappe.utils.background_jobs import get_redis_conn
from rq import Worker

import dartwing_jobs
from benchmarks.systems import native, plain_table
from benchmarks.systems.system import System, python_version, timed, wait_until
from benchmarks.systems.tally import Tally
from benchmarks.systems.work import EMPTY, HOLD, ROW, SLEEP, SLEEP_SECONDS
from dartwing_jobs.engine import runs, states
from dartwing_jobs.tests.world import expel, make_job_type, make_organization, make_user

RQ_QUEUE = "default"  # where jobs of category General go
SCHEDULED_RQ_QUEUE = "long"  # where they go when a schedule makes them
STAMP = "stamp"
HANDLERS = {
	EMPTY: "dartwing_jobs.samples.do_nothing",
	ROW: "benchmark_app.jobs.insert_row",
	SLEEP: "dartwing_jobs.samples.do_nothing",
	STAMP: "dartwing_jobs.samples.tell_time",
	HOLD: "dartwing_jobs.tests.handlers.wait_for_file",
}
UNFINISHED = [states.PENDING, states.QUEUED, states.RUNNING]
# long enough that a drain which ran dry has begun to wait for more
LINGERING_FOR_SECONDS = 0.3
TABLES = (
	"Background Job",
	"Job Execution Log",
	"Job Run",
	"Job Idempotency Key",
	"Job Schedule Fire",
	"Job Schedule",
	"Job Template",
	"Job Group",
)
DURABILITY = {
	"mariadb": ("innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin"),
	"postgres": ("fsync", "synchronous_commit", "full_page_writes"),
}


class Ours(System):
	def __init__(self, folder: Path):
		super().__init__(folder)
		self.gate = folder / "gate"
		self.native = Tally(folder)
		self.stamped: dict[int, str] = {}
		self.types: dict[str, str] = {}
		self.counted = EMPTY  # the kind that was submitted last

	def prepare(self) -> None:
		native.connect()
		_refuse_company()
		self._make_table()
		self.types = {name: make_job_type(handler_method=path).name for name, path in HANDLERS.items()}
		self.organization = make_organization("Benchmark")
		self.user = make_user("benchmark", ["Dartwing User"], [self.organization])
		frappe.db.commit()
		frappe.set_user(self.user)

	def close(self) -> None:
		frappe.db.rollback()
		frappe.set_user("Administrator")
		self.reset()
		for name in self.types.values():
			frappe.delete_doc("Job Type", name)
		expel(self.user, self.organization)
		# Frappe refuses to delete users where nobody but Administrator is a System Manager
		frappe.db.set_value("User", self.user, "enabled", 0)
		frappe.delete_doc("Organization", self.organization)
		frappe.db.commit()
		frappe.db.sql_ddl(f"drop table {plain_table.NAME}")
		for queue in (RQ_QUEUE, SCHEDULED_RQ_QUEUE):
			native.forget(queue)  # a ring that nobody answered would outlive a site that is removed

	def code_folder(self) -> str:
		return str(Path(dartwing_jobs.__file__).parent)

	def versions(self) -> dict[str, str]:
		kind = frappe.db.db_type
		number = _setting(kind, "version" if kind == "mariadb" else "server_version")
		settings = [f"{name}={_setting(kind, name)}" for name in DURABILITY[kind]]
		return {
			"dartwing_jobs": dartwing_jobs.__version__,
			"frappe": native.frappe_version(),
			kind: f"{number} ({', '.join(settings)})",
			"rq": version("rq"),
			"Python": python_version(),
		}

	def submit_each(self, count: int) -> None:
		for _ in range(count):
			self._submit(EMPTY)

	def submit_many(self, count: int, kind: str = EMPTY, seconds: float = SLEEP_SECONDS) -> None:
		parameters = {EMPTY: {}, SLEEP: {"seconds": seconds}, ROW: {"number": 1}}[kind]
		self.counted = kind
		dartwing_jobs.submit_many(self.types[kind], [parameters] * count, self.organization)
		frappe.db.commit()

	def submit_stamp(self, number: int) -> None:
		self.stamped[number] = self._submit(STAMP)

	def submit_hold(self) -> None:
		self._submit(HOLD, path=str(self.gate))

	def holding(self) -> int:
		return self._count(HOLD, [states.RUNNING])

	def open_gate(self) -> None:
		self.gate.touch()

	def done(self) -> int:
		return self._count(self.counted, [states.COMPLETED])

	def is_done(self, count: int) -> bool:
		if self._any_unfinished():
			return False
		completed = self.done()
		if completed != count:
			raise RuntimeError(f"{count - completed} of {count} jobs did not end well")
		return True

	def stamps(self) -> dict[int, float]:
		frappe.db.rollback()
		names = {name: number for number, name in self.stamped.items()}
		rows = frappe.get_all(
			"Job Run",
			filters={"background_job": ["in", list(names)], "status": runs.COMPLETED},
			fields=["background_job", "output"],
		)
		return {names[row.background_job]: float(row.output) for row in rows}

	def reset(self) -> None:
		frappe.db.rollback()  # what was read last is older than what workers have done since
		self.gate.unlink(missing_ok=True)
		self.native.reset()
		self.stamped = {}
		self.counted = EMPTY
		for doctype in TABLES:
			frappe.db.delete(doctype, {"organization": self.organization})
		frappe.db.commit()

	def table(self) -> plain_table.PlainTable:
		return plain_table.PlainTable(frappe.db.sql, frappe.db.commit)

	def worker_command(self, _processes: int) -> list[str]:
		return native.worker_command(RQ_QUEUE)

	def cold_latency(self, count: int) -> list[float]:
		"""The same as `latency`, but each job meets workers whose last answer to the bell is over."""
		self.reset()
		with self.workers() as pids:
			self._run_stamp(-1)
			return [self._cold_start(number, pids) for number in range(count)]

	def native_on_shared_worker(self, waiting: int, seconds: float, count: int) -> dict[str, list[float]]:
		"""Seconds until a native job starts on the one worker that our jobs use too."""
		self.reset()
		with self.workers(1) as pids:
			self._run_stamp(-1)
			wait_until(lambda: not _has_children(pids[0]))
			idle = [self._native_start(number) for number in range(count)]
			lingering = [self._native_start_while_lingering(count + number) for number in range(count)]
			self.submit_many(waiting, SLEEP, seconds)
			wait_until(lambda: self.done() > 0)
			busy = [self._native_start(2 * count + number) for number in range(count)]
			if not self._any_unfinished():
				raise RuntimeError("our jobs had all ended before the native ones started")
		self.reset()
		return {"idle": idle, "lingering": lingering, "busy": busy}

	def run_group(self, count: int) -> dict[str, float]:
		"""Seconds to make a group of empty jobs, and from the gate to its end."""
		self.reset()
		with self.workers():
			self._hold_all()
			making = timed(self._make_group, count)
			started = time.monotonic()
			self.open_gate()
			self._wait_for_all(count)
			wait_until(self._group_has_ended)
			running = time.monotonic() - started
		self.reset()
		return {"making": making, "running": running}

	def _make_table(self) -> None:
		frappe.db.sql_ddl(f"drop table if exists {plain_table.NAME}")
		frappe.db.sql_ddl(plain_table.MAKE[frappe.db.db_type])

	def _make_group(self, count: int) -> None:
		jobs = {"job_type": self.types[EMPTY], "parameters": [{}] * count}
		dartwing_jobs.group("Benchmark", jobs, organization=self.organization)
		frappe.db.commit()

	def _group_has_ended(self) -> bool:
		frappe.db.rollback()
		return frappe.db.count("Job Group", {"organization": self.organization, "status": "Completed"}) == 1

	def _cold_start(self, number: int, pids: list[int]) -> float:
		wait_until(lambda: not any(map(_has_children, pids)))
		submitted = time.time()
		return self._run_stamp(number) - submitted

	def _run_stamp(self, number: int) -> float:
		self.submit_stamp(number)
		wait_until(lambda: number in self.stamps())
		return self.stamps()[number]

	def _native_start(self, number: int) -> float:
		enqueued = time.time()
		native.enqueue_stamp(number, RQ_QUEUE, self.folder)
		wait_until(lambda: number in self.native.stamps())
		return self.native.stamps()[number] - enqueued

	def _native_start_while_lingering(self, number: int) -> float:
		self._run_stamp(number)
		time.sleep(LINGERING_FOR_SECONDS)
		return self._native_start(number)

	def _submit(self, kind: str, **parameters) -> str:
		job = dartwing_jobs.submit(self.types[kind], parameters, self.organization)
		frappe.db.commit()
		return job.name

	def _any_unfinished(self) -> bool:
		"""Reads one row, not all that wait: workers need the processors."""
		statement = """select name from `tabBackground Job`
			where job_type = %s and status in (%s, %s, %s) limit 1"""
		with _a_look():
			return bool(frappe.db.sql(statement, (self.types[self.counted], *UNFINISHED)))

	def _count(self, kind: str, statuses: list[str]) -> int:
		with _a_look():
			return frappe.db.count(
				"Background Job", {"job_type": self.types[kind], "status": ["in", statuses]}
			)


@contextmanager
def _a_look() -> Iterator[None]:
	"""At what is there now. No snapshot is left open behind it: servers keep for those what others delete."""
	frappe.db.rollback()
	yield
	frappe.db.rollback()


def _refuse_company() -> None:
	"""Other workers of the bench would take jobs that are measured here."""
	here = socket.gethostname()
	for worker in Worker.all(connection=get_redis_conn()):
		is_alive = worker.hostname != here or Path(f"/proc/{worker.pid}").exists()
		if is_alive and any(name.endswith(f":{RQ_QUEUE}") for name in worker.queue_names()):
			raise RuntimeError(f"another worker serves this bench: stop {worker.name} first")


def _has_children(pid: int) -> bool:
	"""Whether this worker has forked for a job."""
	return bool(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def _setting(kind: str, name: str) -> str:
	if kind == "mariadb":
		return str(frappe.db.sql(f"select @@{name}")[0][0])
	return str(frappe.db.sql(f"show {name}")[0][0])
