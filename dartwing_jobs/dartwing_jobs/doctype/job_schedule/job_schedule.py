"""Job Schedule: a cron expression that makes jobs from a template."""

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import frappe
from frappe import _

from dartwing_jobs import clock, cron, parameters, tenancy
from dartwing_jobs.document import JobsDocument
from dartwing_jobs.engine import submission
from dartwing_jobs.errors import FrozenFieldError, InvalidJobError

RECORDED = ("run_as", "disabled_reason", "next_fire_at", "last_fire_at")


class JobSchedule(JobsDocument):
	def before_validate(self):
		parameters.store(self, "param_overrides")
		self.keep_what_is_not_edited()
		if self.enabled and (self.is_new() or self.has_value_changed("enabled")):
			self.run_as = frappe.session.user

	def validate(self):
		if self.is_new():
			tenancy.check_organization_is_active(self.organization)
		tenancy.check_same_organization(self, "job_template")
		cron.check(self.cron_expression, clock.now())
		self.validate_template()
		self.validate_secrets()
		self.validate_time_zone()
		self.validate_window()

	def keep_what_is_not_edited(self) -> None:
		"""Who it runs as and when it fires is recorded, never typed in."""
		before = self.get_doc_before_save()
		for fieldname in RECORDED:
			if self.is_new():
				self.set(fieldname, None)
			elif self.get(fieldname) != before.get(fieldname):
				label = _(self.meta.get_label(fieldname))
				frappe.throw(
					_("{0} is recorded by the engine and cannot be edited.").format(label), FrozenFieldError
				)

	def validate_template(self) -> None:
		if frappe.db.get_value("Job Template", self.job_template, "status") != "Active":
			message = _("Job Template {0} is archived or gone; choose an active one.")
			frappe.throw(message.format(self.job_template), InvalidJobError)

	def validate_secrets(self) -> None:
		template = frappe.get_cached_doc("Job Template", self.job_template)
		parameters.check_secrets(submission.type_of(template), [self.param_overrides])

	def validate_time_zone(self) -> None:
		try:
			ZoneInfo(self.time_zone or "UTC")
		except (ZoneInfoNotFoundError, ValueError, OSError):
			message = _("{0} is not a time zone; use an IANA name such as Europe/Paris.")
			frappe.throw(message.format(frappe.bold(self.time_zone)), InvalidJobError)

	def validate_window(self) -> None:
		if self.start_at and self.end_at and clock.parse(self.end_at) <= clock.parse(self.start_at):
			frappe.throw(_("The end of a schedule must come after its start."), InvalidJobError)


def on_doctype_update():
	# empty in schedules that are not to fire: what is due next is the first entry
	frappe.db.add_index("Job Schedule", ["next_fire_at", "name"], "idx_next_fire")
	frappe.db.add_index("Job Schedule", ["job_template"], "idx_schedule_template")
