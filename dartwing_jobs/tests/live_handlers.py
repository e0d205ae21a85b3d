"""Handlers that tests watch from outside while they run."""

import os
import time

import frappe

from dartwing_jobs import job_handler


@job_handler
def work_a_moment(parameters: dict, context) -> dict:
	time.sleep(parameters.get("seconds", 0))
	return {"pid": os.getpid()}


@job_handler
def report_steadily(parameters: dict, context) -> None:
	"""One report and silence, then twenty a second, a last one and silence; each says when it is made."""
	frappe.get_doc({"doctype": "Organization", "organization_name": parameters["insert"]}).insert()
	context.progress(1, str(time.time()))
	time.sleep(1)
	until = time.monotonic() + parameters["seconds"]
	while time.monotonic() < until:
		context.progress(50, str(time.time()))
		time.sleep(0.05)
	context.progress(100, str(time.time()))
	time.sleep(1)


@job_handler
def ask_the_database(parameters: dict, context) -> dict:
	"""A connection that was torn in the middle of a query would answer with what another asked."""
	answers = [int(frappe.db.sql("select %s", (number,))[0][0]) for number in range(20)]
	return {"answers": answers, "user": frappe.session.user}


@job_handler
def wait_inside_a_query(parameters: dict, context) -> None:
	sleep = "select sleep(60)" if frappe.db.db_type == "mariadb" else "select pg_sleep(60)"
	frappe.db.sql(sleep)
