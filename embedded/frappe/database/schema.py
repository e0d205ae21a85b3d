"""Makes and alters the table of a DocType."""

import hashlib
from typing import Any

import frappe
from frappe.utils.data import cint, flt

NUMBERS = {"Check": cint, "Int": cint, "Currency": flt, "Float": flt, "Percent": flt}
STANDARD = """name varchar(140) primary key, creation timestamp(6), modified timestamp(6),
	modified_by varchar(140), owner varchar(140), docstatus smallint not null default 0,
	idx bigint not null default 0"""
CHILD = ("parent", "parentfield", "parenttype")
DESCRIBE = """select a.attname as name, format_type(a.atttypid, a.atttypmod) as type,
	pg_get_expr(d.adbin, d.adrelid) as default from pg_attribute a
	left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
	where a.attrelid = %s::regclass and a.attnum > 0 and not a.attisdropped"""


def get_definition(fieldtype: str, precision: Any = None, length: Any = None) -> str | None:
	if fieldtype not in frappe.db.type_map:
		return None
	kind, size = frappe.db.type_map[fieldtype]
	size = (length or size) if kind == "varchar" else size
	return f"{kind}({size})" if size else kind


def _default(df: Any) -> str | None:
	if df.fieldtype in NUMBERS:
		return f" not null default {NUMBERS[df.fieldtype](df.default) or 0}"
	if df.default and df.default not in frappe.db.DEFAULT_SHORTCUTS and not str(df.default).startswith(":"):
		return f" default {frappe.db.escape(df.default, percent=False)}"
	return ""


def _columns(meta: Any) -> dict[str, Any]:
	columns = {df.fieldname: df for df in meta.fields if get_definition(df.fieldtype)}
	if not meta.istable:
		columns |= {
			name: frappe._dict(fieldname=name, fieldtype="Text") for name in frappe.db.OPTIONAL_COLUMNS
		}
	return columns


def sync_table(meta: Any) -> None:
	for df in _columns(meta).values():
		if df.length and not 1 <= cint(df.length) <= 1000 and "varchar" in get_definition(df.fieldtype):
			frappe.throw(frappe._("The length of {0} must be from 1 to 1000").format(df.fieldname))
	if frappe.db.table_exists(meta.name):
		_alter(meta)
	else:
		_create(meta)
	frappe.cache.hdel("table_columns", f"tab{meta.name}")
	frappe.db.commit()


def _create(meta: Any) -> None:
	standard = STANDARD
	if meta.autoname == "autoincrement":
		frappe.db.create_sequence(meta.name, check_not_exists=True)
		standard = standard.replace("name varchar(140)", "name bigint")
	parts = [standard, *(f"{column} varchar(140)" for column in CHILD if meta.istable)]
	parts += [
		f'"{name}" {get_definition(df.fieldtype, df.precision, df.length)}{_default(df)}'
		for name, df in _columns(meta).items()
	]
	frappe.db.sql(f'create table "tab{meta.name}" ({", ".join(parts)})')
	_indexes(meta)


def _alter(meta: Any) -> None:
	table = f"tab{meta.name}"
	current = {row.name: row for row in frappe.db.sql(DESCRIBE, f'"{table}"', as_dict=True)}
	changes = []
	for name, df in _columns(meta).items():
		definition = get_definition(df.fieldtype, df.precision, df.length)
		if name not in current:
			changes.append(f'add column "{name}" {definition}{_default(df)}')
		elif _same_type(current[name].type) != definition:
			changes.append(f'alter column "{name}" type {definition} using "{name}"::{definition}')
	changes += [f"add column {c} varchar(140)" for c in CHILD if meta.istable and c not in current]
	if changes:
		frappe.db.sql(f'alter table "{table}" {", ".join(changes)}')
	_indexes(meta)


def _same_type(described: str) -> str:
	names = {"character varying": "varchar", "numeric": "decimal", " without time zone": ""}
	for long, short in names.items():
		described = described.replace(long, short)
	return described


def _indexes(meta: Any) -> None:
	"""Index names are global on PostgreSQL, so they carry the DocType."""
	table = f"tab{meta.name}"
	wanted = {}
	for name, df in _columns(meta).items():
		if get_definition(df.fieldtype) in ("text", "json"):
			continue
		if df.unique:
			wanted[_index_name(meta.name, name, "key")] = f'create unique index {{}} on "{table}" ("{name}")'
		elif df.search_index:
			wanted[_index_name(meta.name, name, "idx")] = f'create index {{}} on "{table}" ("{name}")'
	if meta.istable:
		wanted[_index_name(meta.name, "parent", "idx")] = f'create index {{}} on "{table}" (parent)'
	present = set(frappe.db.sql("select indexname from pg_indexes where tablename = %s", table, pluck=True))
	for name in wanted.keys() - present:
		frappe.db.sql(wanted[name].format(f'"{name}"'))
	own = {_index_name(meta.name, column, kind) for column in _columns(meta) for kind in ("key", "idx")}
	for name in (own & present) - wanted.keys():
		frappe.db.sql(f'drop index "{name}"')


def _index_name(doctype: str, column: str, kind: str) -> str:
	name = frappe.scrub(f"{doctype}_{column}")
	if len(name) > 58:
		name = f"{name[:49]}_{hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:8]}"
	return f"{name}_{kind}"
