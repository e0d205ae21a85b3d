"""The state of one document, what it must be like, and how it reaches its table."""

import datetime
import json
import os
import re
from types import ModuleType

import frappe
from frappe import _
from frappe.model import default_fields
from frappe.model.meta import SPECIAL, Meta
from frappe.types.frappedict import _dict
from frappe.utils.data import cint, cstr, flt, now, sanitize_html

NUMBERS = {"Check": lambda value: int(bool(cint(value))), "Int": cint}
NUMBERS |= dict.fromkeys(("Float", "Currency", "Percent"), flt)
DATES = (datetime.datetime, datetime.date)
RESERVED = frozenset(["doctype", "meta", "flags", "_table_fieldnames", "_doc_before_save"])


def typed(df, value):
	is_number = df.fieldtype == "Check" or (df.fieldtype in NUMBERS and value is not None)
	return NUMBERS[df.fieldtype](value) if is_number else value


def differ(old, new) -> bool:
	return str(old) != str(new) if isinstance(old, DATES) else old != new


def get_controller(doctype: str) -> type:
	controllers = frappe.controllers.setdefault(frappe.local.site, {})
	if doctype not in controllers:
		row = ("Core", 0)
		if doctype not in SPECIAL:
			row = frappe.db.get_value("DocType", doctype, ["module", "custom"], order_by=None)
		if not row:
			raise ImportError(doctype)
		found = None if row[1] else load_doctype_module(doctype, row[0])
		class_name = doctype.replace(" ", "").replace("-", "")
		controllers[doctype] = getattr(found, class_name) if found else frappe.model.document.Document
	return controllers[doctype]


def load_doctype_module(doctype: str, module: str) -> ModuleType | None:
	name = frappe.scrub(doctype)
	if module == "Core" and not os.path.exists(frappe.get_module_path(module, "doctype", name, f"{name}.py")):
		return None
	return frappe.get_module(f"{frappe.get_module_package(module)}.doctype.{name}.{name}")


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

	def get(self, key: str, default=None):
		return self.__dict__.get(key, default)

	def set(self, key: str, value) -> None:
		if key in self._table_fieldnames:
			self.__dict__[key] = []
			for row in value or []:
				self.append(key, row)
		elif key not in RESERVED:
			self.__dict__[key] = value

	def append(self, key: str, value=None) -> "BaseDocument":
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

	def is_new(self):
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
	def _column_value(df: _dict, value):
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

	def db_insert(self) -> None:
		if not self.name:
			frappe.model.naming.set_new_name(self)
		if not self.creation:
			self.creation = self.modified = now()
			self.owner = self.modified_by = frappe.session.user
		row = self.get_valid_dict(convert_dates_to_str=True)
		columns, values = ", ".join(f'"{column}"' for column in row), ", ".join(["%s"] * len(row))
		self._write(f'insert into "tab{self.doctype}" ({columns}) values ({values})', row.values())
		self.set("__islocal", False)

	def db_update(self) -> None:
		row = self.get_valid_dict(convert_dates_to_str=True)
		assignments = ", ".join(f'"{column}" = %s' for column in row)
		query = f'update "tab{self.doctype}" set {assignments} where name = %s'
		self._write(query, [*row.values(), self.name])

	def _write(self, query: str, values) -> None:
		try:
			frappe.db.sql(query, list(values))
		except Exception as e:
			if frappe.db.is_primary_key_violation(e):
				raise frappe.DuplicateEntryError(self.doctype, self.name, e) from e
			if frappe.db.is_unique_key_violation(e):
				raise frappe.UniqueValidationError(self.doctype, self.name, e) from e
			raise

	def _all_rows(self) -> list["BaseDocument"]:
		return [self, *self.get_all_children()]

	def _all_values(self) -> list[tuple]:
		return [(row, df, row.get(df.fieldname)) for row in self._all_rows() for df in row.meta.fields]

	def _validate_links(self) -> None:
		for row, df, name in () if self.flags.ignore_links else self._all_values():
			if name and df.fieldtype in ("Link", "Dynamic Link"):
				doctype = df.options if df.fieldtype == "Link" else row.get(df.options)
				row.set(df.fieldname, doctype and frappe.db.get_value(doctype, name, "name", cache=True))
				if not row.get(df.fieldname):
					text = _("{0}: there is no {1}").format(df.label, name)
					frappe.throw(text, frappe.LinkValidationError)

	def _validate(self) -> None:
		if self.meta.autoname and self.meta.autoname.startswith("field:"):
			self.set(self.meta.autoname[6:], self.name)
		# markup alone is no content
		values = [(df, cstr("" if value == [] else value)) for _row, df, value in self._all_values()]
		texts = [(df, re.sub(r"<[^>]*>", "", value)) for df, value in values]
		missing = [df.fieldname for df, text in texts if df.reqd and not text.strip()]
		if missing and not self.flags.ignore_mandatory:
			frappe.throw(f"[{self.doctype}, {self.name}]: {', '.join(missing)}", frappe.MandatoryError)
		for row, df, value in self._all_values():
			if value is not None:
				row._validate_value(df, value)
		before = self.get_doc_before_save()
		constant = ["creation", "owner", *(df.fieldname for df in self.meta.fields if df.set_only_once)]
		for fieldname in constant if before else ():
			if differ(before.get(fieldname), self.get(fieldname)):
				text = _("{0} cannot be changed").format(self.meta.get_label(fieldname))
				frappe.throw(text, frappe.CannotChangeConstantError)

	def _validate_value(self, df, value) -> None:
		if df.fieldtype == "Select" and value and df.options and df.fieldname != "naming_series":
			value, options = cstr(value).strip(), df.options.split("\n")
			if value not in options and not frappe.flags.in_import:
				frappe.throw(_('{0} cannot be "{1}" but one of {2}').format(df.label, value, options))
		if df.non_negative and flt(value) < 0:
			frappe.throw(_("{0} cannot be negative").format(df.label), frappe.NonNegativeError)
		kind, size = frappe.db.type_map.get(df.fieldtype, ("", ""))
		limit = cint(df.length) or cint(size)
		if kind == "varchar" and len(cstr(value)) > limit and not self.meta.issingle:
			text = _("{0} takes at most {1} characters").format(df.label, limit)
			frappe.throw(text, frappe.CharacterLengthExceededError)
		if isinstance(value, str):
			is_exempt = df.ignore_xss_filter or df.fieldtype == "Code" or frappe.flags.in_install
			self.set(df.fieldname, value if is_exempt else sanitize_html(value))
