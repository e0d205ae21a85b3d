"""A handler's own commits: kept only while its attempt still holds the job.

`frappe.db.commit()` and a commit through `frappe.db.sql` are looked at. Another connection, and the driver's
own methods, are out of reach.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import frappe

from dartwing_jobs.engine.handling.write_guard import in_place_of

# what is no part of a statement: texts, quoted names, comments; some comments are executed by MariaDB
BESIDE = re.compile(
	r"""'[^']*' | "[^"]*" | `[^`]*` | /\*(?!!|M!).*?\*/ | --(?:[ \t][^\n]*)?(?=\n|\Z)""",
	re.VERBOSE | re.DOTALL,
)
# where a text ends depends on the database if one of these is in it
AMBIGUOUS = re.compile(r"[\\$]")
COMMIT = re.compile(r"\bcommit\b | (?:\A|;)\s*end\b", re.VERBOSE | re.IGNORECASE)


def commits(query: str) -> bool:
	"""Whether a query ends a transaction and keeps it; rather too careful than too bold."""
	if not COMMIT.search(query):
		return False
	return bool(AMBIGUOUS.search(query) or COMMIT.search(BESIDE.sub(" ", query)))


class Guard:
	"""Watches one connection while one handler runs."""

	def __init__(self, hold: Callable[[], object]):
		self.hold = hold  # locks the job's row, or rolls back and raises
		self.is_held = False

	def around_commit(self, commit: Callable) -> Callable:
		def guarded(*args, **kwargs):
			self.hold_once()
			try:
				return commit(*args, **kwargs)
			finally:
				self.is_held = False

		return guarded

	def around_sql(self, sql: Callable) -> Callable:
		def guarded(query, *args, **kwargs):
			if commits(str(query)):
				self.hold_once()
				self.is_held = False  # only until this commit
			return sql(query, *args, **kwargs)

		return guarded

	def hold_once(self) -> None:
		"""Frappe's commit is a statement, too."""
		if not self.is_held:
			self.hold()
			self.is_held = True


@contextmanager
def guarding(hold: Callable[[], object]) -> Iterator[None]:
	"""Inside, each commit of a handler calls `hold` first."""
	db = frappe.local.db
	guard = db.dartwing_commit_guard = Guard(hold)
	try:
		with in_place_of(db, "sql", guard.around_sql), in_place_of(db, "commit", guard.around_commit):
			yield
	finally:
		db.dartwing_commit_guard = None


def commit_held() -> None:
	"""`frappe.db.commit` of a checkpoint, which holds the job's row already."""
	if guard := getattr(frappe.local.db, "dartwing_commit_guard", None):
		guard.is_held = True
	frappe.db.commit()  # nosemgrep: a checkpoint keeps what has been done so far
