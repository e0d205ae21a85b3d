"""Work for after a commit: gathered while the transaction lasts, done once, and never at its caller's cost.

Frappe runs the callbacks of a commit one by one. One that commits runs those behind it inside of itself, each
deeper than the one before. So work of the engine that commits is one callback, and what follows from it waits
until it has ended.
"""

from collections import deque
from collections.abc import Callable

import frappe

from dartwing_jobs.engine import database
from dartwing_jobs.engine.handling import write_guard

# gets everything that was gathered for it
Work = Callable[[list], object]
# work that follows from work that follows from work: no honest chain is as long
MOST_ROUNDS = 20


class TooManyRounds(Exception):
	"""Work after a commit leads to more such work, again and again."""


def gather(work: Work, *items) -> None:
	"""Once this transaction is committed, `work` gets these items, with all that were gathered for it."""
	db = frappe.local.db
	batch = getattr(db, "dartwing_gathered", None)
	# Frappe forgets callbacks when the transaction is rolled back, and does not say so
	if batch is None or not database.waits_for_commit(batch.do):
		batch = db.dartwing_gathered = Batch(_runner(db))
		database.add_after_commit(batch.do)
	batch.gathered.setdefault(work, []).extend(items)


class Batch:
	"""The work of one transaction."""

	def __init__(self, runner: "Runner"):
		self.runner, self.round = runner, runner.round + 1
		self.gathered: dict[Work, list] = {}

	def do(self) -> None:
		self.runner.do(self)


class Runner:
	"""Does the batches of one connection, one after the other."""

	def __init__(self) -> None:
		self.waiting: deque[Batch] = deque()
		self.round = 0  # of the batch that is being done; 0 for none

	def do(self, batch: Batch) -> None:
		self.waiting.append(batch)
		if self.round:
			return  # inside of another batch, whose runner comes to this one
		try:
			while self.waiting:
				self._do_next()
		finally:
			self.round = 0
			self.waiting.clear()

	def _do_next(self) -> None:
		batch = self.waiting.popleft()
		self.round = batch.round
		for work, items in batch.gathered.items():
			_do(work, items, batch.round)


def _do(work: Work, items: list, number: int) -> None:
	"""Never raises: the commit has happened, and a sweep finds what was left undone."""
	earlier = database.waiting_for_commit()
	try:
		if number > MOST_ROUNDS:
			raise TooManyRounds(f"After {MOST_ROUNDS} rounds of work after a commit there is still more.")
		with write_guard.lifted():  # it may be a checkpoint's commit
			work(items)
	except Exception as error:
		database.rollback_all_but(earlier)
		database.report(f"{work.__module__}.{work.__qualname__}: after a commit", error)


def _runner(db) -> Runner:
	runner = getattr(db, "dartwing_runner", None)
	if runner is None:
		runner = db.dartwing_runner = Runner()
	return runner
