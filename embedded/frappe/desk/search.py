"""What a Link field offers while somebody types."""

from typing import Any

import frappe
from frappe.utils import cint, cstr

SEARCHED = ("Data", "Text", "Small Text", "Long Text", "Link", "Select", "Read Only", "Text Editor")


@frappe.whitelist()
def search_link(
	doctype: str,
	txt: str,
	query: str | None = None,
	filters: str | dict | list | None = None,
	page_length: int = 10,
	searchfield: str | None = None,
	reference_doctype: str | None = None,
	ignore_user_permissions: bool = False,
) -> list[dict]:
	limits = {"page_length": page_length, "ignore_user_permissions": ignore_user_permissions}
	rows = search_widget(doctype, txt.strip(), query, searchfield, filters=filters, **limits)
	return [{"value": row[0], "description": _joined(row[1:])} for row in rows]


@frappe.whitelist()
def search_widget(
	doctype: str,
	txt: str,
	query: str | None = None,
	searchfield: str | None = None,
	start: int = 0,
	page_length: int = 10,
	filters: str | dict | list | None = None,
	filter_fields=None,
	as_dict: bool = False,
	reference_doctype: str | None = None,
	ignore_user_permissions: bool = False,
) -> Any:
	if query or filter_fields or cint(ignore_user_permissions):
		raise frappe.NotOfferedError("search_widget with query, filter_fields or ignore_user_permissions")
	meta = frappe.get_meta(doctype)
	columns = _columns(meta, searchfield)
	matches = [[doctype, name, "like", f"%{txt}%"] for name in columns if txt and _is_text(meta, name)]
	rows = frappe.get_list(
		doctype,
		fields=columns,
		filters=_conditions(meta, frappe.parse_json(filters)),
		or_filters=matches,
		limit_start=cint(start),
		limit_page_length=cint(page_length),
		as_list=not as_dict,
	)
	return sorted(rows, key=lambda row: _relevance(row["name"] if as_dict else row[0], txt))


@frappe.whitelist()
def get_link_title(doctype, docname):
	meta = frappe.get_meta(doctype)
	if meta.show_title_field_in_link:
		return frappe.db.get_value(doctype, docname, meta.title_field)
	return docname


def _columns(meta: Any, searchfield: str | None) -> list[str]:
	listed = [name.strip() for name in (meta.search_fields or "").split(",")]
	return list(dict.fromkeys(filter(None, ["name", meta.title_field, searchfield, *listed])))


def _is_text(meta: Any, name: str) -> bool:
	field = meta.get_field(name)
	return name == "name" or bool(field and field.fieldtype in SEARCHED)


def _conditions(meta: Any, filters: dict | list | None) -> list:
	"""Links offer neither what is disabled nor what is not enabled."""
	if isinstance(filters, dict):
		filters = [[meta.name, key, *_condition(value)] for key, value in filters.items()]
	switches = {"enabled": ("=", 1), "disabled": ("!=", 1)}
	checks = {name: meta.get_field(name) for name in switches}
	active = [name for name, field in checks.items() if field and field.fieldtype == "Check"]
	return [*(filters or []), *([meta.name, name, *switches[name]] for name in active)]


def _condition(value: Any) -> tuple | list:
	return value if isinstance(value, list | tuple) else ("=", value)


def _relevance(name: str, txt: str) -> tuple[bool, str]:
	return not cstr(name).casefold().startswith(txt.casefold()), cstr(name)


def _joined(values: Any) -> str:
	return ", ".join(dict.fromkeys(cstr(value) for value in values if value))
