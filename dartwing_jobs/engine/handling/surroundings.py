"""The process and the session in which jobs run one after another: each finds them as the first one did.

Nothing is repaired: a module that a handler imports may have changed something for good reason, and would
miss it at the next job. A process that is not as it was runs no more jobs; its worker makes a new one.
"""

import contextlib
import decimal
import locale
import os
import resource
import signal
import socket
import sys
import time
import warnings

# as C has them: `signal` makes an enum of each answer, and takes ten times as long
from _signal import getsignal, pthread_sigmask
from collections.abc import Iterator

import frappe

from dartwing_jobs.engine import database, statements
from dartwing_jobs.engine.handling import session_state

# those that have a meaning, as plain numbers, which C reads faster; behind them are those of real time
REAL_TIME = 32
SIGNALS = tuple(int(number) for number in sorted(signal.valid_signals()) if number < REAL_TIME)
LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)
TIMERS = (signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)  # the third one is the deadline's


class Surroundings:
	"""As they are before the first job of a process."""

	def __init__(self):
		self.process = _kept_process()
		self.session = _state_of_session()
		self.watch = session_state.Watch(frappe.local.db)
		self.is_something_to_come = False
		self.was_used = False  # whether the last handler had to do with the database

	def is_connected(self) -> bool:
		"""Whether this is still the connection that the first job had."""
		return self.watch.is_on(frappe.local.db)

	@contextlib.contextmanager
	def changed_by_imports(self) -> Iterator[None]:
		"""Inside, a handler's module is imported. What that changes is no work of a job, and stays."""
		known = len(sys.modules)
		yield
		if len(sys.modules) != known:
			self.process = _kept_process()

	def changed_by_job(self) -> list[str]:
		"""What is not as it was. To be asked when a handler has ended, before anything else is done."""
		self.is_something_to_come = False
		self.expect_what_comes_later()
		self.was_used = self.is_something_to_come or self.watch.must_ask()
		return self._changes()

	def expect_what_comes_later(self) -> None:
		"""Handlers and listeners may want something done after a commit: then one has to look again."""
		if not self.is_something_to_come:
			self.is_something_to_come = database.is_something_to_be_done_later()

	def changed_since(self) -> list[str]:
		"""What is not as it was before the next handler."""
		if self.is_something_to_come:
			return self._changes()
		self.watch.start_over()
		return []

	def _changes(self) -> list[str]:
		found, changed = _process(), []
		if found != self.process:
			changed = [name for name, was, now in zip(PARTS, self.process, found, strict=True) if was != now]
		return changed if self._is_session_clean() else [*changed, "the session of the database"]

	def _is_session_clean(self) -> bool:
		if not self.watch.is_clean(frappe.local.db):
			return False
		if not self.watch.may_ask():  # but after the rollback
			self.is_something_to_come = True
			return True
		return not self.watch.must_ask() or _state_of_session() == self.session

	def put_back_what_the_engine_needs(self) -> None:
		"""To write down how the job ended: files go where they belong, and no timer rings meanwhile."""
		was = dict(zip(PARTS, self.process, strict=True))
		os.chdir(was["the working folder"])
		os.umask(was["the umask"])
		for timer in TIMERS:
			signal.setitimer(timer, 0)


def _state_of_session() -> str | None:
	"""None when the server does not say: the session may be gone."""
	try:
		return statements.value(session_state.STATE[frappe.local.db.db_type])
	except Exception:
		return None


def _folder() -> str | None:
	try:
		return os.getcwd()
	except FileNotFoundError:
		return None


def _umask() -> int:
	umask = os.umask(0o077)
	os.umask(umask)
	return umask


def _decimal_context() -> tuple:
	"""Without its flags, which any calculation raises."""
	_kind, (*limits, _flags, traps) = decimal.getcontext().__reduce__()
	return *limits, traps


PARTS = (
	"the working folder",
	"the environment",
	"the time zone",
	"signal handlers",
	"blocked signals",
	"timers",
	"the umask",
	"the locale",
	"the import path",
	"the decimal context",
	"standard input and output",
	"limits of the process",
	"limits of Python",
	"tracing",
	"warnings that are errors",
)


def _process() -> tuple:
	"""The process as it is, in the order of `PARTS`.

	It is read after each job, with cold caches: what is alive is compared as it is, without a copy.
	"""
	return (
		_folder(),
		# to read it variable by variable would take a hundred times as long
		getattr(os.environ, "__dict__", os.environ),
		(time.tzname, time.timezone, time.daylight),
		[*map(getsignal, SIGNALS)],
		pthread_sigmask(signal.SIG_BLOCK, ()),
		[signal.getitimer(timer) for timer in TIMERS],
		_umask(),
		locale.setlocale(locale.LC_ALL),
		sys.path,
		_decimal_context(),
		(sys.stdin, sys.stdout, sys.stderr),
		[resource.getrlimit(limit) for limit in LIMITS],
		(sys.getrecursionlimit(), sys.getswitchinterval(), socket.getdefaulttimeout()),
		(sys.gettrace(), sys.getprofile()),
		# modules add others when they are imported, which changes nothing for anybody else
		[one for one in warnings.filters if one[0] == "error"],
	)


def _kept(value):
	"""A copy that later changes do not reach."""
	if isinstance(value, dict):
		return {name: _kept(one) for name, one in value.items()}
	return [*value] if isinstance(value, list) else value


def _kept_process() -> tuple:
	return tuple(map(_kept, _process()))
