"""Job Trouble: work that the engine could not do; `engine.troubles` writes it."""

import frappe

from dartwing_jobs.document import EngineOwnedDocument


class JobTrouble(EngineOwnedDocument):
	pass


def on_doctype_update():
	frappe.db.add_index("Job Trouble", ["about", "duty"], "idx_trouble")
