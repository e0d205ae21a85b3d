"""Inside somebody else's transaction: wait shortly, leave nothing behind, and say what must be done again."""

from collections.abc import Iterator
from contextlib import contextmanager

import frappe
from frappe import _

from dartwing_jobs.engine import database, statements
from dartwing_jobs.errors import SubmitConflict

# how long a submit waits for another one that has the same key and is not committed
WAIT_SECONDS = 3
SAVEPOINT = "dartwing_keys"
WAIT_SHORTLY = {
	"mariadb": "set @dartwing_wait = @@innodb_lock_wait_timeout, innodb_lock_wait_timeout = {seconds}",
	"postgres": """select set_config('dartwing.wait', current_setting('lock_timeout'), true),
		set_config('lock_timeout', '{seconds}s', true)""",
}
WAIT_AS_BEFORE = {
	"mariadb": "set innodb_lock_wait_timeout = @dartwing_wait",
	"postgres": "select set_config('lock_timeout', current_setting('dartwing.wait'), true)",
}


@contextmanager
def conflicts_named(message: str | None = None) -> Iterator[None]:
	"""In a caller's transaction nothing can be tried again: whoever began it must, and is told by a class."""
	try:
		yield
	except Exception as error:
		if isinstance(error, SubmitConflict) or not database.is_conflict(error):
			raise
		said = message or _("The submit met another transaction. Roll back and try again.")
		raise SubmitConflict(said) from error


@contextmanager
def undone_if_refused() -> Iterator[None]:
	"""Inside, waits for others are short; what raises leaves nothing behind in the caller's transaction."""
	database_type = frappe.db.db_type
	_send(WAIT_SHORTLY[database_type].format(seconds=WAIT_SECONDS), f"savepoint {SAVEPOINT}")
	try:
		yield
		_send(f"release savepoint {SAVEPOINT}", WAIT_AS_BEFORE[database_type])
	except Exception as error:
		if not database.has_lost_transaction(error):
			statements.execute(f"rollback to savepoint {SAVEPOINT}")
		if not database.is_lost_connection(error):
			statements.execute(WAIT_AS_BEFORE[database_type])
		raise


def _send(*several: str) -> None:
	trip = statements.Trip()
	for statement in several:
		trip.execute(statement)
	trip.send()
