"""Job Group: jobs that belong together."""

import frappe
from frappe import _

from dartwing_jobs import parameters, tenancy
from dartwing_jobs.document import JobsDocument
from dartwing_jobs.engine import submission
from dartwing_jobs.engine.groups import ends as group_ends
from dartwing_jobs.engine.groups import statuses
from dartwing_jobs.errors import FrozenFieldError, InvalidJobError
from dartwing_jobs.messages import throw

# written by the engine alone: what a new group has there
DERIVED = {
	"status": statuses.QUEUED,
	"ended_at": None,
	"last_position": 0,
	"last_member": None,
	"callback_job": None,
	"callback_fired_on": None,
	"callback_error": None,
	"cancel_requested_at": None,
	"cancel_requested_by": None,
	"cancel_reason": None,
}
# its jobs, and the callback, which runs with the rights of whoever made the group, rest on these
FIXED = (
	"owner",
	"organization",
	"mode",
	"on_failure",
	"callback_job_type",
	"callback_on",
	"callback_parameters",
)
INDEXES = {"idx_job_group_status": ["status"]}


class JobGroup(JobsDocument):
	def before_insert(self):
		self.owner = frappe.session.user

	def before_validate(self):
		parameters.store(self, "callback_parameters")

	def validate(self):
		if self.is_new():
			tenancy.check_organization_is_active(self.organization)
			self.validate_callback()
		self.validate_nothing_is_set_but_by_the_engine()

	def validate_callback(self) -> None:
		"""Whoever makes the group must be able to submit its callback: at its end nobody can be told."""
		if not self.callback_job_type:
			return
		job_type = submission.type_named(self.callback_job_type)
		if not job_type.is_enabled:
			throw(_("Job Type {0} is disabled.").format(job_type.name), InvalidJobError)
		required = job_type.requires_permission
		if reason := tenancy.reason_not_to_submit(self.owner, self.organization, required):
			throw(reason, frappe.PermissionError)
		given = group_ends.callback_parameters(self, statuses.COMPLETED, {})
		stored = parameters.canonical(given, "Callback Parameters")
		parameters.check_secrets(job_type, [stored])
		parameters.check_schema(job_type, stored)

	def validate_nothing_is_set_but_by_the_engine(self) -> None:
		before = self.get_doc_before_save()
		for fieldname, value in (before.as_dict() if before else DERIVED).items():
			if _comparable(fieldname, self.get(fieldname)) == _comparable(fieldname, value):
				continue
			label = _(self.meta.get_label(fieldname))
			if fieldname in DERIVED:
				message = _("A group's {0} follows from its jobs and cannot be set.")
				throw(message.format(label.lower()), FrozenFieldError)
			if fieldname in FIXED:
				throw(_("{0} is settled when a group is made.").format(label), FrozenFieldError)


def _comparable(fieldname: str, value):
	return parameters.load(value) if fieldname == "callback_parameters" else str(value or "")


def on_doctype_update():
	for index_name, columns in INDEXES.items():
		frappe.db.add_index("Job Group", columns, index_name)
