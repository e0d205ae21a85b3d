"""What the engine needs of the database beyond Frappe: its clock, its conflicts, its isolation."""

import contextlib
import random
import time
from collections.abc import Callable
from datetime import datetime, timezone
from functools import wraps
from zoneinfo import ZoneInfo

import frappe
from frappe.utils import get_system_timezone

# MariaDB: record changed since read, lock wait timeout, deadlock; PostgreSQL: serialization failure, deadlock
CONFLICT_NUMBERS = frozenset({1020, 1205, 1213})
CONFLICT_CODES = frozenset({"40001", "40P01"})
TRIES = 5


def utc_now() -> datetime:
	"""The database's clock, naive UTC: the one clock that all workers share."""
	return frappe.db.multisql(
		{"mariadb": "select utc_timestamp(6)", "postgres": "select clock_timestamp() at time zone 'utc'"}
	)[0][0]


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


def reconnect() -> None:
	"""A new connection in place of one that was interrupted."""
	with contextlib.suppress(Exception):
		frappe.db.close()
	frappe.db._conn = None
	read_committed()


def is_conflict(error: Exception) -> bool:
	"""Whether running the same transaction again may well succeed."""
	if isinstance(error, frappe.QueryDeadlockError | frappe.QueryTimeoutError):
		return True
	number = error.args[0] if error.args else None
	return number in CONFLICT_NUMBERS or getattr(error, "pgcode", None) in CONFLICT_CODES


def own_transaction(function: Callable) -> Callable:
	"""Runs a short piece of engine work as a transaction of its own, again when it met another one."""

	@wraps(function)
	def run(*args, **kwargs):
		for number in range(1, TRIES + 1):
			try:
				result = function(*args, **kwargs)
				frappe.db.commit()  # nosemgrep: the engine's own transaction
				return result
			except Exception as error:
				frappe.db.rollback()
				if number == TRIES or not is_conflict(error):
					raise
				time.sleep(random.random() * 0.02 * number)
		raise AssertionError("unreachable")

	return run
