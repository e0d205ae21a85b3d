"""What a fire rests on: template, organization, job type, user. Read once for a whole batch of fires."""

from collections.abc import Callable
from typing import NamedTuple

import frappe
from frappe import _

from dartwing_jobs import settings, tenancy
from dartwing_jobs.engine import facts, statements

TEMPLATES = "select name, status, organization, job_type, default_params from `tabJob Template`"


class Refusal(NamedTuple):
	"""Why there is no job, and whether the schedule is to be disabled for it."""

	reason: str
	is_final: bool


class Grounds:
	def __init__(self):
		self.templates: dict[str, object] = {}
		self.organizations: dict[str, str | None] = {}
		self.types: dict[str, object] = {}
		self.facts = facts.Facts()

	def template_of(self, schedule):
		"""The row of a schedule's template; None when it is gone."""
		if schedule.job_template not in self.templates:
			self.read_templates_of([schedule])
		return self.templates[schedule.job_template]

	def read_templates_of(self, schedules: list) -> None:
		"""All at once: many schedules have templates of their own."""
		names = [schedule.job_template for schedule in schedules]
		self.templates |= dict.fromkeys(names)
		places = ", ".join(["%s"] * len(names))
		for row in statements.fetch(f"{TEMPLATES} where name in ({places})", names) if names else ():
			self.templates[row.name] = row

	def type_of(self, schedule):
		"""The document of a schedule's job type; None when it is gone."""
		name = self.template_of(schedule).job_type
		if name not in self.types:
			self.types[name] = frappe.get_cached_doc("Job Type", name) if _exists(name) else None
		return self.types[name]

	def refusal(self, schedule, user: str | None) -> Refusal | None:
		"""Why a schedule must not make a job that runs as this user; None if it may."""
		if broken := self._why_broken(schedule):
			return Refusal(broken, settings.disables_broken_schedules())
		job_type = self.type_of(schedule)
		if reason := why_not_scheduled(job_type, self.template_of(schedule).job_type):
			return Refusal(reason, False)
		if reason := self._why_not_as(user, schedule, job_type):
			return Refusal(reason, True)
		return None

	def _why_broken(self, schedule) -> str | None:
		template = self.template_of(schedule)
		if template is None:
			return f"Job Template {schedule.job_template} was deleted"
		if template.status != "Active":
			return f"Job Template {template.name} is archived"
		if template.organization and template.organization != schedule.organization:
			return f"Job Template {template.name} belongs to another organization"
		return self._why_not_in(schedule.organization)

	def _why_not_in(self, organization: str) -> str | None:
		if organization not in self.organizations:
			self.organizations[organization] = _message_of(
				lambda: tenancy.check_organization_is_active(organization)
			)
		return self.organizations[organization]

	def _why_not_as(self, user: str | None, schedule, job_type) -> str | None:
		if not user:
			return "There is no user to run as; enable the schedule again"
		job = frappe._dict(owner_user=user, organization=schedule.organization, job_type=job_type.name)
		return self.facts.refusal(job)


def why_not_scheduled(job_type, name: str) -> str | None:
	"""Why jobs of a type cannot come from a schedule; None if they can."""
	if job_type is None:
		return f"Job Type {name} not found"
	if not job_type.is_enabled:
		return _("Job Type {0} is disabled.").format(name)
	if not job_type.allow_schedule:
		message = _("Jobs of type {0} may not be scheduled. An administrator can allow it on the Job Type.")
		return message.format(name)
	return None


def _exists(job_type: str) -> bool:
	return bool(statements.fetch("select 1 as one from `tabJob Type` where name = %s", (job_type,)))


def _message_of(check: Callable[[], object]) -> str | None:
	"""What a check says when it refuses; nobody is at the screen to be shown it."""
	shown = len(frappe.local.message_log)
	try:
		check()
	except frappe.ValidationError as error:
		del frappe.local.message_log[shown:]
		return str(error)
	return None
