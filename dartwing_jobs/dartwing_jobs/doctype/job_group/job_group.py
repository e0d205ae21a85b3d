"""Job Group: jobs that belong together."""

import frappe
from frappe import _

from dartwing_jobs import tenancy
from dartwing_jobs.document import JobsDocument
from dartwing_jobs.errors import FrozenFieldError

INITIAL_STATUS = "Queued"


class JobGroup(JobsDocument):
	def validate(self):
		if self.is_new():
			tenancy.check_organization_is_active(self.organization)
		self.validate_status_is_derived()

	def validate_status_is_derived(self) -> None:
		before = self.get_doc_before_save()
		if self.status != (before.status if before else INITIAL_STATUS):
			frappe.throw(_("A group's status follows from its jobs and cannot be set."), FrozenFieldError)
