"""The framework's own hooks."""

_file = "frappe.core.doctype.file.file"
_told = "frappe.desk.doctype.notification_log.notification_log"
has_permission = {"File": f"{_file}.has_permission"}
permission_query_conditions = {
	"File": f"{_file}.get_permission_query_conditions",
	"Notification Log": f"{_told}.get_permission_query_conditions",
}
