"""What the engine needs of the database beyond Frappe: its clock, its isolation, its conflicts."""

import contextlib
import os
import random
import select
import socket
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from functools import partial, wraps
from zoneinfo import ZoneInfo

import frappe
from frappe.utils import get_system_timezone

from dartwing_jobs import clock
from dartwing_jobs.engine import statements
from dartwing_jobs.engine.observing import reports
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
# too many connections, interrupted, over its time, not reachable
BUSY_NUMBERS = frozenset({1040, 1203, 1317, 1969, 2002, 2003})
# MariaDB: a packet that is too large, a CHECK that fails; PostgreSQL: the class of limits that are exceeded
REFUSED_NUMBERS, REFUSED_CODES = frozenset({1153, 4025}), "54"
TRIES = 8
# after about half a minute without a sign of the other side's machine a connection is lost
SILENCE = {
	socket.TCP_KEEPIDLE: 10,
	socket.TCP_KEEPINTVL: 5,
	socket.TCP_KEEPCNT: 4,
	socket.TCP_USER_TIMEOUT: 30_000,
}
# failures after one commit that get a row of Error Log
MOST_REPORTED = 20
# how MariaDB compares texts byte by byte: spaces at the end count with the first, not with the second.
# JSON has the second, and MariaDB puts no column with the first beside JSON into one `json_object`
EVERY_BYTE, BYTES_OF_WORDS = "utf8mb4_nopad_bin", "utf8mb4_bin"


def utc_now() -> datetime:
	"""The database's clock, naive UTC: the one clock that all workers share."""
	now = statements.value("utc_timestamp(6)")
	clock.set_by(now)
	return now


def tell_time() -> None:
	"""For `clock`."""
	utc_now()


def as_site_time(utc: datetime) -> datetime:
	zone = ZoneInfo(get_system_timezone())
	return utc.replace(tzinfo=timezone.utc).astimezone(zone).replace(tzinfo=None)


def read_committed() -> None:
	"""For a worker's connection: a handler must not fail because a heartbeat touched its job's row."""
	statements.fetch("select 1 as one")  # a connection is opened by its first statement
	frappe.db.rollback()
	if frappe.db.db_type == "mariadb":
		statements.execute("set session transaction isolation level read committed")
	else:
		# Frappe told the driver otherwise, and the driver says so at the start of each transaction
		frappe.db._conn.rollback()
		frappe.db._conn.set_session(isolation_level="READ COMMITTED")
	_notice_silence()
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
	if not frappe.db._conn:
		return
	nowhere = os.open(os.devnull, os.O_RDWR)
	os.dup2(nowhere, _descriptor(frappe.db._conn))  # whatever the driver says when it is cleaned up is lost
	os.close(nowhere)


def be_impatient(seconds: int) -> None:
	"""For a process that must not wait long: an answer that comes later than this counts as none.

	Holds for connections that are made from here on.
	"""
	if frappe.db.db_type == "mariadb":
		limits = dict.fromkeys(("connect_timeout", "read_timeout", "write_timeout"), seconds)
		db = frappe.local.db
		usual = partial(type(db).get_connection_settings, db)
		db.get_connection_settings = lambda: usual() | limits
	else:
		from psycopg2.extensions import set_wait_callback

		set_wait_callback(partial(_wait_for_postgres, seconds))


def be_patient() -> None:
	"""In a child of such a process; MariaDB's limits belong to the connection that it leaves behind."""
	if frappe.db.db_type != "mariadb":
		from psycopg2.extensions import set_wait_callback

		set_wait_callback(None)


def _wait_for_postgres(seconds: int, connection) -> None:
	"""psycopg2 calls this whenever it waits; what is raised here closes the connection."""
	from psycopg2.extensions import POLL_OK, POLL_READ

	until = time.monotonic() + seconds
	while (state := connection.poll()) != POLL_OK:
		reading, writing = ([connection], []) if state == POLL_READ else ([], [connection])
		if not any(select.select(reading, writing, [], max(0, until - time.monotonic()))):
			raise frappe.db.OperationalError(f"PostgreSQL did not answer within {seconds} seconds")


def _notice_silence() -> None:
	"""A server whose machine or network has gone is noticed by the system, while no query is too long."""
	with socket.socket(fileno=os.dup(_descriptor(frappe.db._conn))) as line:
		if line.family in (socket.AF_INET, socket.AF_INET6):
			line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
			for option, value in SILENCE.items():
				line.setsockopt(socket.IPPROTO_TCP, option, value)


def _descriptor(connection) -> int:
	"""Of a connection's socket. PyMySQL alone has no public name for it."""
	return (connection if hasattr(connection, "fileno") else connection._sock).fileno()


@contextlib.contextmanager
def beside() -> Iterator[None]:
	"""Another connection for a moment: it sees what is committed now, whatever this transaction has seen."""
	own = frappe.local.db
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
	if frappe.db.db_type == "mariadb":
		return bool(statements.fetch(f"{statement} wait {int(seconds)}", (name,)))
	(before,) = statements.fetch(
		f"""select current_setting('lock_timeout') as wait,
		set_config('lock_timeout', '{int(seconds)}s', true)"""
	)
	rows = statements.fetch(statement, (name,))
	statements.fetch("select set_config('lock_timeout', %s, true)", (before.wait,))
	return bool(rows)


def is_just(column: str) -> str:
	"""SQL for a column that has just this value. Takes the value twice, for MariaDB.

	MariaDB also finds names in other letters, with other accents, and with spaces at the end. The plain
	comparison is for the index.
	"""
	exactly = "binary {0} = %s" if frappe.db.db_type == "mariadb" else "{0} = %s"
	return f"{column} = %s and {exactly.format(column)}"


def stored_name(doctype: str, name: str) -> str | None:
	"""The name of a row as the database has it, however it was typed; None when there is no such row."""
	rows = statements.fetch(f"select name from `tab{doctype}` where name = %s", (str(name),))
	return rows[0].name if rows else None


def compare_bytes(doctype: str, collations: dict[str, str]) -> None:
	"""Lets texts of these columns differ by any byte, as PostgreSQL does; a migration may have undone it."""
	if frappe.db.db_type != "mariadb":
		return
	found = statements.fetch(
		f"""select column_name as name, column_type as type, collation_name as collation
		from information_schema.columns where table_schema = database() and table_name = %s
		and column_name in ({", ".join(["%s"] * len(collations))})""",
		(f"tab{doctype}", *collations),
	)
	wrong = [column for column in found if column.collation != collations[column.name]]
	changes = [f"modify `{column.name}` {column.type} collate {collations[column.name]}" for column in wrong]
	if changes:
		frappe.db.sql_ddl(f"alter table `tab{doctype}` {', '.join(changes)}")


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
	frappe.db.dartwing_places = frappe.db.dartwing_rings = None
	try:
		frappe.db.rollback()
	except Exception:
		reconnect()


def waiting_for_commit() -> list[Callable]:
	"""What is still to be done after a commit: Frappe forgets all of it when anything is rolled back."""
	return list(_after_commit()._functions)


def waits_for_commit(callback: Callable) -> bool:
	return callback in _after_commit()._functions


def add_after_commit(callback: Callable) -> None:
	_after_commit().add(callback)


def wait_for_commit(callbacks: list[Callable]) -> None:
	"""These, and no others, are to be done after the commit."""
	_after_commit().reset()
	for callback in callbacks:
		_after_commit().add(callback)


def do_what_waits(what: str) -> None:
	"""What is to be done after the commit that has just happened. What fails reaches the log, not the caller.

	Each callback has its turn, although one before it has failed.
	"""
	failures = 0
	while waiting_for_commit():
		earlier = waiting_for_commit()
		try:
			_after_commit().run()
		except Exception as error:
			rollback_all_but(earlier)
			failures += 1
			report(what, error, is_one_of_many=failures > MOST_REPORTED)


def report(what: str, error: Exception, is_one_of_many: bool = False) -> None:
	"""Into Error Log, in a transaction of its own; into the worker's log, if that cannot be."""
	try:
		if is_one_of_many:
			reports.to_log(what, error)
		else:
			reports.to_error_log(what, error)
			statements.commit()
	except Exception as another:
		rollback_all_but(waiting_for_commit())
		reports.to_log(what, error)
		reports.to_log("Error Log could not be written", another)


def _after_commit():
	"""Frappe's own callbacks, also while those of a handler are guarded."""
	callbacks = frappe.local.db.after_commit
	return getattr(callbacks, "callbacks", callbacks)


def is_something_to_be_done_later() -> bool:
	"""Whether anything waits for the end of the transaction, however that ends."""
	db = frappe.local.db
	at_commit = db.before_commit._functions or db.after_commit._functions
	return bool(at_commit or db.before_rollback._functions or db.after_rollback._functions)


def rollback_all_but(earlier: list[Callable]) -> None:
	"""As `rollback`, for work that is done after a commit: what waits behind it must not be lost with it."""
	left = [callback for callback in waiting_for_commit() if callback in earlier]
	rollback()
	wait_for_commit(left)


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
		return _is_of_driver(error) and _number(error) in LOST_NUMBERS
	return bool(frappe.db._conn) and frappe.db._conn.closed != 0


def is_refusal(error: Exception) -> bool:
	"""Whether the database will never take what it was given: that does not fit, or breaks a rule."""
	code = getattr(error, "pgcode", None) or ""
	if _number(error) in REFUSED_NUMBERS or code.startswith(REFUSED_CODES):
		return True
	connection = frappe.db._conn  # PEP 249: it has the classes of the driver's errors
	return bool(connection) and isinstance(error, connection.DataError | connection.IntegrityError)


def may_go_away(error: BaseException) -> bool:
	"""Whether the database was busy, restarted or not reachable; asked also when it answers again."""
	if frappe.db.db_type == "mariadb":
		numbers = CONFLICT_NUMBERS | LOST_NUMBERS | BUSY_NUMBERS
		return is_conflict(error) or (_is_of_driver(error) and _number(error) in numbers)
	import psycopg2  # only where it is the driver

	return is_conflict(error) or isinstance(error, psycopg2.OperationalError | psycopg2.InterfaceError)


def _is_of_driver(error: BaseException) -> bool:
	"""PEP 249: OperationalError is a DatabaseError is an Error, and InterfaceError is an Error, too."""
	return isinstance(error, frappe.db.OperationalError.__mro__[2])


def _number(error: Exception) -> int | None:
	return error.args[0] if error.args and isinstance(error.args[0], int) else None


def own_transaction(function: Callable, is_committed: Callable[..., bool] | None = None) -> Callable:
	"""Runs a short piece of engine work as a transaction of its own, again when it met another one.

	Only what is known not to be committed is done again. When the connection is lost during the commit,
	`is_committed` is asked whether a result was kept; without it the error is raised.
	"""

	@wraps(function)
	def run(*args, **kwargs):
		earlier, doubtful = waiting_for_commit(), []
		for number in range(1, TRIES + 1):
			sent = []
			try:
				sent.append(function(*args, **kwargs))
				statements.commit()
				break
			except Exception as error:
				is_lost, waiting = is_lost_connection(error), waiting_for_commit()
				rollback_all_but(earlier)
				if is_lost and sent and is_committed is None:
					raise
				doubtful += sent if is_lost else ()
				if sent := [result for result in doubtful if is_committed(result)]:
					wait_for_commit(waiting)
					break
				if number == TRIES or not (is_lost or is_conflict(error)):
					raise
				time.sleep(random.random() * 0.02 * number)
		do_what_waits("After a commit of the engine")
		return sent[0]

	return run
