"""What a Link field offers while somebody types."""

import frappe
from frappe.utils import cstr

SEARCHED = ("Data", "Text", "Small Text", "Long Text", "Link", "Select", "Read Only", "Text Editor")
ACTIVE = [["enabled", "=", 1], ["disabled", "!=", 1]]


@frappe.whitelist()
def search_link(doctype: str, txt: str, query=None, filters=None, page_length: int = 10):
	"""Links offer neither what is disabled nor what is not enabled."""
	if query:
		raise frappe.NotOfferedError("search_link with a query of its own")
	meta = frappe.get_meta(doctype)
	kinds = {"name": "Data", **{df.fieldname: df.fieldtype for df in meta.fields}}
	listed = [name.strip() for name in (meta.search_fields or "").split(",")]
	columns = list(dict.fromkeys(filter(None, ["name", meta.title_field, *listed])))
	filters = frappe.parse_json(filters) or []
	filters = [filters] if isinstance(filters, dict) else filters
	filters = [*filters, *(switch for switch in ACTIVE if kinds.get(switch[0]) == "Check")]
	texts = [[name, "like", f"%{txt.strip()}%"] for name in columns if txt and kinds.get(name) in SEARCHED]
	options = {"fields": columns, "filters": filters, "or_filters": texts, "limit": page_length}
	rows = [[cstr(v) for v in row if v] for row in frappe.get_list(doctype, as_list=True, **options)]
	# those that begin with the text come first
	rows.sort(key=lambda row: (not row[0].lower().startswith(txt.lower()), row[0]))
	return [{"value": row[0], "description": ", ".join(dict.fromkeys(row[1:]))} for row in rows]
