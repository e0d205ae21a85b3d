"""Database sequences under the names that Frappe gives them."""

import frappe

SLUG = "_id_seq"


def create_sequence(doctype_name: str, *, slug: str = SLUG, check_not_exists: bool = False) -> str:
	name = frappe.scrub(doctype_name + slug)
	frappe.db.sql_ddl(f"create sequence {'if not exists' if check_not_exists else ''} {name}")
	return name


def get_next_val(doctype_name: str, slug: str = SLUG) -> int:
	return frappe.db.sql("select nextval(%s)", frappe.scrub(doctype_name + slug))[0][0]
