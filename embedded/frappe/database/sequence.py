"""Database sequences under the names that Frappe gives them."""

import frappe

SLUG = "_id_seq"


def create_sequence(
	doctype_name: str,
	*,
	slug: str = SLUG,
	temporary: bool = False,
	check_not_exists: bool = False,
	cycle: bool = False,
	cache: int = 0,
	start_value: int = 0,
	increment_by: int = 0,
	min_value: int = 0,
	max_value: int = 0,
) -> str:
	name = frappe.scrub(doctype_name + slug)
	options = {
		"increment by": increment_by,
		"minvalue": min_value,
		"maxvalue": max_value,
		"start": start_value,
		"cache": cache,
	}
	words = [
		"create",
		"temporary" if temporary else "",
		"sequence",
		"if not exists" if check_not_exists else "",
	]
	words += [
		name,
		*(f"{option} {value}" for option, value in options.items() if value),
		"cycle" if cycle else "",
	]
	frappe.db.sql_ddl(" ".join(filter(None, words)))
	return name


def get_next_val(doctype_name: str, slug: str = SLUG) -> int:
	return frappe.db.sql("select nextval(%s)", f'"{frappe.scrub(doctype_name + slug)}"')[0][0]


def set_next_val(doctype_name: str, next_val: int, *, slug: str = SLUG, is_val_used: bool = False) -> None:
	used = "true" if is_val_used else "false"
	frappe.db.sql(f"select setval('\"{frappe.scrub(doctype_name + slug)}\"', {int(next_val)}, {used})")
