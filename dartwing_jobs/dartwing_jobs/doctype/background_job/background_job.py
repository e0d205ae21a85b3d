"""Background Job: what may be submitted, and what may be edited afterwards. The engine does the rest."""

import frappe
from frappe import _

from dartwing_jobs import parameters
from dartwing_jobs.document import JobsDocument
from dartwing_jobs.engine import database, log, naming, promote, states, submission
from dartwing_jobs.engine.groups import memberships
from dartwing_jobs.engine.handling import inputs
from dartwing_jobs.engine.intake import frozen, keys
from dartwing_jobs.engine.limits import capacity
from dartwing_jobs.engine.observing import counters
from dartwing_jobs.engine.rules import priorities
from dartwing_jobs.engine.submit import call_workers_after_commit
from dartwing_jobs.errors import InvalidJobError

INDEXES = {
	"idx_org_status": ["organization", "status"],
	"idx_job_hash": ["job_hash", "creation"],
	"idx_next_retry": ["next_retry_at", "status"],
	"idx_depends_on": ["depends_on", "status"],
	"idx_job_type_status": ["job_type", "status", "modified", "name"],
	"idx_job_group": ["job_group", "position"],
	"idx_due": ["job_queue", "run_at", "name"],
	"idx_line": ["line", "claim_key", "name"],
	"idx_fair_share": ["line", "organization", "claim_key"],
	"idx_lease": ["lease_expires_at", "name"],
	"idx_held": ["job_queue", "held_by", "held_key", "name"],
}


class BackgroundJob(JobsDocument):
	@property
	def duplicate(self) -> bool:
		"""Whether a submit was answered with this job because it had been submitted before."""
		return bool(self.flags.duplicate)

	@property
	def output(self):
		"""What came out of it, in the answer to a submit that found it done."""
		return self.flags.output

	def before_insert(self):
		submission.set_submitter(self)

	def set_new_name(self, force=False, set_name=None, set_child_names=True):
		"""Names are drawn, never given: a given one would meet the sequence some day."""
		self.name = None
		super().set_new_name(force=force, set_child_names=set_child_names)

	def autoname(self):
		self.name = naming.next_job_name()

	def before_validate(self):
		self.priority = priorities.from_value(self.priority)
		if self.is_new():
			submission.fill_in(self, submission.type_of(self))
			self.run_at = None if self.depends_on else database.due_moment(self.scheduled_for)
			parameters.store(self, "input_parameters")
			parameters.check_secrets(submission.type_of(self), [self.input_parameters])
			self.input_checksums = None
			inputs.remember([self], submission.type_of(self))

	def validate(self):
		if self.is_new():
			job_type = submission.type_of(self)
			submission.check(self, job_type)
			parameters.check_schema(job_type, self.input_parameters)
			capacity.check([self])
		else:
			submission.check_limits(self)

	def db_insert(self, *args, **kwargs):
		"""Born Pending; the promoter puts it in line as soon as it is due."""
		frozen.check_new(self)
		if self.job_group:
			memberships.take_places([self])
		with keys.held_by(self, submission.type_of(self)):
			super().db_insert(*args, **kwargs)
		log.write(self, states.CREATION.event, None, self.status, actor=self.owner_user, now=self.created_at)
		call_workers_after_commit(self)

	def db_update(self):
		frozen.check_changes(self)
		super().db_update()

	def db_set(self, fieldname, value=None, *args, **kwargs):
		frozen.check_db_set(self, fieldname if isinstance(fieldname, dict) else {fieldname: value})
		super().db_set(fieldname, value, *args, **kwargs)
		promote.replace(self.name)

	def on_update(self):
		before = self.get_doc_before_save()
		if before and (before.priority, before.scheduled_for) != (self.priority, self.scheduled_for):
			promote.replace(self.name)

	def on_trash(self):
		self.refuse_to_orphan()
		counters.add_after_commit(counters.take([self.name]))
		for doctype in (
			"Job Execution Log",
			"Job Run",
			"Job Step",
			"Job Idempotency Key",
			"Job Schedule Fire",
		):
			frappe.db.delete(doctype, {"background_job": self.name})

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
	frappe.db.add_unique("Background Job", ["organization", "unique_key"], keys.UNIQUE_INDEX)
