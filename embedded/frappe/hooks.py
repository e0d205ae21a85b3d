"""The framework's own hooks."""

has_permission = {"File": "frappe.core.doctype.file.file.has_permission"}
permission_query_conditions = {"File": "frappe.core.doctype.file.file.get_permission_query_conditions"}
