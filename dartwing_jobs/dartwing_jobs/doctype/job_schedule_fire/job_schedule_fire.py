"""Job Schedule Fire: what became of one fire time of a schedule; the engine writes it."""

import frappe

from dartwing_jobs.document import EngineOwnedDocument


class JobScheduleFire(EngineOwnedDocument):
	pass


def on_doctype_update():
	# however many schedulers run: a fire time is handled once
	frappe.db.add_unique("Job Schedule Fire", ["job_schedule", "fire_at"], "unique_fire_per_schedule")
	# which jobs of a schedule might be unfinished?
	frappe.db.add_index("Job Schedule Fire", ["job_schedule", "outcome", "fire_at"], "idx_fire_outcome")
	# a job's fire goes with it; those without a job go when they are old
	frappe.db.add_index("Job Schedule Fire", ["background_job", "creation"], "idx_fire_job")
