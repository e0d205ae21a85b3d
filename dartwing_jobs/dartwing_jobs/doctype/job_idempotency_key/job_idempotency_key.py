"""Job Idempotency Key: remembers a submission; the engine writes it."""

import frappe

from dartwing_jobs.document import EngineOwnedDocument


class JobIdempotencyKey(EngineOwnedDocument):
	pass


def on_doctype_update():
	frappe.db.add_unique(
		"Job Idempotency Key", ["organization", "key_hash"], "unique_job_key_per_organization"
	)
