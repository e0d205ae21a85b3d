"""What the engine's own transactions do when the connection is gone, and about all other errors."""

import os
import socket
import time

import frappe
import pytest

from dartwing_jobs.engine import database, statements
from dartwing_jobs.errors import LeaseLost
from dartwing_jobs.tests.processes import in_other_processes


def cut_the_connection() -> None:
	"""From the server's side, as a restart or an impatient proxy does."""
	frappe.db.commit()
	if frappe.db.db_type == "mariadb":
		(own,) = frappe.db.sql("select connection_id()")[0]
		frappe.db.sql(f"kill {own}")
	else:
		frappe.db.sql("select pg_terminate_backend(pg_backend_pid())")


def test_a_transaction_of_the_engine_survives_a_lost_connection():
	calls = []

	@database.own_transaction
	def work() -> int:
		calls.append(1)
		if len(calls) == 1:
			cut_the_connection()
		return frappe.db.sql("select 1")[0][0]

	assert (work(), len(calls)) == (1, 2)


@pytest.mark.parametrize("error", [LeaseLost("gone"), ValueError(0), KeyError(2013), IndexError()])
def test_other_errors_are_raised_as_they_are(error):
	"""Even where a number in them looks like one of the driver's."""

	@database.own_transaction
	def work() -> None:
		raise error

	assert not database.is_lost_connection(error)
	with pytest.raises(type(error)) as raised:
		work()
	assert raised.value is error


def test_a_process_that_is_impatient_loses_a_connection_that_does_not_answer():
	((seconds, is_lost, answer),) = in_other_processes(_wait_impatiently, (1,))
	assert 0.9 < seconds < 3
	assert is_lost
	assert answer == 1


def _wait_impatiently(seconds: int) -> tuple[float, bool, int]:
	"""How long a silent server was waited for, whether that lost the connection, and what a new one says."""
	database.be_impatient(seconds)
	database.reconnect()
	sleep = {"mariadb": "select sleep(10)", "postgres": "select pg_sleep(10)"}
	began, is_lost = time.monotonic(), False
	try:
		statements.fetch(sleep[frappe.db.db_type])
	except Exception as error:
		is_lost = database.is_lost_connection(error)
	waited = time.monotonic() - began
	database.reconnect()
	return waited, is_lost, statements.value("1")


def test_the_system_looks_for_the_server_of_a_worker_that_has_gone():
	((idle, unanswered),) = in_other_processes(_seconds_until_silence_is_noticed, (None,))
	assert 0 < idle <= 30
	assert 0 < unanswered <= 30


def _seconds_until_silence_is_noticed(_nothing: None) -> tuple[float, float]:
	"""While nothing is asked, and while what was sent is not confirmed."""
	database.read_committed()
	with socket.socket(fileno=os.dup(database._descriptor(frappe.db._conn))) as line:
		assert line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
		options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
		idle, every, times, confirmed = (line.getsockopt(socket.IPPROTO_TCP, one) for one in options)
	return idle + every * times, confirmed / 1000
