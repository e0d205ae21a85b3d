"""Job Execution Log: append-only; `engine.log` writes it."""

import frappe

from dartwing_jobs.document import EngineOwnedDocument


class JobExecutionLog(EngineOwnedDocument):
	pass


def on_doctype_update():
	frappe.db.add_index("Job Execution Log", ["background_job", "timestamp"], "idx_job_timestamp")
	frappe.db.add_index("Job Execution Log", ["uncounted", "name"], "idx_uncounted")
