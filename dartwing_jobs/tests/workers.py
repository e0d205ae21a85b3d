"""Real workers for tests: starts them, finds their processes, and waits for what they do."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import frappe

from dartwing_jobs.engine import sweep
from dartwing_jobs.tests import world
from dartwing_jobs.tests.world import make_job, make_job_type, stored_status

COMMAND = [sys.executable, "-m", "frappe.utils.bench_helper", "frappe", "worker", "--queue"]
# how often a waiting test sweeps: the scheduler would do it every minute
SWEEP_SECONDS = 3
COLUMNS_OF_QUEUES = ("job_queue", "origin_queue")
# what all workers print: nobody reads it unless a test waits in vain
OUTPUT = tempfile.TemporaryFile("a+b")  # noqa: SIM115 it is open as long as this process


def start_worker(rq_queues: str = "short", environment: dict | None = None) -> subprocess.Popen:
	"""A stock worker, as a bench runs it."""
	options = {"start_new_session": True, "stdout": OUTPUT, "stderr": OUTPUT, "env": environment}
	return subprocess.Popen([*COMMAND, rq_queues], **options)


def stop_worker(worker: subprocess.Popen) -> None:
	"""Asks it to end, as a restart of the bench does, and waits until it has."""
	worker.terminate()
	try:
		worker.wait(timeout=20)
	except subprocess.TimeoutExpired:
		worker.kill()
		worker.wait()
		raise


def kill_worker(worker: subprocess.Popen) -> None:
	"""Without asking, and its horse too: it might still take the next test's job, and die with it."""
	horses = children_of(worker.pid)
	worker.kill()
	worker.wait()
	wait_until(lambda: not any(map(is_alive, horses)), 10, sweeping=False)


class Crew:
	"""Workers that stay from test to test, because each takes seconds to start."""

	def __init__(self):
		self.workers: list[subprocess.Popen] = []

	def of(self, number: int) -> list[subprocess.Popen]:
		"""Exactly so many workers: new ones in place of those that were killed, none that are too many."""
		alive = [worker for worker in self.workers if worker.poll() is None]
		missing = [start_worker() for _ in range(number - len(alive))]
		self.workers = alive[:number] + missing
		for worker in alive[number:]:
			stop_worker(worker)
		return self.workers

	def worker_of(self, horse: int) -> subprocess.Popen:
		(found,) = [worker for worker in self.workers if horse in children_of(worker.pid)]
		return found

	def horses(self) -> list[int]:
		return [horse for worker in self.workers for horse in children_of(worker.pid)]


def make_queue(rq_queue: str = "short") -> str:
	"""A queue of its own, committed: other processes must see it."""
	name = world.make_queue(rq_queue)
	frappe.db.commit()
	return name


def retire_queue(name: str) -> None:
	"""The next test's workers are not to look into a hundred old queues."""
	frappe.db.rollback()
	frappe.db.set_value("Job Queue", name, "paused", 1)
	frappe.db.commit()


def set_times(times: dict) -> dict:
	"""Changes settings of the engine; returns what they were."""
	settings = frappe.get_doc("Job Engine Settings")
	before = {field: settings.get(field) for field in times}
	settings.update(times)
	settings.save()
	frappe.db.commit()
	return before


def jobs_of(queue: str) -> list[str]:
	"""All jobs that were submitted to a queue; dead letters remember it."""
	found = [frappe.get_all("Background Job", {column: queue}, pluck="name") for column in COLUMNS_OF_QUEUES]
	return [name for names in found for name in names]


def submit(organization: str, queue: str, handler: str, parameters: dict | None = None, **fields) -> str:
	"""A committed job of a type of its own, whose retries come after about a second."""
	backoff = {"backoff_base_seconds": 1, "backoff_cap_seconds": 1}
	job_type = make_job_type(handler_method=handler, **backoff)
	job = make_job(
		organization, job_type=job_type.name, job_queue=queue, input_parameters=parameters, **fields
	)
	frappe.db.commit()
	return job.name


def wait_until(condition: Callable, seconds: float = 60, sweeping: bool = True, every: float = 0.05):
	"""Waits for something; meanwhile the sweep runs, as often as a test has patience for."""
	deadline, sweep_at = time.monotonic() + seconds, time.monotonic() + SWEEP_SECONDS
	while time.monotonic() < deadline:
		frappe.db.rollback()
		if sweeping and time.monotonic() > sweep_at:
			sweep.sweep()
			sweep_at = time.monotonic() + SWEEP_SECONDS
		if value := condition():
			return value
		time.sleep(every)
	raise AssertionError(f"waited {seconds} seconds in vain; the workers' last words:\n{last_words()}")


def last_words() -> str:
	OUTPUT.seek(max(0, OUTPUT.seek(0, os.SEEK_END) - 6000))
	return OUTPUT.read().decode(errors="replace")


def wait_for(job_name: str, status: str, seconds: float = 60) -> None:
	wait_until(lambda: stored_status(job_name) == status, seconds)


def wait_for_progress(job_name: str) -> None:
	"""Until the handler has said that it is in the middle of its work."""
	wait_until(lambda: frappe.db.get_value("Background Job", job_name, "progress") == 40)


def horse_of(job_name: str) -> int:
	"""The process that runs a job."""
	worker = frappe.db.get_value("Job Run", {"background_job": job_name, "status": "Running"}, "worker")
	return int(worker.rpartition(":")[2])


def children_of(pid: int) -> list[int]:
	listed = Path(f"/proc/{pid}/task/{pid}/children")
	return [int(child) for child in listed.read_text().split()] if listed.exists() else []


def is_alive(pid: int) -> bool:
	"""Whether a process runs: one that has ended, but was not buried by its parent, does not."""
	try:
		os.kill(pid, 0)
		return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
	except (ProcessLookupError, FileNotFoundError):
		return False
