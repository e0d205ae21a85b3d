"""Background Job: what may be submitted, and what may be edited afterwards. The engine does the rest."""

from datetime import datetime

import frappe
from frappe import _
from frappe.utils import get_datetime

from dartwing_jobs import clock
from dartwing_jobs.document import JobsDocument
from dartwing_jobs.engine import database, log, naming, promote, states, submission
from dartwing_jobs.engine.groups import memberships
from dartwing_jobs.engine.handling import inputs, outputs
from dartwing_jobs.engine.intake import frozen, keys
from dartwing_jobs.engine.limits import capacity
from dartwing_jobs.engine.observing import counters
from dartwing_jobs.engine.rules import priorities
from dartwing_jobs.engine.submit import call_workers_after_commit
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.messages import throw

INDEXES = {
	"idx_org_status": ["organization", "status"],
	"idx_job_hash": ["job_hash", "creation"],
	"idx_next_retry": ["next_retry_at", "status", "depends_on"],
	"idx_depends_on": ["depends_on", "status"],
	"idx_job_type_status": ["job_type", "status", "modified", "name"],
	"idx_job_group": ["job_group", "position"],
	"idx_due": ["job_queue", "run_at", "name"],
	"idx_line": ["line", "claim_key", "name"],
	"idx_fair_share": ["line", "organization", "claim_key"],
	"idx_lease": ["lease_expires_at", "name"],
	"idx_created": ["created_utc", "name"],
	"idx_held": ["job_queue", "held_by", "held_key", "name"],
}


class BackgroundJob(JobsDocument):
	@property
	def duplicate(self) -> bool:
		"""Whether a submit was answered with this job because it had been submitted before."""
		return bool(self.flags.duplicate)

	@property
	def output(self):
		"""What came out of it; the field has it as text."""
		return outputs.load(self.get("output"))

	def load_from_db(self):
		"""Its time is shown by the site's clock of today: the zone may have changed since it was written."""
		super().load_from_db()
		if self.scheduled_utc:
			self.scheduled_for = database.as_site_time(self.scheduled_utc)
		return self

	def check_input(self) -> None:
		self.flags.has_offset = clock.has_offset(self.get("scheduled_for"))
		super().check_input()

	def before_insert(self):
		submission.set_submitter(self, submission.type_of(self))

	def set_new_name(self, force=False, set_name=None, set_child_names=True):
		"""Names are drawn, never given: a given one would meet the sequence some day."""
		self.name = None
		super().set_new_name(force=force, set_child_names=set_child_names)

	def autoname(self):
		self.name = naming.next_job_name(clock.now())

	def before_validate(self):
		self.priority = priorities.from_value(self.priority)
		if self.is_new():
			job_type, label = submission.type_of(self), self.meta.get_label("input_parameters")
			submission.fill_in(self, job_type)
			self.run_at = None if self.depends_on else self.scheduled_utc or database.utc_now()
			given = [self.input_parameters]
			(self.input_parameters,) = submission.storable_parameters(job_type, given, label)
			self.input_checksums = self.job_hash = None
			inputs.remember([self], job_type)
		else:
			self.scheduled_utc = self.edited_instant()

	def edited_instant(self) -> datetime | None:
		"""A time that was not edited keeps its instant, also where the clock shows it twice."""
		before, moment = self.get_doc_before_save(), self.scheduled_for and get_datetime(self.scheduled_for)
		if before and moment == before.scheduled_for and not self.flags.has_offset:
			return before.scheduled_utc
		return clock.as_utc(moment) if moment else None

	def validate(self):
		if self.is_new():
			submission.check_grounds(self)
			submission.check(self, submission.type_of(self))
			capacity.check([self])
		else:
			submission.check_edited(self, self.get_doc_before_save())

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
		values = dict(fieldname) if isinstance(fieldname, dict) else {fieldname: value}
		frozen.check_db_set(self, values)
		if values.get("scheduled_for"):
			submission.check_time(frappe._dict(values), submission.type_of(self))
		if "scheduled_for" in values:
			values |= moments(values["scheduled_for"])
		super().db_set(values, None, *args, **kwargs)
		promote.replace(self.name)

	def on_update(self):
		before = self.get_doc_before_save()
		if before and (before.priority, before.scheduled_utc) != (self.priority, self.scheduled_utc):
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
			throw(_("Job {0} is running; cancel it before you delete it.").format(self.name), InvalidJobError)
		waiting = {"depends_on": self.name, "status": ["in", sorted(states.ACTIVE)]}
		if child := frappe.db.get_value("Background Job", waiting, "name"):
			message = _("Job {0} waits for {1}; cancel it before you delete the job it depends on.")
			throw(message.format(child, self.name), frappe.LinkExistsError)


def moments(given) -> dict:
	"""The columns of a time: on the site's clock, and as an instant."""
	if not given:
		return {"scheduled_for": None, "scheduled_utc": None}
	moment = clock.parse(given)
	return {"scheduled_for": moment, "scheduled_utc": clock.as_utc(moment)}


def on_doctype_update():
	for index_name, columns in INDEXES.items():
		frappe.db.add_index("Background Job", columns, index_name)
	database.compare_bytes("Background Job", keys.COLLATIONS)
	frappe.db.add_unique("Background Job", ["organization", "unique_key"], keys.UNIQUE_INDEX)
