"""Base classes of this app's documents: what malformed input, frozen fields and engine-owned rows mean."""

from datetime import datetime

import frappe
from frappe import _
from frappe.model import default_fields
from frappe.model.document import Document

from dartwing_jobs import clock
from dartwing_jobs.errors import EngineOwnedError, FrozenFieldError, InvalidJobError

# what fits into an Int column on MariaDB
LARGEST_INT = 2**31 - 1
# Frappe makes longer ones when a field says so
LARGEST_LONG_INT, SHORT_INT_LENGTH = 2**63 - 1, 11
# forms send these along with a document; they are no fields and start with no underscore
NOT_FIELDS = frozenset({"flags", "doctype", "localname", "dont_update_if_missing"})


class GuardedDocument(Document):
	"""What holds for every document of this app."""

	def before_rename(self, *args, **kwargs):
		"""Frappe's `force` beats `allow_rename`, and renaming rewrites every row that links to a document."""
		frappe.throw(_("{0} cannot be renamed.").format(_(self.doctype)), FrozenFieldError)

	def check_if_latest(self):
		"""A stale document is told when it was changed; strangers send stale documents to hear just that."""
		if not self.is_new():
			self.check_permission("read")
		super().check_if_latest()


class JobsDocument(GuardedDocument):
	"""A document that says clearly what is wrong with its input, whichever door it came through."""

	def insert(self, *args, **kwargs):
		self.check_input()
		return super().insert(*args, **kwargs)

	def save(self, *args, **kwargs):
		self.check_input()
		return super().save(*args, **kwargs)

	def check_input(self) -> None:
		self._refuse_unknown_fields()
		for fieldname in ("name", *(field.fieldname for field in self.meta.fields)):
			value = self.__dict__.get(fieldname)
			if value not in (None, ""):
				self.set(fieldname, checked(value, self.meta.get_field(fieldname), fieldname))

	def notify_update(self) -> None:
		"""Refreshes open forms; Frappe's list event would tell the name to every user of the site."""
		message = {"modified": self.modified, "doctype": self.doctype, "name": self.name}
		frappe.publish_realtime(
			"doc_update", message, doctype=self.doctype, docname=self.name, after_commit=True
		)

	def _refuse_unknown_fields(self) -> None:
		known = {*default_fields, *NOT_FIELDS, *(field.fieldname for field in self.meta.fields)}
		unknown = {key for key in self.__dict__ if key not in known and not self._is_internal(key)}
		# a column may outlive its field: it is loaded with the row, nobody gave it
		if unknown and not self.meta.issingle:
			unknown -= set(frappe.db.get_table_columns(self.doctype))
		if unknown:
			message = _("{0} has no field {1}.").format(_(self.doctype), ", ".join(sorted(unknown)))
			frappe.throw(message, InvalidJobError)

	def _is_internal(self, key: str) -> bool:
		# cached properties live in __dict__ too
		return key.startswith("_") or hasattr(type(self), key)


class EngineOwnedDocument(GuardedDocument):
	"""A record that the engine writes by its own statements, and that documents can only read."""

	def db_insert(self, *args, **kwargs):
		self._refuse(_("written"))

	def db_update(self):
		self._refuse(_("changed"))

	def db_set(self, *args, **kwargs):
		self._refuse(_("changed"))

	def on_trash(self):
		self._refuse(_("deleted"))

	def _refuse(self, verb: str) -> None:
		message = _("{0} is {1} by the engine alone.").format(_(self.doctype), verb)
		frappe.throw(message, EngineOwnedError)


def checked(value, field, fieldname: str):
	"""The value as it can be stored; raises when it cannot, or would be stored as something else."""
	label = _(field.label) if field else fieldname
	if isinstance(value, str) and "\x00" in value:
		frappe.throw(_("{0} contains a NUL character.").format(label), InvalidJobError)
	if field and field.fieldtype == "Int":
		_check_int(value, label, field)
	if field and field.fieldtype == "Datetime":
		return _checked_moment(value, label)
	return value


def _check_int(value, label: str, field) -> None:
	largest = LARGEST_LONG_INT if (field.length or 0) > SHORT_INT_LENGTH else LARGEST_INT
	smallest = 0 if field.non_negative else -largest
	try:
		number = int(value)
	except (TypeError, ValueError):
		frappe.throw(_("{0} must be a whole number, not {1}.").format(label, value), InvalidJobError)
	if not smallest <= number <= largest:
		message = _("{0} must be between {1} and {2}, not {3}.")
		frappe.throw(message.format(label, smallest, largest, number), InvalidJobError)


def _checked_moment(value, label: str) -> datetime:
	moment = clock.parse(value)
	if moment is None or moment.year < 1970:
		message = _("{0} must be a date and time such as 2026-01-31 09:00:00, not {1}.")
		frappe.throw(message.format(label, value), InvalidJobError)
	return moment
