"""Job Template: a job type and its parameters, ready to be used again."""

import frappe
from frappe import _

from dartwing_jobs import parameters, tenancy
from dartwing_jobs.document import JobsDocument
from dartwing_jobs.engine import submission
from dartwing_jobs.errors import InvalidJobError


class JobTemplate(JobsDocument):
	def before_validate(self):
		parameters.store(self, "default_params")
		if self.default_params and self.job_type:
			parameters.check_secrets(submission.type_of(self), [self.default_params])

	def validate(self):
		if self.is_new() and self.organization:
			tenancy.check_organization_is_active(self.organization)
		self.validate_name_is_free()

	def validate_name_is_free(self) -> None:
		"""Per organization, and among the global templates, where no unique index would see it."""
		others = {
			"template_name": self.template_name,
			"organization": self.organization or ["is", "not set"],
			"name": ["!=", self.name],
		}
		if frappe.db.exists("Job Template", others):
			message = _("There is already a Job Template called {0} here.")
			frappe.throw(message.format(frappe.bold(self.template_name)), InvalidJobError)
