"""What is known of a DocType: its fields and permissions."""

from functools import cached_property

import frappe
from frappe.model import child_table_fields, data_fieldtypes, default_fields, table_fields
from frappe.types.frappedict import _dict

CHILDREN = {"fields": "DocField", "permissions": "DocPerm"}
CHILDREN |= {"actions": "DocType Action", "links": "DocType Link", "states": "DocType State"}
# without knowing these no row of them can be read
SPECIAL = ("DocType", *CHILDREN.values())


def get_meta(doctype: str, cached: bool = True) -> "Meta":
	if not cached:
		frappe.cache.delete_value(f"doctype_meta::{doctype}")
	return frappe.cache.get_value(f"doctype_meta::{doctype}", lambda: _load(doctype))


def _load(doctype: str) -> "Meta":
	if doctype in SPECIAL:
		name = frappe.scrub(doctype)
		values = frappe.get_file_json(frappe.get_module_path("Core", "doctype", name, f"{name}.json"))
		return Meta(values, **{key: [_dict(row) for row in values.get(key, [])] for key in CHILDREN})
	row = frappe.db.sql("select * from `tabDocType` where name = %s", doctype, as_dict=True)
	if not row:
		frappe.throw(frappe._("There is no DocType {0}").format(doctype), frappe.DoesNotExistError)
	query = "select * from `tab{}` where parent = %s order by idx"
	tables = CHILDREN.items()
	return Meta(row[0], **{k: frappe.db.sql(query.format(t), doctype, as_dict=True) for k, t in tables})


class Meta(_dict):
	def get(self, key: str, filters=None):
		found = dict.get(self, key)
		if not isinstance(filters, dict):
			return filters if found is None else found
		return [row for row in found if all(row.get(k) == v for k, v in filters.items())]

	@cached_property
	def _by_name(self) -> dict[str, _dict]:
		return {df.fieldname: df for df in reversed(self.fields)}

	def get_field(self, fieldname: str) -> _dict | None:
		return self._by_name.get(fieldname)

	has_field = get_field

	def get_label(self, fieldname: str) -> str:
		return (self.get_field(fieldname) or {}).get("label") or fieldname

	def get_table_fields(self) -> list[_dict]:
		return [df for df in self.fields if df.fieldtype in table_fields]

	def get_link_fields(self) -> list[_dict]:
		return [df for df in self.fields if df.fieldtype == "Link"]

	def get_valid_columns(self) -> list[str]:
		columns = [df.fieldname for df in self.fields if df.fieldtype in data_fieldtypes]
		return [*default_fields[1:], *columns, *(child_table_fields if self.istable else ())]
