"""What is known of a DocType: its fields and permissions."""

import json
import os
from typing import Any

import frappe
from frappe.model import (
	child_table_fields,
	data_fieldtypes,
	default_fields,
	no_value_fields,
	table_fields,
)
from frappe.types.frappedict import _dict
from frappe.utils.data import cint, compare

SPECIAL = ("DocType", "DocField", "DocPerm", "DocType Action", "DocType Link", "DocType State")
STANDARD_ONCE = (
	_dict(fieldname="creation", fieldtype="Datetime"),
	_dict(fieldname="owner", fieldtype="Data"),
)
STANDARD_LABELS = {
	"name": "ID",
	"owner": "Created By",
	"creation": "Created On",
	"modified": "Last Updated On",
	"modified_by": "Last Updated By",
	"docstatus": "Document Status",
	"idx": "Index",
}
CHILDREN = {
	"fields": "DocField",
	"permissions": "DocPerm",
	"actions": "DocType Action",
	"links": "DocType Link",
	"states": "DocType State",
}


def get_meta(doctype: str, cached: bool = True) -> "Meta":
	if cached and (meta := frappe.cache.hget("doctype_meta", doctype)):
		return meta
	meta = _from_file(doctype) if doctype in SPECIAL else _from_database(doctype)
	frappe.cache.hset("doctype_meta", doctype, meta)
	return meta


def _from_file(doctype: str) -> "Meta":
	folder = frappe.scrub(doctype)
	path = os.path.join(os.path.dirname(frappe.__file__), "core", "doctype", folder, f"{folder}.json")
	values = frappe.get_file_json(path)
	for key in CHILDREN:
		values[key] = [_dict({"permlevel": 0} | row, parent=doctype) for row in values.get(key, [])]
	return Meta(values)


def _from_database(doctype: str) -> "Meta":
	row = frappe.db.sql("select * from `tabDocType` where name = %s", doctype, as_dict=True)
	if not row:
		frappe.throw(frappe._("There is no DocType {0}").format(doctype), frappe.DoesNotExistError)
	meta = Meta(row[0])
	for key, table in CHILDREN.items():
		query = f"select * from `tab{table}` where parent = %s and parentfield = %s order by idx"
		meta[key] = frappe.db.sql(query, (doctype, key), as_dict=True)
	return meta


class Meta(_dict):
	default_fields = default_fields[1:]

	def get(self, key: str, filters: Any = None, default: Any = None) -> Any:
		if not isinstance(filters, dict):
			return super().get(key, default if filters is None else filters)
		return filter_rows(super().get(key) or [], filters)

	def __getattr__(self, key: str) -> Any:
		if key.startswith("__"):
			raise AttributeError(key)
		return dict.get(self, key)

	def _derived(self, key: str, make: Any) -> Any:
		if key not in self:
			self[key] = make()
		return self[key]

	def get_field(self, fieldname: str) -> _dict | None:
		return self._derived("_by_name", lambda: {df.fieldname: df for df in self.fields}).get(fieldname)

	def has_field(self, fieldname: str) -> bool:
		return self.get_field(fieldname) is not None

	def get_label(self, fieldname: str) -> str:
		df = self.get_field(fieldname)
		return df.label if df else STANDARD_LABELS.get(fieldname, "No Label")

	def get_options(self, fieldname: str) -> str:
		return self.get_field(fieldname).options

	def get_table_fields(self) -> list[_dict]:
		return self._derived("_tables", lambda: self.get("fields", {"fieldtype": ["in", table_fields]}))

	def get_link_fields(self) -> list[_dict]:
		return self.get("fields", {"fieldtype": "Link", "options": ["!=", "[Select]"]})

	def get_dynamic_link_fields(self) -> list[_dict]:
		return self.get("fields", {"fieldtype": "Dynamic Link"})

	def get_select_fields(self) -> list[_dict]:
		return self.get("fields", {"fieldtype": "Select", "options": ["not in", ["[Select]", "Loading..."]]})

	def get_set_only_once_fields(self) -> list[_dict]:
		fields = self.get("fields", {"set_only_once": 1})
		names = {df.fieldname for df in fields}
		return fields + [df for df in STANDARD_ONCE if df.fieldname not in names]

	def get_valid_columns(self) -> list[str]:
		def make() -> list[str]:
			columns = [df.fieldname for df in self.fields if df.fieldtype in data_fieldtypes]
			return [*self.default_fields, *columns, *(child_table_fields if self.istable else ())]

		return self._derived("_columns", make)

	def get_fieldnames_with_value(self, with_field_meta: bool = False) -> list:
		fields = [df for df in self.fields if df.fieldtype not in no_value_fields]
		return fields if with_field_meta else [df.fieldname for df in fields]

	def get_fields_to_fetch(self, link_fieldname: str) -> list[_dict]:
		return [df for df in self.fields if (df.fetch_from or "").startswith(f"{link_fieldname}.")]

	def get_search_fields(self) -> list[str]:
		fields = [field.strip() for field in (self.search_fields or "name").split(",")]
		return fields if "name" in fields else [*fields, "name"]

	def get_title_field(self) -> str:
		return self.title_field or ("title" if self.has_field("title") else "name")

	def get_list_fields(self) -> list[str]:
		fields = [df.fieldname for df in self.fields if df.in_list_view and df.fieldtype in data_fieldtypes]
		return list(dict.fromkeys(["name", *fields, *([self.title_field] if self.title_field else [])]))

	def get_naming_series_options(self) -> list[str]:
		df = self.get_field("naming_series")
		return (df.options or "").split("\n") if df else []

	def get_high_permlevel_fields(self) -> list[_dict]:
		return [df for df in self.fields if cint(df.permlevel) > 0]

	def get_permissions(self, parenttype: str | None = None) -> list[_dict]:
		return frappe.get_meta(parenttype).permissions if self.istable and parenttype else self.permissions

	def get_permlevel_access(
		self, permission_type: str = "read", parenttype: str | None = None, *, user: str | None = None
	) -> set[int]:
		roles = frappe.get_roles(user)
		permissions = self.get_permissions(parenttype)
		return {cint(p.permlevel) for p in permissions if p.role in roles and p.get(permission_type)}

	def get_permitted_fieldnames(
		self, parenttype: str | None = None, user: str | None = None, permission_type: str | None = None
	) -> list[str]:
		if self.istable and not parenttype:
			return []
		permission_type = permission_type or "read"
		if permission_type == "select":
			return self.get_search_fields()
		if not self.get_permissions(parenttype):
			return self.get_fieldnames_with_value()
		levels = self.get_permlevel_access(permission_type, parenttype, user=user)
		fields = self.get_fieldnames_with_value(with_field_meta=True)
		return [df.fieldname for df in fields if cint(df.permlevel) in levels]

	def as_dict(self, no_nulls: bool = False) -> dict:
		out = {k: v for k, v in self.items() if not k.startswith("_") and not (no_nulls and v is None)}
		return json.loads(frappe.as_json(out))


def filter_rows(rows: list, filters: dict, limit: int | None = None) -> list:
	wanted = {key: _operation(value) for key, value in filters.items()}
	found = [row for row in rows if all(compare(row.get(k), *operation) for k, operation in wanted.items())]
	return found[:limit] if limit else found


def _operation(value: Any) -> tuple[str, Any]:
	if isinstance(value, list | tuple):
		return value[0], value[1]
	if isinstance(value, bool):
		return ("not None" if value else "None"), value
	return ("^", value[1:]) if isinstance(value, str) and value.startswith("^") else ("=", value)
