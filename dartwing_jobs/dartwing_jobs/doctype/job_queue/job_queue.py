"""Job Queue: a named channel for jobs."""

import frappe
from frappe import _
from frappe.utils.background_jobs import get_queue_list

from dartwing_jobs.document import JobsDocument
from dartwing_jobs.engine import pauses
from dartwing_jobs.engine.rules import routes
from dartwing_jobs.engine.rules.queues import STANDARD_QUEUE_NAMES
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.messages import throw


class JobQueue(JobsDocument):
	def validate(self):
		available = get_queue_list()
		if self.rq_queue not in available:
			message = _("RQ Queue must be one of this bench's worker queues ({0}), not {1}.")
			throw(message.format(", ".join(available), self.rq_queue), InvalidJobError)

	def on_update(self):
		routes.forget()
		if not self.paused:
			pauses.ring_if_it_held(self.get_doc_before_save())

	def on_trash(self):
		if self.name in STANDARD_QUEUE_NAMES:
			throw(_("{0} is a standard queue; pause it instead.").format(self.name), InvalidJobError)
		# ours to check: Background Job is exempt from Frappe's link check, which knows no single links
		for column in ("job_queue", "origin_queue"):
			if job := frappe.db.get_value("Background Job", {column: self.name}, "name"):
				message = _("Queue {0} cannot be deleted: job {1} refers to it.").format(self.name, job)
				throw(message, frappe.LinkExistsError)
		routes.forget()
