"""Job Reservation: places that an open transaction has taken; `engine.limits.reservations` writes it."""

import frappe

from dartwing_jobs.document import EngineOwnedDocument


class JobReservation(EngineOwnedDocument):
	pass


def on_doctype_update():
	frappe.db.add_index("Job Reservation", ["turnstile", "name"], "idx_turnstile")
