"""The state of one document, what it must be like, and how it reaches its table."""

import datetime
import json
from collections.abc import Iterator
from typing import Any

import frappe
from frappe import _
from frappe.model import default_fields
from frappe.model.meta import SPECIAL, Meta
from frappe.types.frappedict import _dict
from frappe.utils.data import cint, cstr, flt, now, sanitize_html, strip_html
from frappe.utils.password import get_decrypted_password, remove_encrypted_password, set_encrypted_password

NUMBERS = {"Check": lambda value: int(bool(cint(value))), "Int": cint}
NUMBERS |= dict.fromkeys(("Float", "Currency", "Percent"), flt)
DATES = (datetime.datetime, datetime.date)
RESERVED = frozenset(["doctype", "meta", "flags", "_table_fieldnames", "_doc_before_save"])


def is_empty(value: Any) -> bool:
	return value in (None, []) or not strip_html(cstr(value)).strip()


def typed(df: Any, value: Any) -> Any:
	is_number = df.fieldtype == "Check" or (df.fieldtype in NUMBERS and value is not None)
	return NUMBERS[df.fieldtype](value) if is_number else value


def differ(old: Any, new: Any) -> bool:
	return str(old) != str(new) if isinstance(old, DATES) else old != new


def get_controller(doctype: str) -> type:
	controllers = frappe.controllers.setdefault(frappe.local.site, {})
	if doctype not in controllers:
		controllers[doctype] = _import_controller(doctype)
	return controllers[doctype]


def _import_controller(doctype: str) -> type:
	from frappe.model.document import Document
	from frappe.modules.utils import load_doctype_module

	columns = ["module", "custom"]
	row = (
		("Core", 0) if doctype in SPECIAL else frappe.db.get_value("DocType", doctype, columns, order_by=None)
	)
	if not row:
		raise ImportError(doctype)
	try:
		found = None if row[1] else load_doctype_module(doctype, row[0])
	except ModuleNotFoundError:
		if row[0] != "Core":
			raise
		found = None
	return getattr(found, doctype.replace(" ", "").replace("-", "")) if found else Document


class BaseDocument:
	def __init__(self, d: dict):
		if d.get("doctype"):
			self.doctype = d["doctype"]
		self._table_fieldnames = {df.fieldname for df in self.meta.get_table_fields()}
		self.update(d)
		self.__dict__ = {key: [] for key in self._table_fieldnames} | self.__dict__
		self.__dict__ = dict.fromkeys((*default_fields, *self.meta.get_valid_columns())) | self.__dict__
		self.docstatus, self.idx = cint(self.docstatus), self.idx or 0

	@property
	def meta(self) -> Meta:
		return frappe.get_meta(self.doctype)

	def update(self, d: dict) -> "BaseDocument":
		for key, value in d.items():
			self.set(key, value)
		return self

	def get(self, key: str, default: Any = None) -> Any:
		return self.__dict__.get(key, default)

	def set(self, key: str, value: Any) -> None:
		if key in self._table_fieldnames:
			self.__dict__[key] = []
			for row in value or []:
				self.append(key, row)
		elif key not in RESERVED:
			self.__dict__[key] = value

	def append(self, key: str, value: Any = None) -> "BaseDocument":
		rows = self.__dict__.setdefault(key, [])
		if not isinstance(value, BaseDocument):
			options = self.meta.get_field(key).options
			value = get_controller(options)({**(value or {}), "doctype": options})
		value.parent, value.parenttype, value.parentfield = self.name, self.doctype, key
		value.idx = len(rows) + 1
		if not value.name:
			value.set("__islocal", 1)
		rows.append(value)
		return value

	def remove(self, doc: "BaseDocument") -> None:
		self.set(doc.parentfield, [row for row in self.get(doc.parentfield) if row is not doc])

	def get_all_children(self) -> list["BaseDocument"]:
		return [row for df in self.meta.get_table_fields() for row in self.get(df.fieldname)]

	def is_new(self) -> Any:
		return self.get("__islocal")

	def get_valid_dict(self, *, convert_dates_to_str: bool = False, ignore_nulls: bool = False) -> _dict:
		values = _dict()
		for fieldname in self.meta.get_valid_columns():
			value = self._column_value(self.meta.get_field(fieldname) or _dict(), self.get(fieldname))
			if convert_dates_to_str and isinstance(value, DATES):
				value = str(value)
			if value is not None or not ignore_nulls:
				values[fieldname] = value
		return values

	@staticmethod
	def _column_value(df: _dict, value: Any) -> Any:
		if isinstance(value, list):
			frappe.throw(_("{0} cannot be a list").format(df.label))
		if df.fieldtype in NUMBERS:
			return NUMBERS[df.fieldtype](value)
		if df.fieldtype == "JSON" and isinstance(value, dict):
			return json.dumps(value, separators=(",", ":"))
		has_no_blank = df.fieldtype in ("Date", "Datetime") or df.unique
		return None if has_no_blank and cstr(value).strip() == "" else value

	def as_dict(self, no_nulls: bool = False) -> _dict:
		doc = self.get_valid_dict(ignore_nulls=no_nulls).update(doctype=self.doctype)
		doc.update({key: [row.as_dict(no_nulls) for row in self.get(key)] for key in self._table_fieldnames})
		return doc.update({k: self.get(k) for k in ("__islocal", "__unsaved", "__onload") if self.get(k)})

	def db_insert(self, ignore_if_duplicate: bool = False) -> None:
		if not self.name:
			frappe.model.naming.set_new_name(self)
		if not self.creation:
			self.creation = self.modified = now()
			self.owner = self.modified_by = frappe.session.user
		row = self.get_valid_dict(convert_dates_to_str=True)
		columns, values = ", ".join(f'"{column}"' for column in row), ", ".join(["%s"] * len(row))
		conflict = "on conflict (name) do nothing" if ignore_if_duplicate else ""
		self._write(f'insert into "tab{self.doctype}" ({columns}) values ({values}) {conflict}', row.values())
		self.set("__islocal", False)

	def db_update(self) -> None:
		if self.is_new():
			self.db_insert()
			return
		row = self.get_valid_dict(convert_dates_to_str=True)
		assignments = ", ".join(f'"{column}" = %s' for column in row)
		query = f'update "tab{self.doctype}" set {assignments} where name = %s'
		self._write(query, [*row.values(), self.name])

	def _write(self, query: str, values: Any) -> None:
		try:
			frappe.db.sql(query, list(values))
		except Exception as e:
			if frappe.db.is_primary_key_violation(e):
				frappe.msgprint(_("There is a {0} called {1} already").format(self.doctype, self.name))
				raise frappe.DuplicateEntryError(self.doctype, self.name, e) from e
			if frappe.db.is_unique_key_violation(e):
				raise frappe.UniqueValidationError(self.doctype, self.name, e) from e
			raise

	def _all_rows(self) -> list[Any]:
		return [self, *self.get_all_children()]

	def _all_values(self) -> Iterator[tuple[Any, Any, Any]]:
		return ((row, df, row.get(df.fieldname)) for row in self._all_rows() for df in row.meta.fields)

	def _refuse(self, text: str, exception: type[Exception] = frappe.ValidationError) -> None:
		where = _("Row {0}: ").format(self.idx) if self.get("parentfield") else ""
		frappe.throw(where + text, exception)

	def _validate_links(self) -> None:
		for row, df, name in () if self.flags.ignore_links else self._all_values():
			if not name or df.fieldtype not in ("Link", "Dynamic Link"):
				continue
			doctype = df.options if df.fieldtype == "Link" else row.get(df.options)
			row.set(df.fieldname, doctype and frappe.db.get_value(doctype, name, "name", cache=True))
			if not row.get(df.fieldname):
				row._refuse(_("{0}: there is no {1}").format(df.label, name), frappe.LinkValidationError)

	def _validate(self) -> None:
		if self.meta.autoname and self.meta.autoname.startswith("field:"):
			self.set(self.meta.autoname[6:], self.name)
		missing = [df.fieldname for _row, df, value in self._all_values() if df.reqd and is_empty(value)]
		if missing and not self.flags.ignore_mandatory:
			self._refuse(f"[{self.doctype}, {self.name}]: {', '.join(missing)}", frappe.MandatoryError)
		for row, df, value in self._all_values():
			if value is not None:
				row._validate_value(df, value)
			if df.fieldtype == "Password":
				row._save_password(df.fieldname, value)
		before = self.get_doc_before_save()
		constant = ["creation", "owner", *(df.fieldname for df in self.meta.fields if df.set_only_once)]
		for fieldname in constant if before else ():
			if differ(before.get(fieldname), self.get(fieldname)):
				text = _("{0} cannot be changed").format(self.meta.get_label(fieldname))
				self._refuse(text, frappe.CannotChangeConstantError)

	def _validate_value(self, df: Any, value: Any) -> None:
		if df.fieldtype == "Select" and value and df.options and df.fieldname != "naming_series":
			value, options = cstr(value).strip(), df.options.split("\n")
			if value not in options and not frappe.flags.in_import:
				self._refuse(_('{0} cannot be "{1}" but one of {2}').format(df.label, value, options))
		if df.non_negative and flt(value) < 0:
			self._refuse(_("{0} cannot be negative").format(df.label), frappe.NonNegativeError)
		kind, size = frappe.db.type_map.get(df.fieldtype, ("", ""))
		limit = cint(df.length) or cint(size)
		if kind == "varchar" and len(cstr(value)) > limit and not self.meta.issingle:
			text = _("{0} takes at most {1} characters").format(df.label, limit)
			self._refuse(text, frappe.CharacterLengthExceededError)
		is_exempt = df.ignore_xss_filter or df.fieldtype == "Code" or frappe.flags.in_install
		if isinstance(value, str):
			self.set(df.fieldname, value if is_exempt else sanitize_html(value))

	def _save_password(self, fieldname: str, value: str | None) -> None:
		if not value:
			remove_encrypted_password(self.doctype, self.name, fieldname)
		elif set(value) != {"*"}:
			set_encrypted_password(self.doctype, self.name, value, fieldname)
			self.set(fieldname, "*" * len(value))

	def get_password(self, fieldname: str = "password", raise_exception: bool = True) -> str | None:
		return get_decrypted_password(self.doctype, self.name, fieldname, raise_exception)
