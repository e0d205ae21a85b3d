"""Handlers that commit by themselves, for tests."""

import frappe

from dartwing_jobs.engine.handling.handlers import job_handler
from dartwing_jobs.tests.world import make_queue

# what each attempt wrote, and what its commit said
written: list[str] = []
raised: list[Exception] = []


def commit() -> None:
	frappe.db.commit()


def sql() -> None:
	frappe.db.sql("commit")


def loud_sql() -> None:
	frappe.db.sql("  COMMIT ;")


def commented_sql() -> None:
	frappe.db.sql("/* done */ commit -- at last")


def work() -> None:
	frappe.db.sql("commit work")


def end() -> None:
	frappe.db.sql("end")


def second_statement() -> None:
	frappe.db.sql("select 1; commit")


WAYS = {function.__name__: function for function in (commit, sql, loud_sql, commented_sql, work)}
WAYS_OF_POSTGRES = {function.__name__: function for function in (end, second_statement)}


@job_handler
def write_and_commit(parameters: dict, context) -> str:
	written.append(make_queue())
	(WAYS | WAYS_OF_POSTGRES)[parameters["way"]]()
	return "done"


@job_handler
def write_and_hide_it(parameters: dict, context) -> str:
	"""Tries again and again to keep what it wrote."""
	for _time in range(3):
		written.append(make_queue())
		try:
			(WAYS | WAYS_OF_POSTGRES)[parameters["way"]]()
		except Exception as error:
			raised.append(error)
	return "done"


@job_handler
def read_about_commits(parameters: dict, context) -> int:
	"""The word alone is no commit: its row would stay locked, and its worker could not renew the lease."""
	frappe.db.sql(
		"select 'commit', name as `commit` from `tabJob Queue` where description = 'commit' limit 1"
	)
	frappe.db.sql("select 1 /* commit */")
	return 1


@job_handler
def commit_afterwards(parameters: dict, context) -> None:
	def late() -> None:
		written.append(make_queue())
		frappe.db.commit()

	frappe.db.after_commit.add(late)
	context.checkpoint()
