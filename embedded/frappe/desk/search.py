"""What a Link field offers while somebody types."""

import frappe
from frappe.utils import cstr

SEARCHED = ("Data", "Text", "Small Text", "Long Text", "Link", "Select", "Read Only", "Text Editor")
ACTIVE = [["enabled", "=", 1], ["disabled", "!=", 1]]


@frappe.whitelist()
def search_link(doctype: str, txt: str, query=None, filters=None, page_length: int = 10, searchfield=None):
	if query:
		raise frappe.NotOfferedError("search_link with a query of its own")
	rows = search_widget(doctype, txt.strip(), searchfield, page_length=page_length, filters=filters)
	texts = [[cstr(value) for value in row if value] for row in rows]
	return [{"value": row[0], "description": ", ".join(dict.fromkeys(row[1:]))} for row in texts]


@frappe.whitelist()
def search_widget(
	doctype: str, txt: str, searchfield=None, start: int = 0, page_length: int = 10, filters=None
):
	"""Links offer neither what is disabled nor what is not enabled."""
	meta = frappe.get_meta(doctype)
	kinds = {"name": "Data", **{df.fieldname: df.fieldtype for df in meta.fields}}
	listed = [name.strip() for name in (meta.search_fields or "").split(",")]
	columns = list(dict.fromkeys(filter(None, ["name", meta.title_field, searchfield, *listed])))
	filters = frappe.parse_json(filters) or []
	filters = [filters] if isinstance(filters, dict) else filters
	rows = frappe.get_list(
		doctype,
		fields=columns,
		filters=[*filters, *(switch for switch in ACTIVE if kinds.get(switch[0]) == "Check")],
		or_filters=[[name, "like", f"%{txt}%"] for name in columns if txt and kinds.get(name) in SEARCHED],
		limit_start=start,
		limit_page_length=page_length,
		as_list=True,
	)
	# those that begin with the text come first
	return sorted(rows, key=lambda row: (not cstr(row[0]).lower().startswith(txt.lower()), cstr(row[0])))


@frappe.whitelist()
def get_link_title(doctype, docname):
	meta = frappe.get_meta(doctype)
	if meta.show_title_field_in_link:
		return frappe.db.get_value(doctype, docname, meta.title_field)
	return docname
