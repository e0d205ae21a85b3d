"""Kinds of fields, as the rest of the model sorts them."""

from frappe.database.postgres import TYPE_MAP

data_fieldtypes = tuple(kind for kind in TYPE_MAP if kind != "Long Int")
float_like_fields = {"Float", "Currency", "Percent"}
datetime_fields = {"Datetime", "Date", "Time"}
table_fields = ("Table", "Table MultiSelect")
display_fieldtypes = (
	"Section Break",
	"Column Break",
	"Tab Break",
	"HTML",
	"Button",
	"Image",
	"Fold",
	"Heading",
)
no_value_fields = (*display_fieldtypes, *table_fields)
default_fields = ("doctype", "name", "owner", "creation", "modified", "modified_by", "docstatus", "idx")
child_table_fields = ("parent", "parentfield", "parenttype")
optional_fields = ("_user_tags", "_comments", "_assign", "_liked_by", "_seen")


def get_permitted_fields(
	doctype: str, parenttype: str | None = None, user: str | None = None, permission_type: str | None = None
) -> list[str]:
	import frappe

	meta = frappe.get_meta(doctype)
	columns = [*meta.default_fields, *(child_table_fields if meta.istable else ())]
	return columns + [
		f for f in meta.get_permitted_fieldnames(parenttype, user, permission_type) if f not in columns
	]
