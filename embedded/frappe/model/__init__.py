"""Kinds of fields, as the rest of the model sorts them."""

from frappe.database.postgres import TYPE_MAP

data_fieldtypes = tuple(TYPE_MAP)
table_fields = ("Table", "Table MultiSelect")
default_fields = ("doctype", "name", "owner", "creation", "modified", "modified_by", "docstatus", "idx")
child_table_fields = ("parent", "parentfield", "parenttype")
optional_fields = ("_user_tags", "_comments", "_assign", "_liked_by", "_seen")
