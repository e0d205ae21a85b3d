"""A handler that leaves something behind in its process or its session, and one that looks for that."""

import decimal
import locale
import os
import signal
import socket
import sys
import tempfile
import time
import warnings

import frappe

from dartwing_jobs import PermanentError, job_handler

NAME = "dartwing_leak"


def enter_another_folder() -> None:
	os.chdir("/")


def enter_a_folder_that_goes() -> None:
	with tempfile.TemporaryDirectory() as folder:
		os.chdir(folder)


def change_the_zone() -> None:
	os.environ["TZ"] = "Asia/Tokyo"
	time.tzset()
	del os.environ["TZ"]


def change_the_locale() -> None:
	locale.setlocale(locale.LC_ALL, "C" if locale.setlocale(locale.LC_ALL) != "C" else "C.UTF-8")


def change_the_decimal_context() -> None:
	decimal.getcontext().prec = 3


def replace_the_output() -> None:
	sys.stdout = open(os.devnull, "w")  # noqa: SIM115 that is the point


def of_database(mariadb: str, postgres: str):
	"""A leak by a statement of Frappe's."""
	return lambda: frappe.db.sql(mariadb if frappe.db.db_type == "mariadb" else postgres)


def by_another_cursor() -> None:
	frappe.db._conn.cursor().execute(_zone())


def by_a_cursor_of_another_class() -> None:
	"""As Frappe's own `unbuffered_cursor` makes one: no watch is on it."""
	if frappe.db.db_type == "mariadb":
		with frappe.db.unbuffered_cursor():
			frappe.db._cursor.execute(_zone())
		return
	from psycopg2.extras import DictCursor

	frappe.db._conn.cursor(cursor_factory=DictCursor).execute(_zone())


def by_a_cursor_of_no_connection() -> None:
	"""Made past the connection, as some programs make theirs: no watch can be on it."""
	kind = next(kind for kind in type(frappe.db._cursor).__mro__ if kind.__name__ != "Watched")
	kind(frappe.db._conn).execute(_zone())


def by_the_driver() -> None:
	if frappe.db.db_type == "mariadb":
		frappe.db._conn.query(_zone())
	else:
		by_a_cursor_of_no_connection()


def by_a_second_statement() -> None:
	if frappe.db.db_type == "mariadb":
		frappe.db.sql(f"begin not atomic select 1 into @{NAME}; {_zone()}; end")
	else:
		frappe.db.sql(f"select 1; {_zone()}")


def close_the_connection() -> None:
	frappe.db.close()


def replace_the_connection() -> None:
	frappe.connect(set_admin_as_user=False)


def after_the_commit() -> None:
	frappe.db.after_commit.add(enter_another_folder)


def of_database_after_the_commit() -> None:
	frappe.db.after_commit.add(lambda: frappe.db.sql(_zone()))


def fail() -> None:
	os.chdir("/")
	raise PermanentError("left in a hurry")


def _zone() -> str:
	is_mariadb = frappe.db.db_type == "mariadb"
	return "set session time_zone = '+09:00'" if is_mariadb else "set timezone = 'Asia/Tokyo'"


LEAKS = {
	"folder": enter_another_folder,
	"folder that is gone": enter_a_folder_that_goes,
	"environment": lambda: os.environ.update(DARTWING_LEAK="1"),
	"environment that lacks something": lambda: os.environ.pop("PATH"),
	"environment of another kind": lambda: setattr(os, "environ", dict(os.environ)),
	"time zone of the process": change_the_zone,
	"signal handler": lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN),
	"handler of a rarer signal": lambda: signal.signal(signal.SIGWINCH, lambda *_: None),
	"blocked signal": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM}),
	"timer": lambda: signal.setitimer(signal.ITIMER_VIRTUAL, 100),
	"umask": lambda: os.umask(0o077),
	"locale": change_the_locale,
	"import path": lambda: sys.path.insert(0, "/leak"),
	"decimal context": change_the_decimal_context,
	"output": replace_the_output,
	"recursion limit": lambda: sys.setrecursionlimit(5000),
	"timeout of sockets": lambda: socket.setdefaulttimeout(77),
	"warnings that are errors": lambda: warnings.simplefilter("error", ResourceWarning),
	"sql mode": of_database("set session sql_mode = 'ANSI_QUOTES'", "set search_path = public, pg_temp"),
	"isolation": of_database(
		"set session transaction isolation level serializable",
		"set session characteristics as transaction read only",
	),
	"time zone of the session": lambda: frappe.db.sql(_zone()),
	"time of statements": of_database(
		"set session max_statement_time = 30", "set session statement_timeout = 30000"
	),
	"user variable": of_database(f"select 1 into @{NAME}", f"set {NAME}.of = '1'"),
	"temporary table": of_database(
		f"create temporary table {NAME} (a int)", f"create temporary table {NAME} (a int)"
	),
	"named lock": of_database(f"select get_lock('{NAME}', 1)", "select pg_advisory_lock(4711)"),
	"another cursor": by_another_cursor,
	"a cursor of another class": by_a_cursor_of_another_class,
	"a cursor of no connection": by_a_cursor_of_no_connection,
	"the driver itself": by_the_driver,
	"a second statement": by_a_second_statement,
	"closed connection": close_the_connection,
	"replaced connection": replace_the_connection,
	"after the commit": after_the_commit,
	"in the session after the commit": of_database_after_the_commit,
	"failure": fail,
}

# what is done when the next job has been started already
AFTER_THE_COMMIT = ("after the commit", "in the session after the commit")

SETTINGS = {
	"mariadb": f"""select @@sql_mode, @@tx_isolation, @@time_zone, @@max_statement_time, @{NAME},
		coalesce(is_used_lock('{NAME}') = connection_id(), 0)""",
	"postgres": f"""select current_setting('search_path'), current_setting('transaction_isolation'),
		current_setting('default_transaction_read_only'), current_setting('TimeZone'),
		current_setting('statement_timeout'), current_setting('{NAME}.of', true), to_regclass('{NAME}')::text,
		(select count(*) from pg_locks where locktype like 'adv%%' and pid = pg_backend_pid())""",
}


@job_handler
def leak(parameters: dict, context) -> None:
	LEAKS[parameters["what"]]()


@job_handler
def work(parameters: dict, context) -> None:
	"""As most do: writes, wants something done later, and fails at times."""
	frappe.get_doc({"doctype": "Organization", "organization_name": parameters["organization"]}).insert()
	frappe.db.after_commit.add(lambda: frappe.db.sql("select 1"))
	context.checkpoint()
	if parameters.get("fail"):
		frappe.db.sql("select no_such_column from `tabUser`")


@job_handler
def stop_the_engine(parameters: dict, context) -> None:
	"""By what no rollback takes back."""
	if frappe.db.db_type == "mariadb":
		frappe.db.sql("lock tables `tabUser` read")
	else:
		frappe.db.sql("set search_path = pg_catalog")
		frappe.db.commit()


@job_handler
def look(parameters: dict, context) -> dict:
	looked_at = (signal.SIGUSR1, signal.SIGTERM, signal.SIGWINCH)
	signals = [str(signal.getsignal(number)) for number in looked_at]
	umask = os.umask(0)
	os.umask(umask)
	return {
		"folder": os.getcwd(),
		"environment": sorted(set(os.environ) & {"DARTWING_LEAK", "PATH"}),
		"zone": time.timezone,
		"signals": [*signals, len(signal.pthread_sigmask(signal.SIG_BLOCK, ()))],
		"timer": signal.getitimer(signal.ITIMER_VIRTUAL),
		"umask": umask,
		"locale": locale.setlocale(locale.LC_ALL),
		"path": "/leak" in sys.path,
		"precision": decimal.getcontext().prec,
		"output": sys.stdout is sys.__stdout__,
		"limits": [sys.getrecursionlimit(), socket.getdefaulttimeout()],
		"warnings": [one[0] for one in warnings.filters if one[0] == "error"],
		"session": [str(value) for value in frappe.db.sql(SETTINGS[frappe.db.db_type])[0]],
		"temporary table": _has_temporary_table(),
	}


def _has_temporary_table() -> bool:
	if frappe.db.db_type == "postgres":
		return bool(frappe.db.sql("select pg_my_temp_schema() <> 0")[0][0])
	frappe.db.savepoint("looking")
	try:
		frappe.db.sql(f"select a from {NAME}")
	except Exception:
		return False
	return True
