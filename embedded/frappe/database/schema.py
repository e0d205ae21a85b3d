"""Makes and alters the table of a DocType."""

import zlib

import frappe
from frappe.utils.data import cint, flt

KINDS = {
	("varchar", "140"): "Data,Link,Dynamic Link,Select,Read Only,Autocomplete",
	("text", None): "Small Text,Text,Long Text,Text Editor,Code,Attach Image",
	("decimal", "21,9"): "Currency,Float,Percent",
}
TYPE_MAP = {name: kind for kind, names in KINDS.items() for name in names.split(",")}
TYPE_MAP |= {"Int": ("bigint", None), "Check": ("smallint", None), "JSON": ("json", None)}
TYPE_MAP |= {"Date": ("date", None), "Datetime": ("timestamp", None), "Time": ("time", "6")}
WITHOUT_COLUMN = ("Section Break", "Column Break", "Tab Break", "HTML", "Button", "Heading", "Table")
STANDARD = """name varchar(140) primary key, creation timestamp(6), modified timestamp(6),
	modified_by varchar(140), owner varchar(140), docstatus smallint not null default 0,
	idx bigint not null default 0"""
CHILD = ", parent varchar(140), parentfield varchar(140), parenttype varchar(140)"
PARENT = frappe._dict(fieldname="parent", fieldtype="Data", search_index=1)
OPTIONAL = ", _user_tags text, _comments text, _assign text, _liked_by text"


def _column(df) -> tuple[str, str]:
	"""The type of a field's column, and its default."""
	if df.fieldtype not in TYPE_MAP:
		raise frappe.NotOfferedError(f"the field type {df.fieldtype}")
	kind, size = TYPE_MAP[df.fieldtype]
	size = df.length or size if kind == "varchar" else size
	default = ""
	if kind in ("bigint", "smallint", "decimal"):
		default = f"not null default {flt(df.default) if kind == 'decimal' else cint(df.default)}"
	elif df.default and df.default not in ("__user", "Today", "Now") and not df.default.startswith(":"):
		default = f"default {frappe.db.escape(df.default, percent=False)}"
	return f"{kind}({size})" if size else kind, default


def updatedb(doctype: str, meta=None) -> None:
	meta, table = meta or frappe.get_meta(doctype, cached=False), f'"tab{doctype}"'
	if meta.issingle:
		return
	frappe.db.commit()
	frappe.db.sql(f"create table if not exists {table} ({STANDARD}{CHILD if meta.istable else OPTIONAL})")
	frappe.cache.delete_value(f"table_columns::{doctype}")
	existing = frappe.db.get_table_columns(doctype)
	fields = [df for df in meta.fields if df.fieldtype not in WITHOUT_COLUMN]
	for df in [*fields, PARENT] if meta.istable else fields:
		(kind, default), name = _column(df), f'"{df.fieldname}"'
		change = f"alter column {name} type {kind} using {name}::{kind}"
		change = change if df.fieldname in existing else f"add column {name} {kind} {default}"
		frappe.db.sql(f"alter table {table} {change}")
		if df.unique or df.search_index:
			# index names are global on PostgreSQL, so they tell the DocType
			index = f"{df.fieldname[:48]}_{zlib.crc32(doctype.encode()):08x}_{'key' if df.unique else 'idx'}"
			what = f"{'unique ' if df.unique else ''}index if not exists"
			frappe.db.sql(f'create {what} "{index}" on {table} ({name})')
	frappe.cache.delete_value(f"table_columns::{doctype}")
	frappe.db.commit()
