"""What the engine's own transactions do when the connection is gone, and about all other errors."""

import frappe
import pytest

from dartwing_jobs.engine import database
from dartwing_jobs.errors import LeaseLost


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
