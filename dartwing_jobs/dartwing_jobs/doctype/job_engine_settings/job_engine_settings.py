"""Job Engine Settings: how the engine behaves on this site. `dartwing_jobs.settings` reads it."""

import frappe
from frappe import _

from dartwing_jobs.document import JobsDocument
from dartwing_jobs.errors import InvalidJobError

# below this no real job could be submitted; above, MariaDB's default packet size is near
SMALLEST_PARAMETER_LIMIT = 1024
LARGEST_PARAMETER_LIMIT = 16 * 1024 * 1024


class JobEngineSettings(JobsDocument):
	def validate(self):
		if not SMALLEST_PARAMETER_LIMIT <= int(self.max_parameter_bytes) <= LARGEST_PARAMETER_LIMIT:
			message = _("Largest Parameters must be between {0} and {1} bytes.")
			frappe.throw(message.format(SMALLEST_PARAMETER_LIMIT, LARGEST_PARAMETER_LIMIT), InvalidJobError)
		if int(self.retention_days) < 1:
			frappe.throw(_("Retention must be at least one day."), InvalidJobError)
