"""What a user is told; without Desk nobody shows it, but it can be read."""

import frappe
from frappe.model.document import Document


class NotificationLog(Document):
	def after_insert(self) -> None:
		frappe.publish_realtime("notification", {}, user=self.for_user, after_commit=True)


def get_permission_query_conditions(for_user: str) -> str:
	own = f"`tabNotification Log`.for_user = {frappe.db.escape(for_user)}"
	return "" if for_user == "Administrator" else own
