"""Job Schedule: a cron expression that makes jobs from a template."""

import frappe
from frappe import _
from frappe.utils import get_system_timezone

from dartwing_jobs import clock, cron, parameters, tenancy
from dartwing_jobs.document import JobsDocument
from dartwing_jobs.engine import database, submission
from dartwing_jobs.engine.intake import bounds
from dartwing_jobs.engine.rules import priorities
from dartwing_jobs.engine.schedules import fire_times, fires, grounds, schedules, skips
from dartwing_jobs.errors import FrozenFieldError, InvalidJobError
from dartwing_jobs.messages import throw

RECORDED = ("run_as", "disabled_reason")
# the engine sets these, also while somebody has the form open
MOVING = ("next_fire_at", "last_fire_at", "next_skip_at", "program_key")
# who changes what a schedule does, or switches it on, is whom its jobs run as
WHAT_IT_DOES = ("enabled", "job_template", "param_overrides", "priority")
WHEN_IT_FIRES = ("enabled", "cron_expression", "time_zone", "start_at", "end_at")


class JobSchedule(JobsDocument):
	def check_input(self):
		"""The window is on the schedule's own wall, not on the site's."""
		for fieldname in ("start_at", "end_at"):
			if value := self.get(fieldname):
				self.set(fieldname, fire_times.on_the_wall(value, fire_times.zone_of(self)))
		super().check_input()

	def before_validate(self):
		parameters.store(self, "param_overrides")
		self.priority = priorities.from_value(self.priority)
		self.keep_what_is_not_edited()
		# as it is now: the site may change its zone, and what was announced for nine stays at nine
		self.time_zone = self.time_zone or get_system_timezone()
		if self.enabled and self.differs_in(WHAT_IT_DOES) and not self.flags.keeps_run_as:
			self.run_as = frappe.session.user

	def validate(self):
		if self.is_new():
			tenancy.check_organization_is_active(self.organization)
		tenancy.check_same_organization(self, "job_template")
		cron.check(self.cron_expression, clock.now())
		schedules.check_zone(self.time_zone)
		self.validate_window()
		self.validate_secrets()
		self.validate_priority()
		if self.enabled:
			self.validate_template()
		self.announce()

	def on_update(self):
		before = self.get_doc_before_save()
		if before and self.has_value_changed("enabled"):
			self.tell_of_change(before)
		if self.next_fire_at:
			schedules.wake_workers_after_commit(self)

	def tell_of_change(self, before) -> None:
		if self.enabled:
			skips.tell(before, database.utc_now())
		else:
			fires.record_now(self, fires.DISABLED, self.disabled_reason)

	def on_trash(self):
		"""Its jobs stay."""
		fires.delete_of(self.name)

	def keep_what_is_not_edited(self) -> None:
		"""Who it runs as and when it fires is recorded, never typed in."""
		before = self.get_doc_before_save()
		for fieldname in (*RECORDED, *MOVING):
			if self.is_new():
				self.set(fieldname, self.flags.get(fieldname))
			elif fieldname in MOVING:
				self.set(fieldname, before.get(fieldname))
			elif self.get(fieldname) != before.get(fieldname):
				label = _(self.meta.get_label(fieldname))
				throw(
					_("{0} is recorded by the engine and cannot be edited.").format(label), FrozenFieldError
				)

	def differs_in(self, fieldnames: tuple[str, ...]) -> bool:
		return self.is_new() or any(map(self.has_value_changed, fieldnames))

	def validate_template(self) -> None:
		template = frappe.db.get_value(
			"Job Template", self.job_template, ["status", "job_type"], as_dict=True
		)
		if template.status != "Active":
			message = _("Job Template {0} is archived or gone; choose an active one.")
			throw(message.format(self.job_template), InvalidJobError)
		if reason := grounds.why_not_scheduled(submission.type_of(template), template.job_type):
			throw(reason, InvalidJobError)

	def validate_priority(self) -> None:
		"""Enabled or not: whoever enables or triggers it gives its jobs nothing that was not granted here."""
		if self.differs_in(("priority", "job_template")):
			template = frappe.get_cached_doc("Job Template", self.job_template)
			bounds.check_critical(self.priority, submission.type_of(template))

	def validate_secrets(self) -> None:
		template = frappe.get_cached_doc("Job Template", self.job_template)
		parameters.check_secrets(submission.type_of(template), [self.param_overrides])

	def validate_window(self) -> None:
		if self.start_at and self.end_at and clock.parse(self.end_at) <= clock.parse(self.start_at):
			throw(_("The end of a schedule must come after its start."), InvalidJobError)

	def announce(self) -> None:
		"""The next fire, from now on: a time that was paused or changed is not caught up."""
		if self.differs_in(("enabled",)):
			told = _("Disabled by {0}").format(frappe.session.user)
			self.disabled_reason = None if self.enabled else told
		if self.differs_in(WHEN_IT_FIRES):
			self.next_skip_at = None  # the next sweep looks, if it is disabled
		if not self.enabled:
			self.next_fire_at = None
		elif self.differs_in(WHEN_IT_FIRES):
			self.next_fire_at = fire_times.next_after(self, database.utc_now())
			self.validate_fires()

	def validate_fires(self) -> None:
		if not self.next_fire_at:
			message = _("This schedule never fires: no time of its expression is left between start and end.")
			throw(message, InvalidJobError)


def on_doctype_update():
	# empty in schedules that are not to fire: what is due next is the first entry
	frappe.db.add_index("Job Schedule", ["next_fire_at", "name"], "idx_next_fire")
	frappe.db.add_index("Job Schedule", ["job_template"], "idx_schedule_template")
	frappe.db.add_index("Job Schedule", ["enabled", "next_skip_at"], "idx_next_skip")
	# of programs that ask for the same schedule at once, one makes it
	frappe.db.add_unique("Job Schedule", ["program_key"], "unique_schedule_of_programs")
