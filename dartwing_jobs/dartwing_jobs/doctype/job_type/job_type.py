"""Job Type: a kind of work, its handler and its policy."""

import re

import frappe
from frappe import _
from frappe.permissions import rights
from frappe.utils import cint

from dartwing_jobs.document import JobsDocument
from dartwing_jobs.engine import pauses
from dartwing_jobs.engine.handling import handlers, write_guard
from dartwing_jobs.engine.rules import policies, priorities, queue_rules
from dartwing_jobs.engine.rules.categories import GENERAL
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.messages import throw

DOTTED_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+", re.ASCII)


class JobType(JobsDocument):
	def before_validate(self):
		self.default_priority = priorities.from_value(self.default_priority)
		self.declared = self.remembered_declaration()
		if self.is_new():
			self.take_from_category()

	def validate(self):
		self.validate_numbers()
		self.validate_handler_method()
		self.validate_requires_permission()
		self.validate_parameters_schema()
		self.validate_writable_doctypes()
		if self.job_queue:
			queue_rules.check(self.job_queue, self)

	def on_update(self):
		if self.paused or not self.is_enabled:
			pauses.mark_after_commit(pauses.JOB_TYPE, self.name)
		else:
			pauses.ring_if_it_held(self.get_doc_before_save())

	def on_trash(self):
		"""Ours to check: Background Job is exempt from Frappe's link check, which knows no single links."""
		if job := frappe.db.get_value("Background Job", {"job_type": self.name}, "name"):
			message = _("Job Type {0} cannot be deleted: job {1} refers to it. Disable it instead.")
			throw(message.format(self.name, job), frappe.LinkExistsError)

	def remembered_declaration(self) -> str | None:
		"""Memory of `engine.handling.declared`, which writes past the document: no save can change it."""
		return None if self.is_new() else frappe.db.get_value("Job Type", self.name, "declared")

	def take_from_category(self) -> None:
		"""What the maker left open: a value that equals the field's default yields to the category's."""
		self.category = self.category or GENERAL
		category = policies.category(self.category)
		if category is None:
			known = ", ".join(policies.category_names())
			throw(_("Category must be one of {0}.").format(known), InvalidJobError)
		if str(self.max_retries) in ("None", self.meta.get_field("max_retries").default):
			self.max_retries = category.max_retries
		self.allow_schedule = cint(self.allow_schedule or category.allow_schedule)
		for field in self.meta.fields:
			# fixtures arrive without defaults
			if self.get(field.fieldname) is None and field.default:
				self.set(field.fieldname, field.default)

	def validate_numbers(self) -> None:
		if cint(self.rate_limit) and not cint(self.rate_window_seconds):
			throw(_("Most Starts needs a window of at least one second."), InvalidJobError)
		if cint(self.default_timeout) <= 0:
			throw(_("Default Timeout must be at least one second."), InvalidJobError)
		if self.default_priority not in priorities.ALL:
			message = _("Default Priority must be one of {0}.").format(", ".join(priorities.ALL))
			throw(message, InvalidJobError)

	def validate_handler_method(self) -> None:
		if not DOTTED_PATH.fullmatch(self.handler_method or ""):
			message = _(
				"Handler Method must be the path of a Python function, such as my_app.jobs.make_pdf, not {0}."
			)
			throw(message.format(self.handler_method), InvalidJobError)
		handlers.resolve(self.handler_method)

	def validate_requires_permission(self) -> None:
		if not self.requires_permission:
			return
		doctype, _colon, ptype = self.requires_permission.rpartition(":")
		if ptype not in rights or not frappe.db.exists("DocType", doctype):
			message = _(
				"Requires Permission must be DocType:permission, such as Sales Invoice:create, not {0}."
			)
			throw(message.format(self.requires_permission), InvalidJobError)

	def validate_writable_doctypes(self) -> None:
		for doctype in write_guard.writable_doctypes(self):
			if not frappe.db.exists("DocType", doctype):
				message = _("DocTypes It May Write: there is no DocType {0}. Write one name per line.")
				throw(message.format(doctype), InvalidJobError)

	def validate_parameters_schema(self) -> None:
		given = self.parameters_schema
		if not given or (isinstance(given, str) and not given.strip()):
			self.parameters_schema = None
			return
		from dartwing_jobs import schemas  # few types have a schema, and its library takes a while to load

		self.parameters_schema = schemas.canonical(given, _(self.meta.get_label("parameters_schema")))
