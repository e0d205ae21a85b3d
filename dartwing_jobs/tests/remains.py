"""What an app may leave behind: looks at every table of the database, whatever Frappe knows of it."""

import random
import re
from itertools import groupby

import frappe

TEXTS = ("varchar", "character varying", "char", "text", "tinytext", "mediumtext", "longtext")
# names that people give to columns with a DocType in them
LOOKS_LIKE_DOCTYPE = re.compile(
	r"doctype(_name)?$|doc_type$|document_type$|(reference|ref)_type$|^dt$|^allow$"
)
# tables that describe DocTypes, not what refers to them
DESCRIBING = {"tabDocType", "tabDocField", "tabDocPerm", "tabDocType Action", "tabDocType State"}
# Frappe's own records: that a DocType was deleted, and how it was defined; who has exported or printed what
RECORDS = {("tabDeleted Document", "deleted_name")}
RECORDS |= {("tabAccess Log", "export_from"), ("tabAccess Log", "reference_document")}
PLANTED = "planted-"


def tables() -> dict[str, list]:
	"""Every table with its columns."""
	schema = "database()" if frappe.db.db_type == "mariadb" else "current_schema()"
	columns = frappe.db.sql(
		f"""select c.table_name as place, c.column_name as `column`, c.data_type as kind,
		c.is_nullable = 'NO' and c.column_default is null as is_needed from information_schema.columns c
		join information_schema.tables t on t.table_schema = c.table_schema and t.table_name = c.table_name
		where c.table_schema = {schema} and t.table_type = 'BASE TABLE' order by c.table_name""",
		as_dict=True,
	)
	return {table: list(rows) for table, rows in groupby(columns, key=lambda column: column.place)}


def plant(doctype: str, ours: list[str]) -> set[str]:
	"""A row that names this DocType in each column of the site that may do so; returns those tables."""
	links = frappe.get_all("DocField", {"fieldtype": "Link", "options": "DocType"}, ["parent", "fieldname"])
	known = {(f"tab{link.parent}", link.fieldname) for link in links}
	not_planted_in = DESCRIBING | {f"tab{name}" for name in ours}
	places = [
		(table, column.column, columns)
		for table, columns in tables().items()
		for column in columns
		if table not in not_planted_in and column.kind in TEXTS
		if (table, column.column) in known or LOOKS_LIKE_DOCTYPE.search(column.column)
	]
	for table, column, columns in places:
		_insert(table, columns, {column: doctype})
	frappe.db.commit()
	return {table for table, _column, _columns in places}


def _insert(table: str, columns: list, values: dict) -> None:
	number = random.getrandbits(50)
	for column in columns:
		if column.is_needed or column.column == "name":
			filler = f"{PLANTED}{number}" if column.kind in TEXTS else number
			values.setdefault(column.column, filler)
	names = ", ".join(f"`{name}`" for name in values)
	places = ", ".join(["%s"] * len(values))
	frappe.db.sql(f"insert into `{table}` ({names}) values ({places})", tuple(values.values()))


def uproot() -> None:
	"""What was planted and lost only the name of the DocType."""
	for table, columns in tables().items():
		if any(column.column == "name" and column.kind in TEXTS for column in columns):
			frappe.db.sql(f"delete from `{table}` where name like %s", (f"{PLANTED}%",))
	frappe.db.commit()


def left(doctypes: list[str], app: str) -> set[tuple[str, str]]:
	"""Tables and columns that still hold one of these DocTypes, or a function of this app."""
	found = set()
	for table, columns in tables().items():
		texts = [column.column for column in columns if column.kind in TEXTS]
		names = ", ".join(["%s"] * len(doctypes))
		asked = [f"max(case when `{text}` in ({names}) or `{text}` like %s then 1 end)" for text in texts]
		values = (*doctypes, f"{app}.%") * len(texts)
		row = frappe.db.sql(f"select {', '.join(asked)} from `{table}`", values)[0] if texts else ()
		found |= {(table, text) for text, is_left in zip(texts, row, strict=True) if is_left}
	return found - RECORDS
