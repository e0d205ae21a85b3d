"""Handlers that make and read files, for tests."""

import frappe

from dartwing_jobs import PermanentError, TransientError, job_handler


@job_handler
def export(parameters: dict, context) -> dict:
	address = context.attach(parameters.get("file_name", "export.csv"), parameters["content"])
	if parameters.get("fail"):
		raise PermanentError("no")
	return {"address": address}


@job_handler
def read(parameters: dict, context) -> dict:
	if context.attempt <= parameters.get("failures", 0):
		raise TransientError("again")
	name = frappe.get_all("File", filters={"file_url": parameters["source"]["file"]}, pluck="name")[0]
	return {"read": frappe.get_doc("File", name).get_content()}
