"""Frappe's own background jobs: `frappe.enqueue`, stock workers. A queue of its own, apart from ours."""

import os
import sys
from importlib.metadata import version

import frappe
from frappe.utils.background_jobs import get_queue

from benchmarks.systems import tally, work
from benchmarks.systems.plain_table import INSERT, PlainTable
from benchmarks.systems.system import python_version
from benchmarks.systems.tallied import TalliedSystem

QUEUE = "short"


class Native(TalliedSystem):
	def prepare(self) -> None:
		connect()

	def versions(self) -> dict[str, str]:
		return {"frappe": frappe_version(), "rq": version("rq"), "Python": python_version()}

	def send(self, kind: str, number: int) -> None:
		frappe.enqueue(do, queue=QUEUE, kind=kind, number=number, folder=str(self.folder))

	def table(self) -> PlainTable:
		return PlainTable(frappe.db.sql, frappe.db.commit)

	def forget(self) -> None:
		forget(QUEUE)

	def worker_command(self, _processes: int) -> list[str]:
		return worker_command(QUEUE)


def do(kind: str, number: int, folder: str) -> None:
	"""What a peer's job does, but a row goes the way of Frappe, which commits when the job has ended."""
	if kind == work.ROW:
		frappe.db.sql(INSERT, (number,))
		kind = work.EMPTY
	work.do(kind, number, folder)


def forget(queue: str) -> None:
	"""Takes this site's messages back; those of other sites of the bench stay."""
	for job in get_queue(queue).jobs:
		if job.kwargs.get("site") == frappe.local.site:
			job.delete()


def frappe_version() -> str:
	return getattr(frappe, "__version__", "of the embedded site")


def connect() -> None:
	frappe.init(os.environ["SITE"])
	frappe.connect()
	frappe.db.rollback()  # what it has read, it need not go on seeing while others are measured


def enqueue_stamp(number: int, queue: str, folder: str) -> None:
	frappe.enqueue(tally.stamp, queue=queue, number=number, folder=str(folder))


def worker_command(queue: str) -> list[str]:
	return [
		sys.executable,
		"-m",
		"frappe.utils.bench_helper",
		"frappe",
		"worker",
		"--queue",
		queue,
		"--quiet",
	]
