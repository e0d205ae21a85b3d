"""The only writer of a job's status: a guarded update and its log row, both or neither."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

import frappe

from dartwing_jobs import clock
from dartwing_jobs.engine import database, log, statements, states
from dartwing_jobs.engine.groups import memberships
from dartwing_jobs.engine.intake import keys
from dartwing_jobs.engine.observing import listeners

# the moment that entering a status stamps on the job
STAMPS = {
	states.RUNNING: "started_at",
	states.COMPLETED: "completed_at",
	states.DEAD_LETTER: "completed_at",
	states.CANCELED: "canceled_at",
}


class Made(NamedTuple):
	"""Moves that a job has made one after the other, which are written at once."""

	job: dict
	path: tuple[str, ...]  # the statuses that it came to
	columns: dict  # as the last move leaves them


def move(job, to_status: str, **details) -> bool:
	"""Moves a job inside somebody else's transaction: when it fails, nothing of it is left there."""
	with both_or_neither():
		_count_anew(job)
		return apply(job, to_status, **details)


def apply(
	job,
	to_status: str,
	*,
	actor: str | None = None,
	message: str | None = None,
	now: datetime | None = None,
	by: str | None = None,
	event: str | None = None,
	guard: dict | None = None,
	or_raise: Exception | None = None,
	told: dict | None = None,
	**changes,
) -> bool:
	"""Moves a job and writes its story; False, and nothing written, when it is no longer as `job` says.

	For transactions that are thrown away as a whole when a statement fails; otherwise `move`.
	`job` is a document or a row of its fields, `changes` are other columns of the same statement, `guard` is
	what else must still be so, `event` what the log calls it if not by the table's word, `told` what only the
	log is told. `or_raise` is raised instead of answering False.
	"""
	from_status = job.status
	event = event or states.transition(from_status, to_status).event
	now, by = now or clock.now(), by or frappe.session.user
	columns = {**_columns(to_status, now, by, actor), "moves": job.moves + 1, **changes}
	guard = {"status": from_status, **(guard or {})}
	if not statements.update("Background Job", job.name, columns, guard):
		if or_raise:
			raise or_raise
		return False
	told = {"actor": actor, "message": message, "now": now, "by": by, "changes": columns, **(told or {})}
	log.write(job, event, from_status, to_status, **told)
	_tell(job, to_status, now, columns)
	return True


def apply_to_all(
	jobs: list,
	to_status: str,
	*,
	actor: str | None = None,
	messages: list[str | None],
	now: datetime,
	**changes,
) -> None:
	"""The same move for many jobs, all of one status, that the caller has locked: one statement for all.

	Each has its own log row, with its own message.
	"""
	from_status, by = jobs[0].status, frappe.session.user
	event = states.transition(from_status, to_status).event
	columns = _columns(to_status, now, by, actor) | changes
	assignments = ", ".join(["moves = moves + 1", *(f"`{column}` = %s" for column in columns)])
	names = ", ".join(["%s"] * len(jobs))
	statements.execute(
		f"update `tabBackground Job` set {assignments} where name in ({names}) and status = %s",
		[*columns.values(), *(job.name for job in jobs), from_status],
	)
	for job in jobs:
		job.moves += 1
	told = {"actor": actor, "now": now, "by": by, "changes": columns}
	log.insert_rows(
		[
			log.row(job, event, from_status, to_status, message=message, **told)
			for job, message in zip(jobs, messages, strict=True)
		]
	)
	for job in jobs:
		_tell(job, to_status, now, columns)


def check_each(made: list[Made]) -> None:
	"""Raises if the table has no such moves."""
	for one in made:
		for from_status, to_status in pairwise((one.job["status"], *one.path)):
			states.transition(from_status, to_status)


def tell_each(made: list[Made]) -> None:
	"""Those who follow the moves of jobs, for moves that are written by a trip."""
	for one in made:
		_tell_of_path(one)


def _tell_of_path(made: Made) -> None:
	job, *before, last = frappe._dict(made.job), *made.path
	for status in before:
		listeners.tell_after_commit(job.name, job.status, status)
		if job.job_group:
			memberships.follow(job, status)
		job.status = status
	_tell(job, last, made.columns["modified"], made.columns)


def columns_of(path: tuple[str, ...], moments: tuple[datetime, ...], by: str, moves: int) -> dict:
	"""What moves along a path set by themselves."""
	columns: dict = {"moves": moves + len(path)}
	for status, now in zip(path, moments, strict=True):
		columns |= _columns(status, now, by, None)
	return columns


def _tell(job, to_status: str, now: datetime, columns: dict) -> None:
	"""Those who follow a job's moves; `job` becomes what the move made of it."""
	keys.follow(job, to_status, now, columns)
	if job.get("job_group"):
		memberships.follow(job, to_status)
	listeners.tell_after_commit(job.name, job.status, to_status)
	job.update(columns)


def _count_anew(job) -> None:
	"""Locks a job that its caller has read, perhaps long ago: its next move must have the next number."""
	rows = statements.fetch("select moves from `tabBackground Job` where name = %s for update", (job.name,))
	if rows:
		job.moves = rows[0].moves


@contextmanager
def both_or_neither() -> Iterator[None]:
	"""Undoes every statement inside when one of them fails, and nothing before them."""
	savepoint = "dartwing_move"
	frappe.db.savepoint(savepoint)
	try:
		yield
	except Exception as error:
		# after a conflict the server has rolled the whole transaction back: there is no savepoint left
		if not database.has_lost_transaction(error):
			frappe.db.rollback(save_point=savepoint)
		raise
	frappe.db.release_savepoint(savepoint)


def _columns(to_status: str, now: datetime, by: str, actor: str | None) -> dict:
	columns = {"status": to_status, "modified": now, "modified_by": by}
	if to_status in STAMPS:
		columns[STAMPS[to_status]] = now
	if to_status == states.CANCELED:
		columns["canceled_by"] = actor
	return columns
