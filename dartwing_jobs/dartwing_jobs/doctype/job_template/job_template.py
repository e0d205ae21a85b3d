"""Job Template: a job type and its parameters, ready to be used again."""

from collections.abc import Iterator
from contextlib import contextmanager

import frappe
from frappe import _

from dartwing_jobs import parameters, tenancy
from dartwing_jobs.document import JobsDocument
from dartwing_jobs.engine import submission
from dartwing_jobs.engine.intake import bounds, templates
from dartwing_jobs.engine.schedules import schedules
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.messages import tell, throw

SHOWN_SCHEDULES = 20


class JobTemplate(JobsDocument):
	def before_validate(self):
		self.organization = self.organization or None
		self.set_keys()
		parameters.store(self, "default_params")
		if self.default_params and self.job_type:
			parameters.check_secrets(submission.type_of(self), [self.default_params])

	def validate(self):
		if self.is_new() and self.organization:
			tenancy.check_organization_is_active(self.organization)
		self.validate_name_is_free()
		if not self.is_new() and self.has_value_changed("job_type"):
			self.validate_priorities()

	def on_update(self):
		if self.status == templates.ARCHIVED and self.has_value_changed("status"):
			self.stop_schedules(_("archived"))
		if self.makes_other_jobs():
			schedules.take_over(self.name, frappe.session.user)

	def validate_priorities(self) -> None:
		"""Its schedules make jobs of another type from now on: no more urgent than is granted for that."""
		for priority in set(frappe.get_all("Job Schedule", {"job_template": self.name}, pluck="priority")):
			bounds.check_critical(priority, submission.type_of(self))

	def on_trash(self):
		self.stop_schedules(_("deleted"))

	def makes_other_jobs(self) -> bool:
		"""Whether this edit changes what is made from it; PostgreSQL hands JSON over as it likes to."""
		before = self.get_doc_before_save()
		if before is None:
			return False
		given = [parameters.load(one.default_params) for one in (before, self)]
		return before.job_type != self.job_type or given[0] != given[1]

	def stop_schedules(self, why: str) -> list[str]:
		"""Disables the schedules that would make jobs from it, and says which; returns their names."""
		reason = _("Job Template {0} was {1}.").format(self.template_name, why)
		stopped = self.flags.disabled_schedules = schedules.disable_for_template(self.name, reason)
		if stopped:
			names = ", ".join(stopped[:SHOWN_SCHEDULES]) + (" …" if stopped[SHOWN_SCHEDULES:] else "")
			message = _("{0} Its schedules were disabled ({1}): {2}").format(reason, len(stopped), names)
			tell(message, title=_("Schedules Disabled"), indicator="orange")
		return stopped

	def set_keys(self) -> None:
		"""What the unique indexes see: one of an organization's names, one of the global ones.

		An index takes two rows without an organization for different ones, so these need a key of their own.
		"""
		self.name_key = templates.name_key(self.template_name)
		self.global_key = None if self.organization else self.name_key

	def validate_name_is_free(self) -> None:
		"""Says so early; of two at once the index refuses one."""
		others = {
			"name_key": self.name_key,
			"organization": self.organization or ["is", "not set"],
			"name": ["!=", self.name],
		}
		if frappe.db.exists("Job Template", others):
			self.refuse_name()

	def db_insert(self, *args, **kwargs):
		with self.refused_by_an_index():
			super().db_insert(*args, **kwargs)

	def db_update(self):
		with self.refused_by_an_index():
			super().db_update()

	@contextmanager
	def refused_by_an_index(self) -> Iterator[None]:
		messages = len(frappe.local.message_log)
		try:
			yield
		except frappe.UniqueValidationError:
			del frappe.local.message_log[messages:]  # it names a field that nobody sees
			self.refuse_name()

	def refuse_name(self) -> None:
		message = _("There is already a Job Template called {0} here.")
		throw(message.format(self.template_name), InvalidJobError)


def on_doctype_update():
	frappe.db.add_unique("Job Template", ["organization", "name_key"], "unique_template_name")
