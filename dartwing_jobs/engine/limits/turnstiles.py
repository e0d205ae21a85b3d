"""Turnstiles: who counts under a limit goes through one, and the next one waits until their transaction ends.
Who counts what waits ends it at once (`capacity.py`); who counts what runs, with the start of the job.

Rows of their own: workers and submitters must never wait for each other, nor for somebody who edits a limit.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import frappe
from frappe import _

from dartwing_jobs import clock
from dartwing_jobs.engine import database, statements
from dartwing_jobs.errors import SubmitConflict

DOCTYPE = "Job Turnstile"
# how long somebody waits for those who went before and have not ended their transaction yet
WAIT_SECONDS = 5
# and who works for many, who must not all wait for one
SHORT_WAIT_SECONDS = 1
LONGEST = 140
_made: set[tuple[str, str]] = set()
# the turnstiles that were found busy by somebody who is in a hurry; None for everybody else
_busy: ContextVar[set | None] = ContextVar("busy_turnstiles", default=None)


@contextmanager
def in_a_hurry() -> Iterator[None]:
	"""Inside, nobody is waited for longer than a moment, and at no turnstile twice."""
	token = _busy.set(set())
	try:
		yield
	finally:
		_busy.reset(token)


def enter(name: str) -> None:
	"""Locks a turnstile until the end of this transaction; a conflict when that takes too long."""
	name = short(name)
	key = frappe.local.site, name
	if key not in _made:
		_make(name)
		_made.add(key)
	if not _lock(name):
		_made.discard(key)
		# PostgreSQL shows a transaction no row that is newer than its snapshot
		raise SubmitConflict(_("The limit {0} was counted for the first time; try again.").format(name))


def _lock(name: str) -> bool:
	busy = _busy.get()
	if busy is None:
		return database.lock_row(DOCTYPE, name, WAIT_SECONDS)
	if name in busy:
		raise SubmitConflict(_("The limit {0} is being counted by somebody else; try again.").format(name))
	try:
		return database.lock_row(DOCTYPE, name, SHORT_WAIT_SECONDS)
	except Exception as error:
		if database.is_conflict(error):
			busy.add(name)
		raise


def _make(name: str) -> None:
	"""Once and for all, at once visible to everybody.

	Before it is locked: who looks in vain for a row to lock may lock the gap where it would be.
	"""
	with database.beside():
		database.begin_read_committed()  # others may make it at the same moment
		database.wait_at_most(WAIT_SECONDS)
		if not statements.fetch(f"select name from `tab{DOCTYPE}` where name = %s", (name,)):
			statements.insert_missing(DOCTYPE, [_row(name)])
			frappe.db.commit()  # nosemgrep: a connection of its own


def short(name: str) -> str:
	"""Names may be longer than what this table calls a name."""
	return name if len(name) <= LONGEST else f"{name[:80]}#{hashlib.sha256(name.encode()).hexdigest()[:40]}"


def _row(name: str) -> dict:
	now = clock.now()
	return {"name": name, "owner": "Administrator", "creation": now, "modified": now, "purpose": name}
