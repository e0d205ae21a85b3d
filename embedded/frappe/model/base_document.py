"""The state of one document and how it reaches its table."""

import datetime
import json
import weakref
from functools import cached_property
from typing import Any

import frappe
from frappe.model import child_table_fields, datetime_fields, default_fields, float_like_fields, table_fields
from frappe.model.docstatus import DocStatus
from frappe.model.meta import CHILDREN, Meta, filter_rows
from frappe.types.frappedict import _dict
from frappe.utils.data import cint, cstr, flt, now

DOCTYPES_FOR_DOCTYPE = {"DocType", *CHILDREN.values()}
DATES = (datetime.datetime, datetime.date, datetime.time, datetime.timedelta)
PRIVATE = ("_user_tags", "__islocal", "__onload", "_liked_by", "__unsaved")


def get_controller(doctype: str) -> type:
	controllers = frappe.controllers.setdefault(frappe.local.site, {})
	if doctype not in controllers:
		controllers[doctype] = import_controller(doctype)
	return controllers[doctype]


def import_controller(doctype: str) -> type:
	from frappe.model.document import Document
	from frappe.modules.utils import load_doctype_module

	if override := frappe.get_hooks("override_doctype_class", {}).get(doctype):
		return frappe.get_attr(override[-1])
	module = "Core"
	if doctype not in DOCTYPES_FOR_DOCTYPE:
		row = frappe.db.get_value("DocType", doctype, ["module", "custom"], order_by=None)
		if not row:
			raise ImportError(doctype)
		if row[1]:
			return Document
		module = row[0]
	try:
		found = load_doctype_module(doctype, module)
	except ModuleNotFoundError:
		if frappe.local.module_app.get(frappe.scrub(module)) == "frappe":
			return Document
		raise
	controller = getattr(found, doctype.replace(" ", "").replace("-", ""), None)
	if controller is None:
		raise ImportError(doctype)
	return controller


class BaseDocument:
	_reserved = frozenset(["doctype", "meta", "flags", "parent_doc", "_table_fieldnames", "_doc_before_save"])
	dont_update_if_missing: tuple[str, ...] = ()

	def __init__(self, d: dict):
		if d.get("doctype"):
			self.doctype = d["doctype"]
		self._table_fieldnames = {df.fieldname for df in self.meta.get_table_fields()}
		self.update(d)
		if hasattr(self, "__setup__"):
			self.__setup__()

	@cached_property
	def meta(self) -> Meta:
		return frappe.get_meta(self.doctype)

	def __getstate__(self) -> dict:
		return {k: v for k, v in self.__dict__.items() if k not in ("meta", "_parent_doc")}

	def update(self, d: dict) -> "BaseDocument":
		if "name" in d:
			self.name = d["name"]
		for key, value in d.items():
			self.set(key, value)
		return self

	def update_if_missing(self, d: Any) -> None:
		values = d.get_valid_dict() if isinstance(d, BaseDocument) else d
		for key, value in values.items():
			if value is not None and self.get(key) is None and key not in self.dont_update_if_missing:
				self.set(key, value)

	def get(self, key: Any, filters: Any = None, limit: int | None = None, default: Any = None) -> Any:
		if isinstance(key, dict):
			return filter_rows(self.get_all_children(), key, limit)
		if isinstance(filters, dict) and filters:
			return filter_rows(self.__dict__.get(key) or [], filters, limit)
		value = self.__dict__.get(key, filters or default)
		return value[:limit] if limit and isinstance(value, list | tuple) else value

	def getone(self, key: str, filters: dict | None = None) -> Any:
		return self.get(key, filters, limit=1)[0]

	def set(self, key: str, value: Any, as_value: bool = False) -> None:
		if key in self._reserved:
			return
		if as_value or key not in self._table_fieldnames:
			self.__dict__[key] = DocStatus(cint(value)) if key == "docstatus" and value is not None else value
			return
		self.__dict__[key] = []
		self.extend(key, value or [])

	def delete_key(self, key: str) -> None:
		self.__dict__.pop(key, None)

	def append(self, key: str, value: Any = None) -> "BaseDocument":
		if self.__dict__.get(key) is None:
			self.__dict__[key] = []
		child = self._init_child({} if value is None else value, key)
		self.__dict__[key].append(child)
		child._parent_doc = weakref.ref(self)
		return child

	def extend(self, key: str, value: Any) -> None:
		for row in value:
			self.append(key, row)

	def remove(self, doc: "BaseDocument") -> None:
		rows = self.get(doc.parentfield)
		rows.remove(doc)
		for idx, row in enumerate(rows, 1):
			row.idx = idx

	def _init_child(self, value: Any, key: str) -> "BaseDocument":
		if not isinstance(value, BaseDocument):
			df = next((df for df in self.meta.get_table_fields() if df.fieldname == key), None)
			if not df:
				raise AttributeError(key)
			value["doctype"] = df.options
			value = get_controller(df.options)(value)
		value.parent, value.parenttype, value.parentfield = self.name, self.doctype, key
		value.docstatus = value.docstatus or DocStatus.draft()
		value.idx = value.get("idx") or len(self.__dict__.get(key) or []) + 1
		if not value.get("name"):
			value.__dict__["__islocal"] = 1
		return value

	@property
	def parent_doc(self) -> Any:
		reference = self.__dict__.get("_parent_doc")
		return reference() if reference else None

	def init_columns(self) -> None:
		for fieldname in self._table_fieldnames:
			if self.__dict__.get(fieldname) is None:
				self.__dict__[fieldname] = []
		for column in (*default_fields, *self.meta.get_valid_columns()):
			self.__dict__.setdefault(column, None)
		self.docstatus = DocStatus(cint(self.docstatus))
		self.idx = self.idx or 0

	def _fix_numeric_types(self) -> None:
		for df in self.meta.fields:
			value = self.get(df.fieldname)
			if df.fieldtype == "Check" or (df.fieldtype == "Int" and value is not None):
				self.set(df.fieldname, cint(value))
			elif df.fieldtype in ("Float", "Currency", "Percent") and value is not None:
				self.set(df.fieldname, flt(value))

	def is_new(self) -> Any:
		return self.get("__islocal")

	def get_valid_dict(
		self,
		sanitize: bool = True,
		convert_dates_to_str: bool = False,
		ignore_nulls: bool = False,
		ignore_virtual: bool = False,
	) -> _dict:
		values = _dict()
		for fieldname in self.meta.get_valid_columns():
			value = self.__dict__.get(fieldname)
			if sanitize or value is not None:
				value = self._column_value(self.meta.get_field(fieldname), value)
			if convert_dates_to_str and isinstance(value, DATES):
				value = str(value)
			if value is not None or not ignore_nulls:
				values[fieldname] = value
		return values

	@staticmethod
	def _column_value(df: Any, value: Any) -> Any:
		if not df:
			return value
		if isinstance(value, list) and df.fieldtype not in table_fields:
			frappe.throw(frappe._("{0} cannot be a list").format(df.label))
		if df.fieldtype == "Check":
			return 1 if cint(value) else 0
		if df.fieldtype == "Int":
			return value if isinstance(value, int) else cint(value)
		if df.fieldtype == "JSON" and isinstance(value, dict):
			return json.dumps(value, separators=(",", ":"))
		if df.fieldtype in float_like_fields:
			return value if isinstance(value, float) else flt(value)
		blank = df.fieldtype in datetime_fields and value == ""
		return None if blank or (df.unique and cstr(value).strip() == "") else value

	def as_dict(
		self,
		no_nulls: bool = False,
		no_default_fields: bool = False,
		convert_dates_to_str: bool = False,
		no_child_table_fields: bool = False,
	) -> _dict:
		options = {"no_nulls": no_nulls, "no_default_fields": no_default_fields}
		options |= {
			"convert_dates_to_str": convert_dates_to_str,
			"no_child_table_fields": no_child_table_fields,
		}
		doc = self.get_valid_dict(convert_dates_to_str=convert_dates_to_str, ignore_nulls=no_nulls)
		doc["doctype"] = self.doctype
		for fieldname in self._table_fieldnames:
			doc[fieldname] = [row.as_dict(**options) for row in self.get(fieldname) or []]
		left_out = default_fields if no_default_fields else ()
		for key in (*left_out, *(child_table_fields if no_child_table_fields else ())):
			doc.pop(key, None)
		return doc.update({key: self.__dict__[key] for key in PRIVATE if self.__dict__.get(key)})

	def as_json(self) -> str:
		return frappe.as_json(self.as_dict())

	def _row(self) -> _dict:
		nulls = self.doctype in DOCTYPES_FOR_DOCTYPE
		return self.get_valid_dict(convert_dates_to_str=True, ignore_nulls=nulls)

	def db_insert(self, ignore_if_duplicate: bool = False) -> None:
		if not self.name:
			frappe.model.naming.set_new_name(self)
		if not self.creation:
			self.creation = self.modified = now()
			self.owner = self.modified_by = frappe.session.user
		row = self._row()
		columns = ", ".join(f'"{column}"' for column in row)
		conflict = "on conflict (name) do nothing" if ignore_if_duplicate else ""
		query = (
			f'insert into "tab{self.doctype}" ({columns}) values ({", ".join(["%s"] * len(row))}) {conflict}'
		)
		try:
			frappe.db.sql(query, list(row.values()))
		except Exception as e:
			self._explain_insert_error(e)
		self.set("__islocal", False)

	def _explain_insert_error(self, e: Exception) -> None:
		if frappe.db.is_primary_key_violation(e):
			frappe.msgprint(
				frappe._("There is a {0} called {1} already").format(self.doctype, self.name), indicator="red"
			)
			raise frappe.DuplicateEntryError(self.doctype, self.name, e) from e
		if frappe.db.is_unique_key_violation(e):
			raise frappe.UniqueValidationError(self.doctype, self.name, e) from e
		raise e

	def db_update(self) -> None:
		if self.get("__islocal") or not self.name:
			self.db_insert()
			return
		row = self._row()
		name = cstr(row.pop("name"))
		assignments = ", ".join(f'"{column}" = %s' for column in row)
		try:
			frappe.db.sql(
				f'update "tab{self.doctype}" set {assignments} where name = %s', [*row.values(), name]
			)
		except Exception as e:
			if frappe.db.is_unique_key_violation(e):
				raise frappe.UniqueValidationError(self.doctype, self.name, e) from e
			raise

	def db_update_all(self) -> None:
		self.db_update()
		for fieldname in self._table_fieldnames:
			for row in self.get(fieldname):
				row.db_update()
