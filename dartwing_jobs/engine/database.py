"""What the engine needs of the database beyond Frappe: its clock, its isolation, its conflicts."""

import contextlib
import os
import random
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from functools import wraps
from zoneinfo import ZoneInfo

import frappe
from frappe.utils import get_system_timezone

from dartwing_jobs.engine import statements
from dartwing_jobs.errors import SubmitConflict

# MariaDB: record changed since read, deadlock: the server has rolled back the whole transaction; lock timeout
FATAL_NUMBERS = frozenset({1020, 1213})
CONFLICT_NUMBERS = FATAL_NUMBERS | {1205}
# PostgreSQL: serialization failure, deadlock, lock timeout
CONFLICT_CODES = frozenset({"40001", "40P01", "55P03"})
# what a unique index says
DUPLICATE_NUMBER, DUPLICATE_CODE = 1062, "23505"
# the server went away, shuts down, killed the connection, or it was cut in the middle of an answer
LOST_NUMBERS = frozenset({0, 1053, 1927, 2006, 2013, 2055})
TRIES = 8


def utc_now() -> datetime:
	"""The database's clock, naive UTC: the one clock that all workers share."""
	return statements.value("utc_timestamp(6)")


def due_moment(site_time: datetime | str | None) -> datetime:
	"""When a job falls due, in UTC: at a moment of site time, or now."""
	if not site_time:
		return utc_now()
	local = frappe.utils.get_datetime(site_time).replace(tzinfo=ZoneInfo(get_system_timezone()))
	return local.astimezone(timezone.utc).replace(tzinfo=None)


def as_site_time(utc: datetime) -> datetime:
	zone = ZoneInfo(get_system_timezone())
	return utc.replace(tzinfo=timezone.utc).astimezone(zone).replace(tzinfo=None)


def read_committed() -> None:
	"""For a worker's connection: a handler must not fail because a heartbeat touched its job's row."""
	frappe.db.sql("select 1")  # a connection is opened by its first statement
	frappe.db.rollback()
	if frappe.db.db_type == "mariadb":
		frappe.db.sql("set session transaction isolation level read committed")
	else:
		# Frappe told the driver otherwise, and the driver says so at the start of each transaction
		frappe.db._conn.rollback()
		frappe.db._conn.set_session(isolation_level="READ COMMITTED")
	frappe.db.commit()  # nosemgrep: the next transaction is the first with the new level


def begin_read_committed() -> None:
	"""For this transaction alone: a stricter one would lock the gaps that every move writes into."""
	statements.fetch("select 1 as one")  # a connection is opened by its first statement
	frappe.db._conn.rollback()
	statements.execute("set transaction isolation level read committed")


def reconnect() -> None:
	"""A new connection in place of one that was interrupted."""
	with contextlib.suppress(Exception):
		frappe.db.close()
	frappe.db._conn = None
	for callbacks in (frappe.db.before_commit, frappe.db.after_commit, frappe.db.before_rollback):
		callbacks.reset()
	read_committed()


def leave_to_parent() -> None:
	"""In a forked process: lets go of the connection without a word, for it is the parent's.

	While any process holds its socket, the server does not notice that the parent was killed, and keeps
	the locks of its transaction.
	"""
	connection = frappe.db._conn
	if not connection:
		return
	socket = connection if hasattr(connection, "fileno") else connection._sock
	nowhere = os.open(os.devnull, os.O_RDWR)
	os.dup2(nowhere, socket.fileno())  # whatever the driver says when it is cleaned up, nobody hears
	os.close(nowhere)


@contextlib.contextmanager
def beside() -> Iterator[None]:
	"""Another connection for a moment: it sees what is committed now, whatever this transaction has seen."""
	own = frappe.local.db
	with statements.apart():
		frappe.connect(set_admin_as_user=False)
		try:
			yield
		finally:
			try:
				frappe.db.close()
			finally:
				frappe.local.db = own


def lock_row(doctype: str, name: str, seconds: int) -> bool:
	"""Locks a row until the transaction ends; False when there is none.

	Who waits longer than this for another transaction gives up, with a conflict.
	"""
	statement = f"select name from `tab{doctype}` where name = %s for update"
	statements.arrive()  # MariaDB takes no such wait beside other statements
	if frappe.db.db_type == "mariadb":
		return bool(statements.fetch(f"{statement} wait {int(seconds)}", (name,)))
	(before,) = statements.fetch(
		f"""select current_setting('lock_timeout') as wait,
		set_config('lock_timeout', '{int(seconds)}s', true)"""
	)
	rows = statements.fetch(statement, (name,))
	statements.fetch("select set_config('lock_timeout', %s, true)", (before.wait,))
	return bool(rows)


def wait_at_most(seconds: int) -> None:
	"""From here on, for as long as this connection lives, nobody is waited for longer than this."""
	setting = "innodb_lock_wait_timeout" if frappe.db.db_type == "mariadb" else "lock_timeout"
	unit = "" if frappe.db.db_type == "mariadb" else "000"
	statements.execute(f"set session {setting} = {int(seconds)}{unit}")


def see_what_is_committed() -> None:
	"""For a transaction that has only read: its next read begins a new snapshot."""
	if frappe.db.db_type == "mariadb":
		statements.execute("commit")


def rollback() -> None:
	"""Throws away what was not committed, also when the connection itself is gone."""
	# a commit that failed has dropped what was to be done after a rollback
	frappe.local.dartwing_groups = frappe.local.dartwing_places = frappe.db.dartwing_rings = None
	try:
		frappe.db.rollback()
	except Exception:
		reconnect()


def waiting_for_commit() -> list[Callable]:
	"""What is still to be done after a commit: Frappe forgets all of it when anything is rolled back."""
	return list(frappe.db.after_commit._functions)


def rollback_all_but(earlier: list[Callable]) -> None:
	"""As `rollback`, for work that is done after a commit: what waits behind it must not be lost with it."""
	left = [callback for callback in waiting_for_commit() if callback in earlier]
	rollback()
	for callback in left:
		frappe.db.after_commit.add(callback)


def is_conflict(error: Exception) -> bool:
	"""Whether running the same transaction again may well succeed."""
	if isinstance(error, frappe.QueryDeadlockError | frappe.QueryTimeoutError | SubmitConflict):
		return True
	return _number(error) in CONFLICT_NUMBERS or getattr(error, "pgcode", None) in CONFLICT_CODES


def is_duplicate(error: Exception, index: str) -> bool:
	"""Whether this unique index refused a row."""
	refused = _number(error) == DUPLICATE_NUMBER or getattr(error, "pgcode", None) == DUPLICATE_CODE
	return refused and index in str(error)


def has_lost_transaction(error: BaseException) -> bool:
	"""Whether the server has thrown away all that was not committed, or the connection with it."""
	if isinstance(error, SubmitConflict) and error.__cause__:
		error = error.__cause__
	if is_lost_connection(error):
		return True
	deadlock = isinstance(error, frappe.QueryDeadlockError) or _number(error) in FATAL_NUMBERS
	return deadlock and frappe.db.db_type == "mariadb"


def is_lost_connection(error: Exception) -> bool:
	if frappe.db.db_type == "mariadb":
		# PEP 249: OperationalError is a DatabaseError is an Error, and InterfaceError is an Error, too
		error_of_driver = frappe.db.OperationalError.__mro__[2]
		return isinstance(error, error_of_driver) and _number(error) in LOST_NUMBERS
	return bool(frappe.db._conn) and frappe.db._conn.closed != 0


def _number(error: Exception) -> int | None:
	return error.args[0] if error.args and isinstance(error.args[0], int) else None


def own_transaction(function: Callable) -> Callable:
	"""Runs a short piece of engine work as a transaction of its own, again when it met another one."""

	@wraps(function)
	def run(*args, **kwargs):
		earlier = waiting_for_commit()
		for number in range(1, TRIES + 1):
			try:
				result = function(*args, **kwargs)
				frappe.db.commit()  # nosemgrep: the engine's own transaction
				return result
			except Exception as error:
				lost = is_lost_connection(error)
				rollback_all_but(earlier)
				if number == TRIES or not (lost or is_conflict(error)):
					raise
				time.sleep(random.random() * 0.02 * number)
		raise AssertionError("unreachable")

	return run
