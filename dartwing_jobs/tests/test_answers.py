"""The engine reads answers as the driver does, only quicker."""

import frappe
import pytest

from dartwing_jobs.engine import answers, database, sending, statements

# on MariaDB and PostgreSQL alike: every kind of value, and texts whose lengths are told in one to three bytes
QUESTIONS = [
	"select 1 as one, -7 as less, 12345678901 as many, 1.25 as part, null as nothing, '' as empty",
	"select 'it''s' as quoted, 'Ärger 🎉' as signs, repeat('x', 250) as short, repeat('ä', 300) as longer",
	"select repeat('x', 70000) as longest, repeat('x', 65535) as almost, 'behind' as word",
	"select cast('2026-03-29 02:30:00.123456' as timestamp) as moment, cast('2026-03-29' as date) as day",
	"select name, creation, modified, docstatus, idx from tabDocType order by name limit 50",
	"select name from tabDocType where name = 'nobody'",
]


def plain(statement: str) -> str:
	return (
		statement.replace(" as timestamp)", " as datetime(6))") if is_mariadb() else frappe_table(statement)
	)


def frappe_table(statement: str) -> str:
	return statement.replace("tabDocType", '"tabDocType"')


def is_mariadb() -> bool:
	return frappe.db.db_type == "mariadb"


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_is_what_the_driver_would_have_read(question):
	cursor, question = sending.cursor(), plain(question)
	cursor.execute(question)
	columns, rows = [column[0] for column in cursor.description], list(cursor.fetchall())
	for _ in range(2):  # the second time each column is known
		found = answers.to_one(cursor, question)
		assert (list(found.columns), found.rows) == (columns, rows)


def test_what_others_ask_afterwards_is_answered():
	statements.fetch("select 1 as one")
	assert list(frappe.db.sql("select 2")) == [(2,)]


def test_an_error_is_the_drivers_own_and_leaves_the_connection_usable():
	cursor = sending.cursor()
	with pytest.raises(Exception, match="nowhere") as refused:
		cursor.execute("select * from nowhere")
	frappe.db.rollback()
	with pytest.raises(type(refused.value)) as again:
		statements.fetch("select * from nowhere")
	assert again.value.args == refused.value.args
	frappe.db.rollback()
	assert statements.value("1 + 1") == 2


def test_a_connection_that_is_cut_is_known_as_lost():
	with database.beside():
		frappe.db.sql("select 1")
		own = "connection_id()" if is_mariadb() else "pg_backend_pid()"
		cut(statements.value(own))
		with pytest.raises(Exception) as lost:
			statements.fetch("select 1 as one")
		assert database.is_lost_connection(lost.value)


def cut(number: int) -> None:
	end = f"kill {number}" if is_mariadb() else f"select pg_terminate_backend({number})"
	with database.beside():
		frappe.db.sql(end)


def test_other_drivers_read_for_themselves(monkeypatch):
	monkeypatch.setattr(answers, "_is_pymysql", lambda cursor: False)
	found = []
	with statements.in_one_go():
		statements.fetch_later("select 1 as one", (), found.extend)
		statements.value_later("2", (), found.append)
		statements.fetch_later("select 3 as three", (), found.extend)
	assert found == [{"one": 1}, 2, {"three": 3}]
