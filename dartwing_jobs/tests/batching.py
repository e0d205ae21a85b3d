"""A drain in a process of its own, with a real watchdog, that believes its jobs to be short; and what its
handlers do."""

import ctypes
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import frappe

from dartwing_jobs.engine import control, database
from dartwing_jobs.engine.drain import Drain
from dartwing_jobs.engine.handling.handlers import job_handler
from dartwing_jobs.engine.pace import REMEMBERED
from dartwing_jobs.engine.submit import submit
from dartwing_jobs.engine.watchdog import Watchdog
from dartwing_jobs.tests import effects
from dartwing_jobs.tests.processes import connect_anew
from dartwing_jobs.tests.workers import children_of, is_alive, wait_until
from dartwing_jobs.tests.world import REPEATABLE

LEASE_SECONDS = 3
RQ_QUEUE = "long"  # which no worker of the tests serves


class OneDrain:
	def __init__(self, pid: int):
		self.pid = pid
		self.status: int | None = None  # as the system tells it when the process has ended

	def watchdogs(self) -> list[int]:
		return children_of(self.pid)

	def kill(self) -> None:
		os.kill(self.pid, signal.SIGKILL)

	def kill_with_watchdog(self) -> None:
		for pid in (*self.watchdogs(), self.pid):
			os.kill(pid, signal.SIGKILL)

	def is_alive(self) -> bool:
		return is_alive(self.pid)

	def ended_well(self) -> bool:
		"""Waits for its end; whether no error was raised."""
		if self.status is None:
			self.status = os.waitpid(self.pid, 0)[1]
		return self.status == 0

	def wait(self, seconds: float = 30) -> None:
		wait_until(lambda: not self.is_alive(), seconds, sweeping=False)


def drain(queue: str, job_type: str):
	"""One that knows the type by many short runs, and runs what is due."""
	return process(_run_what_is_due, queue, job_type)


@contextmanager
def process(work: Callable[[str, str], None], queue: str, job_type: str) -> Iterator[OneDrain]:
	"""Does this in a process of its own."""
	frappe.db.commit()
	site = frappe.local.site
	pid = os.fork()
	if pid == 0:
		code = 1
		try:
			connect_anew(site)
			work(queue, job_type)
			code = 0
		finally:
			os._exit(code)
	one = OneDrain(pid)
	try:
		yield one
	finally:
		if one.is_alive():
			one.kill_with_watchdog()
		one.ended_well()


def _run_what_is_due(queue: str, job_type: str) -> None:
	watchdog = Watchdog(RQ_QUEUE)
	database.read_committed()
	watchdog.learn_lease(LEASE_SECONDS)
	one = Drain(RQ_QUEUE, watchdog, [queue])
	one.lease_seconds = LEASE_SECONDS
	one.turns.since_low = 0  # the turn of low priorities would be a short one
	for _ in range(REMEMBERED):
		one.pace.note(job_type, 0.001)
	while one.look() and one.run_due():
		pass
	watchdog.stop()


def said_in(file: Path) -> list[dict]:
	"""What handlers have told, one after the other."""
	return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _say(parameters: dict, context, **told) -> None:
	with open(parameters["file"], "a") as file:
		file.write(json.dumps({"job": context.job_name, "attempt": context.attempt, **told}) + "\n")


@job_handler
def act(parameters: dict, context) -> dict | None:
	"""Whatever its parameters say."""
	_say(parameters, context)
	if parameters.get("leave"):
		effects.leave(f"{context.job_name} {context.attempt}", context.job_name)
	if cancel := parameters.get("cancel"):
		with database.beside():
			control.cancel(cancel)
			frappe.db.commit()
	if child := parameters.get("child"):
		with database.beside():
			submit(REPEATABLE, {}, context.organization, job_id=child, depends_on=context.job_name)
			frappe.db.commit()
	time.sleep(parameters.get("sleep", 0))
	if parameters.get("in_c"):
		ctypes.PyDLL(None).usleep(int(parameters["in_c"] * 1_000_000))  # keeps the GIL meanwhile
	if _times_run(parameters, context) <= parameters.get("kill", 0):
		_die(parameters)
	if parameters.get("exit"):
		raise SystemExit("enough")
	return parameters.get("result")


def _times_run(parameters: dict, context) -> int:
	return len([one for one in said_in(Path(parameters["file"])) if one["job"] == context.job_name])


def _die(parameters: dict) -> None:
	if parameters.get("with_watchdog"):
		for pid in children_of(os.getpid()):
			os.kill(pid, signal.SIGKILL)
	os.kill(os.getpid(), signal.SIGKILL)


@job_handler
def touch(parameters: dict, context) -> None:
	"""Has to do with the database in one of many ways."""
	USES[parameters["how"]]()


def _get_lock() -> None:
	lock = {"mariadb": "select get_lock('batching', 0)", "postgres": "select pg_try_advisory_xact_lock(17)"}
	frappe.db.multisql(lock)


def _raw_cursor() -> None:
	with frappe.db._conn.cursor() as cursor:
		cursor.execute("select 1")


USES = {
	"nothing": lambda: None,
	"insert": lambda: effects.leave(frappe.generate_hash(length=20), "touch"),
	"read": lambda: frappe.db.sql("select count(*) from `tabJob Type`"),
	"locking read": lambda: frappe.db.sql("select name from `tabJob Type` limit 1 for update"),
	"named lock": _get_lock,
	"temporary table": lambda: frappe.db.sql("create temporary table if not exists batching (a int)"),
	"raw cursor": _raw_cursor,
	"own commit": lambda: frappe.db.commit(),
	"before commit": lambda: frappe.db.before_commit.add(lambda: None),
	"after commit": lambda: frappe.db.after_commit.add(lambda: None),
	"before rollback": lambda: frappe.db.before_rollback.add(lambda: None),
	"after rollback": lambda: frappe.db.after_rollback.add(lambda: None),
}
