"""Job Engine Settings: how the engine behaves on this site. `dartwing_jobs.settings` reads it."""

import frappe
from frappe import _

from dartwing_jobs.document import JobsDocument
from dartwing_jobs.errors import InvalidJobError

# below this no real job could be submitted; above, MariaDB's default packet size is near
SMALLEST_PARAMETER_LIMIT = 1024
LARGEST_PARAMETER_LIMIT = 16 * 1024 * 1024
# a worker beats three times in this, and must be heard on a busy machine too
SHORTEST_LEASE_SECONDS = 2


class JobEngineSettings(JobsDocument):
	def validate(self):
		self.fill_in()
		self.check_limits()

	def fill_in(self) -> None:
		"""A field that is newer than what was saved has no value, which would be stored as zero."""
		for field in self.meta.fields:
			if field.default and self.get(field.fieldname) is None:
				self.set(field.fieldname, field.default)

	def check_limits(self) -> None:
		if not SMALLEST_PARAMETER_LIMIT <= int(self.max_parameter_bytes) <= LARGEST_PARAMETER_LIMIT:
			message = _("Largest Parameters must be between {0} and {1} bytes.")
			frappe.throw(message.format(SMALLEST_PARAMETER_LIMIT, LARGEST_PARAMETER_LIMIT), InvalidJobError)
		if int(self.retention_days) < 1:
			frappe.throw(_("Retention must be at least one day."), InvalidJobError)
		if 0 < int(self.lease_seconds) < SHORTEST_LEASE_SECONDS:
			message = _("A lease must last at least {0} seconds.")
			frappe.throw(message.format(SHORTEST_LEASE_SECONDS), InvalidJobError)
