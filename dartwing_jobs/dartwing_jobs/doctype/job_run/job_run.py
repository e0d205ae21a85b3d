"""Job Run: one attempt at a job; the engine writes it."""

import frappe

from dartwing_jobs.document import EngineOwnedDocument


class JobRun(EngineOwnedDocument):
	pass


def on_doctype_update():
	frappe.db.add_index("Job Run", ["background_job", "attempt"], "idx_job_run_attempt")
	# names are in the order of time: how many of a type have started lately?
	frappe.db.add_index("Job Run", ["job_type", "name"], "idx_job_run_type")
