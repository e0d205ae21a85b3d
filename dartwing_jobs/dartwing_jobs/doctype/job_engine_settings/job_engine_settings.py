"""Job Engine Settings: how the engine behaves on this site. `dartwing_jobs.settings` reads it."""

from urllib.parse import urlsplit

import frappe
from frappe import _

from dartwing_jobs.document import JobsDocument
from dartwing_jobs.engine.alerts import SECRET
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.messages import throw

# below this no real job could be submitted; above, MariaDB's default packet size is near
SMALLEST_PARAMETER_LIMIT = 1024
LARGEST_PARAMETER_LIMIT = 16 * 1024 * 1024
# a worker beats three times in this, and must be heard on a busy machine too
SHORTEST_LEASE_SECONDS = 2
# clocks may differ by the first; a fire that comes later than the second is nobody's idea of on time
SHORTEST_LATENESS, LONGEST_LATENESS = 60, 3600
# a schedule that catches up must not fill the queue for everybody
MOST_CAUGHT_UP = 1000


class JobEngineSettings(JobsDocument):
	def validate(self):
		self.fill_in()
		self.check_limits()
		self.check_webhook()

	def fill_in(self) -> None:
		"""A field that is newer than what was saved has no value, which would be stored as zero."""
		for field in self.meta.fields:
			if field.default and self.get(field.fieldname) is None:
				self.set(field.fieldname, field.default)

	def check_limits(self) -> None:
		if not SMALLEST_PARAMETER_LIMIT <= int(self.max_parameter_bytes) <= LARGEST_PARAMETER_LIMIT:
			message = _("Largest Parameters must be between {0} and {1} bytes.")
			throw(message.format(SMALLEST_PARAMETER_LIMIT, LARGEST_PARAMETER_LIMIT), InvalidJobError)
		if int(self.retention_days) < 1:
			throw(_("Retention must be at least one day."), InvalidJobError)
		if 0 < int(self.lease_seconds) < SHORTEST_LEASE_SECONDS:
			message = _("A lease must last at least {0} seconds.")
			throw(message.format(SHORTEST_LEASE_SECONDS), InvalidJobError)

		self.check_schedules()

	def check_schedules(self) -> None:
		lateness = int(self.missed_after_seconds)
		if lateness and not SHORTEST_LATENESS <= lateness <= LONGEST_LATENESS:
			message = _("Missed After must be between {0} and {1} seconds.")
			throw(message.format(SHORTEST_LATENESS, LONGEST_LATENESS), InvalidJobError)
		if int(self.most_missed_fires) > MOST_CAUGHT_UP:
			message = _("Most Missed Fires must be at most {0}.")
			throw(message.format(MOST_CAUGHT_UP), InvalidJobError)

	def check_webhook(self) -> None:
		before = self.get_doc_before_save()
		if not self.alert_webhook_url or (before and before.alert_webhook_url == self.alert_webhook_url):
			return  # the gate must open and close whatever has become of the secret
		if not _is_web_address(self.alert_webhook_url):
			message = _("{0} must be an address that begins with http:// or https://, not {1}.")
			label = _(self.meta.get_label("alert_webhook_url"))
			throw(message.format(label, self.alert_webhook_url), InvalidJobError)
		if not frappe.conf.get(SECRET):
			message = _("Alerts are signed: set {0} in the site's config before you name a webhook.")
			throw(message.format(SECRET), InvalidJobError)


def _is_web_address(address: str) -> bool:
	try:
		parts = urlsplit(address)
		is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
		return is_whole and not parts.username  # a password has no place in a setting
	except ValueError:  # brackets without an end, a port that is no number
		return False
