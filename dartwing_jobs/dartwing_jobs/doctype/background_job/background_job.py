"""Background Job: what may be submitted, and what may be edited afterwards. The engine does the rest."""

import uuid

import frappe
from frappe import _
from frappe.utils import cint

from dartwing_jobs import clock, parameters, tenancy
from dartwing_jobs.document import JobsDocument
from dartwing_jobs.engine import bell, database, frozen, log, naming, priorities, states
from dartwing_jobs.engine.categories import CATEGORIES, GENERAL
from dartwing_jobs.errors import InvalidJobError

# a job's field: the job type's field that it takes its value from
FROM_JOB_TYPE = {
	"priority": "default_priority",
	"timeout_seconds": "default_timeout",
	"max_retries": "max_retries",
}
LINKS_WITHIN_ORGANIZATION = ("depends_on", "retry_of", "job_template", "job_schedule", "job_group")
INDEXES = {
	"idx_org_status": ["organization", "status"],
	"idx_job_hash": ["job_hash", "creation"],
	"idx_next_retry": ["next_retry_at", "status"],
	"idx_depends_on": ["depends_on", "status"],
	"idx_job_type_status": ["job_type", "status"],
	"idx_job_group": ["job_group", "position"],
	"idx_run_at": ["run_at", "name"],
	"idx_claim": ["job_queue", "claim_key"],
	"idx_fair_share": ["job_queue", "organization", "priority", "claim_key"],
	"idx_lease": ["lease_expires_at", "name"],
}


class BackgroundJob(JobsDocument):
	def before_insert(self):
		self.set_submitter()

	def set_new_name(self, force=False, set_name=None, set_child_names=True):
		"""Names are drawn, never given: a given one would meet the sequence some day."""
		self.name = None
		super().set_new_name(force=force, set_child_names=set_child_names)

	def autoname(self):
		self.name = naming.next_job_name()

	def before_validate(self):
		self.priority = priorities.from_value(self.priority)
		if self.is_new():
			self.fill_in()

	def validate(self):
		self.validate_priority()
		if self.is_new():
			self.validate_submission()

	def db_insert(self, *args, **kwargs):
		frozen.check_new(self)
		super().db_insert(*args, **kwargs)

	def db_update(self):
		frozen.check_changes(self)
		super().db_update()

	def db_set(self, fieldname, value=None, *args, **kwargs):
		frozen.check_db_set(self, fieldname if isinstance(fieldname, dict) else {fieldname: value})
		super().db_set(fieldname, value, *args, **kwargs)

	def after_insert(self):
		log.write(self, states.CREATION.event, None, self.status, actor=self.owner_user, now=self.created_at)

		bell.ring_after_commit(self.job_queue)

	def on_trash(self):
		self.refuse_to_orphan()
		for doctype in ("Job Execution Log", "Job Run", "Job Idempotency Key"):
			frappe.db.delete(doctype, {"background_job": self.name})

	def set_submitter(self) -> None:
		"""The owner is who submits; Frappe's own `owner` says the same, so that if_owner works."""
		user = frappe.session.user
		self.owner_user = self.owner_user or user
		if not tenancy.may_submit_as(self.owner_user, user):
			frappe.throw(
				_("You cannot submit a job in the name of {0}.").format(self.owner_user),
				frappe.PermissionError,
			)
		self.owner = self.owner_user

	def fill_in(self) -> None:
		"""What the submitter left open: a value that equals the field's default yields to the job type's."""
		job_type = self.get_job_type()
		for fieldname, source in FROM_JOB_TYPE.items():
			if self.is_default(fieldname) and job_type.get(source) not in (None, ""):
				self.set(fieldname, job_type.get(source))
		self.job_queue = (
			self.job_queue or job_type.job_queue or CATEGORIES[job_type.category or GENERAL].queue
		)
		self.job_id = self.job_id or str(uuid.uuid4())
		self.actor_id = self.actor_id or self.owner_user
		self.created_at = clock.now()
		self.run_at = None if self.depends_on else database.due_moment(self.scheduled_for)
		parameters.store(self, "input_parameters")

	def is_default(self, fieldname: str) -> bool:
		value, default = self.get(fieldname), self.meta.get_field(fieldname).default
		return value in (None, "") or str(value) == default

	def get_job_type(self):
		if not frappe.db.exists("Job Type", self.job_type):
			frappe.throw(_("Job Type {0} was not found.").format(self.job_type), InvalidJobError)
		return frappe.get_cached_doc("Job Type", self.job_type)

	def validate_submission(self) -> None:
		tenancy.check_organization_is_active(self.organization)
		if not self.get_job_type().is_enabled:
			frappe.throw(_("Job Type {0} is disabled.").format(self.job_type), InvalidJobError)
		self.validate_template()
		self.validate_job_id()
		if self.unique_key is not None and not self.unique_key.strip():
			self.unique_key = None
		for fieldname in LINKS_WITHIN_ORGANIZATION:
			tenancy.check_same_organization(self, fieldname)
		self.validate_dependency()

	def validate_priority(self) -> None:
		if self.priority not in priorities.ALL:
			message = _("Priority must be one of {0}, not {1}.").format(
				", ".join(priorities.ALL), self.priority
			)
			frappe.throw(message, InvalidJobError)
		if cint(self.timeout_seconds) <= 0:
			frappe.throw(_("Timeout must be at least one second."), InvalidJobError)

	def validate_template(self) -> None:
		if self.job_template and frappe.db.get_value("Job Template", self.job_template, "status") != "Active":
			message = _("Job Template {0} is archived or gone; no new jobs can be made from it.")
			frappe.throw(message.format(self.job_template), InvalidJobError)

	def validate_job_id(self) -> None:
		try:
			self.job_id = str(uuid.UUID(self.job_id))
		except ValueError:
			frappe.throw(_("Job ID must be a UUID, not {0}.").format(self.job_id), InvalidJobError)

	def validate_dependency(self) -> None:
		"""Walks up the parents: a job that waits for itself would wait for ever."""
		seen, parent = {self.name}, self.depends_on
		while parent:
			if parent in seen:
				message = _("Job {0} cannot depend on {1}: that would be a circle.")
				frappe.throw(message.format(self.name, self.depends_on), InvalidJobError)
			seen.add(parent)
			parent = frappe.db.get_value("Background Job", parent, "depends_on")

	def refuse_to_orphan(self) -> None:
		if self.status == states.RUNNING:
			frappe.throw(
				_("Job {0} is running; cancel it before you delete it.").format(self.name), InvalidJobError
			)
		waiting = {"depends_on": self.name, "status": ["in", sorted(states.ACTIVE)]}
		if child := frappe.db.get_value("Background Job", waiting, "name"):
			message = _("Job {0} waits for {1}; cancel it before you delete the job it depends on.")
			frappe.throw(message.format(child, self.name), frappe.LinkExistsError)


def on_doctype_update():
	for index_name, columns in INDEXES.items():
		frappe.db.add_index("Background Job", columns, index_name)
