"""The framework's own hooks."""

_told = "frappe.desk.doctype.notification_log.notification_log"
permission_query_conditions = {"Notification Log": f"{_told}.get_permission_query_conditions"}
