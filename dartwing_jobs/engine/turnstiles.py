"""Turnstiles: who counts under a limit goes through one, and the next one waits until their transaction ends.

Rows of their own: workers and submitters must never wait for each other, nor for somebody who edits a limit.
"""

import frappe

from dartwing_jobs import clock
from dartwing_jobs.engine import database, statements

DOCTYPE = "Job Turnstile"
# how long somebody waits for those who went before and have not ended their transaction yet
WAIT_SECONDS = 5


def enter(name: str) -> None:
	"""Locks a turnstile until the end of this transaction; a conflict when that takes too long."""
	if not database.lock_row(DOCTYPE, name, WAIT_SECONDS):
		_make(name)
		database.lock_row(DOCTYPE, name, WAIT_SECONDS)


def _make(name: str) -> None:
	"""Made once and for all, at once visible to everybody."""
	now = clock.now()
	row = {"name": name, "owner": "Administrator", "creation": now, "modified": now, "purpose": name}
	with database.beside():
		try:
			statements.insert(DOCTYPE, [row])
			frappe.db.commit()  # nosemgrep: a connection of its own
		except Exception as error:
			if not frappe.db.is_primary_key_violation(error):
				raise
