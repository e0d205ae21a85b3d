"""A small process beside each drain: beats for it, reports its progress, and ends handlers that will not end.

A thread would stop while C code holds the GIL, and the drain's own connection belongs to the handler.
"""

import contextlib
import json
import os
import select
import signal
import time
from dataclasses import dataclass, field

import frappe

from dartwing_jobs import clock
from dartwing_jobs.engine import database, lease, outcomes, states
from dartwing_jobs.errors import JobTimeout

BEAT_SECONDS = lease.LEASE_SECONDS / 3
# progress is written at most this often
REPORT_SECONDS = 0.4
# what a handler gets after its deadline to clean up, before its process is killed
GRACE_SECONDS = 2
LOOK_SECONDS = 0.1


class Watchdog:
	"""The drain's end: tells the process what runs now."""

	def __init__(self):
		reading, self.pipe = os.pipe()
		drain = os.getpid()
		self.pid = os.fork()
		if self.pid == 0:
			os.close(self.pipe)
			_live(reading, drain)
		os.close(reading)

	def watch(self, job, lease_token: str, run_name: str) -> None:
		seconds = job.timeout_seconds
		self._tell(watch={"name": job.name, "token": lease_token, "run": run_name, "seconds": seconds})

	def report(self, columns: dict) -> None:
		self._tell(report=columns)

	def rest(self) -> None:
		self._tell(rest=True)

	def stop(self) -> None:
		os.close(self.pipe)
		with contextlib.suppress(ChildProcessError):
			os.waitpid(self.pid, 0)

	def _tell(self, **message) -> None:
		# shorter than PIPE_BUF, so that a message is never torn
		os.write(self.pipe, json.dumps(message).encode() + b"\n")


@dataclass
class Watched:
	name: str
	token: str
	run: str
	seconds: float
	since: float = field(default_factory=time.monotonic)
	beat_at: float = 0
	reported_at: float = 0
	pending: dict = field(default_factory=dict)

	def overdue(self, grace: float) -> bool:
		return time.monotonic() - self.since > self.seconds + grace


def _live(pipe: int, drain: int) -> None:
	"""The process: never returns, never raises into the drain's code."""
	code = 1
	with contextlib.suppress(BaseException):
		inherited = frappe.local.db  # kept, unused: closing it would end the drain's own session
		_connect()
		_Process(pipe, drain, inherited).run()
		code = 0
	os._exit(code)


def _connect() -> None:
	site = frappe.local.site
	frappe.init(site, force=True)
	frappe.connect()
	database.read_committed()


class _Process:
	def __init__(self, pipe: int, drain: int, inherited: object):
		self.pipe, self.drain, self.inherited = pipe, drain, inherited
		self.buffer = b""
		self.watched: Watched | None = None
		self.worker = _parent_of(drain)

	def run(self) -> None:
		while self._listen():
			if _parent_of(self.drain) != self.worker:
				os.kill(self.drain, signal.SIGKILL)  # its worker was killed: nobody would answer for it
				return
			if self.watched:
				self._attend(self.watched)

	def _listen(self) -> bool:
		"""Reads what the drain says; False when it has gone."""
		if not select.select([self.pipe], [], [], LOOK_SECONDS)[0]:
			return True
		data = os.read(self.pipe, 65536)
		*lines, self.buffer = (self.buffer + data).split(b"\n")
		for line in lines:
			self._hear(json.loads(line))
		return bool(data)

	def _hear(self, message: dict) -> None:
		if "watch" in message:
			self.watched = Watched(**message["watch"])
		elif "rest" in message:
			self.watched = None
		elif self.watched:
			self.watched.pending |= message["report"]
			self._report(self.watched)

	def _attend(self, watched: Watched) -> None:
		now = time.monotonic()
		if watched.pending:
			self._report(watched)
		if now - watched.beat_at > BEAT_SECONDS:
			watched.beat_at = now
			if not lease.renew(watched.token):
				self._end_drain()  # the job is another's now: what this handler still does must not be kept
		if watched.overdue(GRACE_SECONDS):
			self._end_drain()
			_record_timeout(watched)

	def _report(self, watched: Watched) -> None:
		if time.monotonic() - watched.reported_at < REPORT_SECONDS:
			return
		watched.reported_at = time.monotonic()
		_write_progress(watched.name, watched.token, watched.pending)
		watched.pending = {}

	def _end_drain(self) -> None:
		os.kill(self.drain, signal.SIGKILL)
		self.watched = None


@database.own_transaction
def _write_progress(job_name: str, token: str, columns: dict) -> None:
	job = frappe.qb.DocType("Background Job")
	update = frappe.qb.update(job).where((job.name == job_name) & (job.lease_token == token))
	for column, value in columns.items():
		update = update.set(job[column], value)
	update.run()


def _record_timeout(watched: Watched) -> None:
	"""The handler did not hear its alarm, so its process was killed; its job is recorded from here."""
	from dartwing_jobs.engine.attempt import Attempt

	job = frappe.db.get_value("Background Job", watched.name, "*", as_dict=True)
	if job is None or job.status != states.RUNNING or job.lease_token != watched.token:
		return
	attempt = Attempt(
		job, frappe.get_cached_doc("Job Type", job.job_type), watched.token, watched.run, job.started_at
	)
	error = JobTimeout(f"The job ran longer than its {watched.seconds:g} seconds and was killed")
	database.own_transaction(outcomes.timed_out)(attempt, error, str(error), clock.now())


def _parent_of(pid: int) -> int:
	"""The drain's worker; when that dies, the system gives the drain another parent."""
	with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as stat:
		return int(stat.read().rpartition(")")[2].split()[1])
	return 0
