"""Base classes of this app's documents: what malformed input, frozen fields and engine-owned rows mean."""

import html
import json
import re
from datetime import date, datetime, timedelta

import frappe
from frappe import _
from frappe.model import default_fields
from frappe.model.document import Document

from dartwing_jobs import clock
from dartwing_jobs.errors import EngineOwnedError, FrozenFieldError, InvalidJobError
from dartwing_jobs.messages import throw

# what fits into an Int column on MariaDB
LARGEST_INT = 2**31 - 1
# Frappe makes longer ones when a field says so
LARGEST_LONG_INT, SHORT_INT_LENGTH = 2**63 - 1, 11
# what fits into the columns that Frappe makes for texts: characters of the first, bytes of the second
SHORT_TEXTS = frozenset({"Data", "Link", "Dynamic Link", "Select", "Read Only"})
LONG_TEXTS = frozenset({"Small Text", "Text"})
SHORT_TEXT_LENGTH, LONG_TEXT_BYTES = 140, 65_535
HALF_A_PAIR = re.compile("[\ud800-\udfff]")
# of a value that is refused
SHOWN_LENGTH = 60
# in the last year of all, other zones have no calendar any more
FIRST_YEAR, LAST_YEAR = 1970, 9998
# what a print shows in its own way, also when the value is a text
DRAWN_OTHERWISE = frozenset({"Date", "Datetime", "Time", "Duration"})
# forms send these along with a document; they are no fields and start with no underscore
NOT_FIELDS = frozenset({"flags", "doctype", "localname", "dont_update_if_missing"})
# what columns hold
STORABLE = (str, int, float, date, timedelta, dict)


class GuardedDocument(Document):
	"""What holds for every document of this app."""

	def as_dict(self, *args, **kwargs) -> dict:
		"""`bench execute` prints what a function returned when it has left the site: it has no meta then."""
		if getattr(frappe.local, "site", None):
			return super().as_dict(*args, **kwargs)
		return {key: value for key, value in self.__dict__.items() if _is_stored(key, value)}

	def before_rename(self, *args, **kwargs):
		"""Frappe's `force` beats `allow_rename`, and renaming rewrites every row that links to a document."""
		throw(_("{0} cannot be renamed.").format(_(self.doctype)), FrozenFieldError)

	def check_if_latest(self):
		"""A stale document is told when it was changed; strangers send stale documents to hear just that."""
		if not self.is_new():
			self.check_permission("read")
		super().check_if_latest()

	def get_formatted(self, fieldname: str, *args, **kwargs):
		"""What a print shows of a field, as HTML: texts of people are escaped first."""
		field, value = self.meta.get_field(fieldname), self.get(fieldname)
		is_text = isinstance(value, str | dict | list) and not (field and field.fieldtype in DRAWN_OTHERWISE)
		if not is_text:
			return super().get_formatted(fieldname, *args, **kwargs)
		# PostgreSQL hands JSON over as what it stands for
		text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
		return html.escape(text).replace("\n", "<br>")


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
			throw(message, InvalidJobError)

	def _is_internal(self, key: str) -> bool:
		# cached properties live in __dict__ too
		return key.startswith("_") or hasattr(type(self), key)


class EngineOwnedDocument(GuardedDocument):
	"""A record that the engine writes by its own statements, and that documents can only read."""

	def insert(self, *args, **kwargs):
		"""Refused before Frappe looks at what was sent."""
		self.check_permission("create")
		self._refuse(_("written"))

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
		throw(message, EngineOwnedError)


def _is_stored(key: str, value) -> bool:
	is_field = key == "doctype" or not (key.startswith("_") or key in NOT_FIELDS)
	return is_field and isinstance(value, STORABLE)


def checked(value, field, fieldname: str):
	"""The value as it can be stored; raises when it cannot, or would be stored as something else."""
	label = _(field.label) if field else fieldname
	fieldtype = field.fieldtype if field else "Data"
	if isinstance(value, str):
		_check_text(value, label, fieldtype, field)
	elif isinstance(value, dict | list | float) and fieldtype in (*SHORT_TEXTS, *LONG_TEXTS):
		throw(_("{0} must be a text.").format(label), InvalidJobError)
	if field and field.fieldtype == "Int":
		_check_int(value, label, field)
	if field and field.fieldtype == "Datetime":
		return _checked_moment(value, label)
	return value


def check_texts(document, _event: str | None = None) -> None:
	"""For Organization, whose DocType may be another app's: what no database can store is refused."""
	for field in document.meta.fields:
		value = document.get(field.fieldname)
		if isinstance(value, str):
			_refuse_unstorable(value, _(field.label))


def shown(value) -> str:
	"""A value that was given, for a message: short, and what can be shown."""
	text = str(value).encode(errors="replace").decode().replace("\x00", "\ufffd")
	return text if len(text) <= SHOWN_LENGTH else f"{text[:SHOWN_LENGTH]} ..."


def _refuse_unstorable(value: str, label: str) -> None:
	if "\x00" in value:
		throw(_("{0} contains a NUL character.").format(label), InvalidJobError)
	if HALF_A_PAIR.search(value):
		throw(_("{0} contains half a surrogate pair.").format(label), InvalidJobError)


def _check_text(value: str, label: str, fieldtype: str, field) -> None:
	_refuse_unstorable(value, label)
	if fieldtype in SHORT_TEXTS:
		length, most = len(value), (field and field.length) or SHORT_TEXT_LENGTH
	elif fieldtype in LONG_TEXTS:
		length, most = len(value.encode()), LONG_TEXT_BYTES
	else:
		return
	if length > most:
		message = _("{0} has {1} characters; at most {2} are allowed.")
		throw(message.format(label, length, most), InvalidJobError)


def _check_int(value, label: str, field) -> None:
	largest = LARGEST_LONG_INT if (field.length or 0) > SHORT_INT_LENGTH else LARGEST_INT
	smallest = 0 if field.non_negative else -largest
	try:
		number = int(value)
	except (TypeError, ValueError, OverflowError):
		throw(_("{0} must be a whole number, not {1}.").format(label, shown(value)), InvalidJobError)
	if not smallest <= number <= largest:
		message = _("{0} must be between {1} and {2}, not {3}.")
		throw(message.format(label, smallest, largest, shown(value)), InvalidJobError)


def _checked_moment(value, label: str) -> datetime:
	moment = clock.parse(value)
	if moment is None or not FIRST_YEAR <= moment.year <= LAST_YEAR:
		message = _("{0} must be a date and time such as 2026-01-31 09:00:00, not {1}.")
		throw(message.format(label, shown(value)), InvalidJobError)
	return moment
