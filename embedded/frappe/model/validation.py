"""The checks that every document passes before it is written."""

from typing import Any

import frappe
from frappe import _
from frappe.model import display_fieldtypes, table_fields
from frappe.utils.data import cint, cstr, flt, sanitize_html, strip_html
from frappe.utils.password import get_decrypted_password, remove_encrypted_password, set_encrypted_password

LARGEST = {"smallint": 2**15 - 1, "bigint": 2**63 - 1}
UNSANITISED = ("Attach", "Attach Image", "Barcode", "Code")


class Validation:
	def _where(self) -> str:
		return _("Row {0}: ").format(self.idx) if self.get("parentfield") else ""

	def _missing_mandatory(self) -> list[str]:
		missing = []
		for df in self.meta.get("fields", {"reqd": 1}):
			value = self.get(df.fieldname)
			if value in (None, []) or not (strip_html(cstr(value)).strip() or "<img" in cstr(value)):
				missing.append(df.fieldname)
				what = _("Table {0} needs rows") if df.fieldtype in table_fields else _("{0} is missing")
				frappe.msgprint(self._where() + what.format(f"{self.doctype}: {df.label}"))
		if self.meta.istable:
			missing += [field for field in ("parent", "parenttype") if not self.get(field)]
		return missing

	def get_invalid_links(self) -> list[str]:
		invalid = []
		for df in self.meta.get_link_fields() + self.meta.get_dynamic_link_fields():
			docname = self.get(df.fieldname)
			if not docname:
				continue
			doctype = df.options if df.fieldtype == "Link" else self.get(df.options)
			if not doctype:
				frappe.throw(_("Set {0} first").format(self.meta.get_label(df.options)))
			found = self._fetch_link(df, doctype, docname)
			setattr(self, df.fieldname, found)
			if not found:
				invalid.append(f"{self._where()}{df.label}: {docname}")
		return invalid

	def _fetch_link(self, df: Any, doctype: str, docname: str) -> str | None:
		to_fetch = [
			other
			for other in self.meta.get_fields_to_fetch(df.fieldname)
			if not (other.fetch_if_empty and self.get(other.fieldname))
		]
		if frappe.get_meta(doctype).issingle:
			return doctype
		if not to_fetch:
			return frappe.db.get_value(doctype, docname, "name", cache=True)
		sources = [other.fetch_from.split(".")[-1] for other in to_fetch]
		values = frappe.db.get_value(doctype, docname, list({"name", *sources}), as_dict=True)
		for other, source in zip(to_fetch, sources, strict=True) if values else ():
			self.set(other.fieldname, values[source])
		# as in Frappe, a missing document with fields to fetch leaves the link as it is
		return values.name if values else docname

	def _validate_fields(self) -> None:
		self._validate_email_fields()
		self._validate_selects()
		self._validate_non_negative()
		self._validate_length()
		self._sync_autoname_field()
		self._sanitize_content()
		self._save_passwords()

	def _validate_email_fields(self) -> None:
		for df in self.meta.get("fields", {"fieldtype": "Data", "options": "Email"}):
			value = self.get(df.fieldname)
			if self.owner in frappe.STANDARD_USERS and value in frappe.STANDARD_USERS:
				continue
			for address in frappe.utils.split_emails(value):
				frappe.utils.validate_email_address(address, throw=True)

	def _validate_selects(self) -> None:
		if frappe.flags.in_import:
			return
		for df in self.meta.get_select_fields():
			if df.fieldname == "naming_series" or not (self.get(df.fieldname) and df.options):
				continue
			value = cstr(self.get(df.fieldname)).strip()
			self.set(df.fieldname, value)
			options = df.options.split("\n")
			if value not in options and not (frappe.flags.in_test and value.startswith("_T-")):
				text = _('{0} cannot be "{1}"; it must be one of "{2}"')
				frappe.throw(self._where() + text.format(df.label, value, '", "'.join(options)))

	def _validate_non_negative(self) -> None:
		for df in self.meta.get(
			"fields", {"non_negative": 1, "fieldtype": ["in", ("Int", "Float", "Currency")]}
		):
			if flt(self.get(df.fieldname)) < 0:
				frappe.throw(
					self._where() + _("{0} cannot be negative").format(df.label), frappe.NonNegativeError
				)

	def _validate_length(self) -> None:
		if frappe.flags.in_install or self.meta.issingle:
			return
		for fieldname, value in self.get_valid_dict().items():
			df = self.meta.get_field(fieldname)
			if not df or df.fieldtype == "Check":
				continue
			kind, size = frappe.db.type_map[df.fieldtype]
			if kind == "varchar":
				limit, too_long = cint(df.length) or cint(size), None
				too_long = len(cstr(value)) > limit
			else:
				limit = LARGEST.get(kind)
				too_long = limit is not None and abs(cint(value)) > limit
			if too_long:
				text = _("{0} is too long: {1} takes at most {2}").format(self.doctype, df.label, limit)
				frappe.throw(self._where() + text, frappe.CharacterLengthExceededError)

	def _sync_autoname_field(self) -> None:
		_kind, _colon, fieldname = (self.meta.autoname or "").partition("field:")
		if fieldname and self.name and self.name != self.get(fieldname):
			self.set(fieldname, self.name)

	def _sanitize_content(self) -> None:
		if frappe.flags.in_install:
			return
		for fieldname, value in self.get_valid_dict().items():
			df = self.meta.get_field(fieldname)
			exempt = df and (df.ignore_xss_filter or df.options == "Email" or df.fieldtype in UNSANITISED)
			if not exempt and isinstance(value, str) and ("<" in value or ">" in value):
				self.set(fieldname, sanitize_html(value))

	def _save_passwords(self) -> None:
		for df in self.meta.get("fields", {"fieldtype": "Password"}):
			value = self.get(df.fieldname)
			if df.fieldname in (self.flags.ignore_save_passwords or ()):
				continue
			if not value:
				remove_encrypted_password(self.doctype, self.name, df.fieldname)
			elif set(value) != {"*"}:
				set_encrypted_password(self.doctype, self.name, value, df.fieldname)
				self.set(df.fieldname, "*" * len(value))

	def get_password(self, fieldname: str = "password", raise_exception: bool = True) -> str | None:
		value = self.get(fieldname)
		if value and set(value) != {"*"}:
			return value
		return get_decrypted_password(self.doctype, self.name, fieldname, raise_exception)

	def reset_values_if_no_permlevel_access(self, has_access_to: Any, high_permlevel_fields: list) -> None:
		to_reset = [
			df
			for df in high_permlevel_fields
			if cint(df.permlevel) not in has_access_to and df.fieldtype not in display_fieldtypes
		]
		if not to_reset:
			return
		reference = self._permlevel_reference()
		for df in to_reset if reference is not None else ():
			self.set(df.fieldname, reference.get(df.fieldname))

	def _permlevel_reference(self) -> Any:
		if self.is_new():
			return frappe.new_doc(self.doctype)
		if not self.parent_doc:
			return self.get_latest()
		rows = self.parent_doc.get_latest().get(self.parentfield)
		return next((row for row in rows if row.name == self.name), None)

	def _validate(self) -> None:
		if not self.flags.ignore_mandatory:
			missing = [f for doc in (self, *self.get_all_children()) for f in doc._missing_mandatory()]
			if missing:
				raise frappe.MandatoryError(f"[{self.doctype}, {self.name}]: {', '.join(missing)}")
		for document in (self, *self.get_all_children()):
			document._validate_fields()
		if not self.is_new():
			self.validate_set_only_once()

	def validate_set_only_once(self) -> None:
		before = self.get_doc_before_save()
		for df in self.meta.get_set_only_once_fields() if before else ():
			new, old = self.get(df.fieldname), before.get(df.fieldname)
			if df.fieldtype in table_fields:
				new, old = [_comparable(row) for row in new], [_comparable(row) for row in old]
			elif df.fieldtype in ("Date", "Datetime", "Time"):
				new, old = str(new), str(old)
			if new != old:
				text = _("{0} cannot be changed").format(self.meta.get_label(df.fieldname))
				frappe.throw(text, frappe.CannotChangeConstantError)

	def apply_fieldlevel_read_permissions(self) -> None:
		if frappe.session.user == "Administrator":
			return
		levels = self.meta.get_permlevel_access("read")
		for document in (self, *self.get_all_children()):
			for df in document.meta.get_high_permlevel_fields():
				if cint(df.permlevel) not in levels:
					document.__dict__.pop(df.fieldname, None)

	def validate_higher_perm_levels(self) -> None:
		if self.flags.ignore_permissions or frappe.flags.in_install or frappe.session.user == "Administrator":
			return
		levels = self.meta.get_permlevel_access("write")
		self.reset_values_if_no_permlevel_access(levels, self.meta.get_high_permlevel_fields())
		for row in () if self.is_new() else self.get_all_children():
			row.reset_values_if_no_permlevel_access(levels, row.meta.get_high_permlevel_fields())

	def _validate_links(self) -> None:
		if self.flags.ignore_links:
			return
		invalid = [text for doc in (self, *self.get_all_children()) for text in doc.get_invalid_links()]
		if invalid:
			frappe.throw(_("There is no {0}").format(", ".join(invalid)), frappe.LinkValidationError)


def _comparable(row: Any) -> dict:
	values = row.as_dict(convert_dates_to_str=True)
	return {k: v for k, v in values.items() if k not in ("modified", "modified_by", "creation")}
