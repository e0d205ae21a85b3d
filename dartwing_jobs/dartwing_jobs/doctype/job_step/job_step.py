"""Job Step: a step that a job has done; the engine writes it."""

import frappe

from dartwing_jobs.document import EngineOwnedDocument


class JobStep(EngineOwnedDocument):
	pass


def on_doctype_update():
	frappe.db.add_unique("Job Step", ["background_job", "key_hash"], "unique_step_per_job")
