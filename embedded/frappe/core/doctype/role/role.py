"""A role; changing one changes what its users may do."""

import frappe
from frappe import _
from frappe.model.document import Document
from frappe.permissions import AUTOMATIC_ROLES


class Role(Document):
	def validate(self) -> None:
		if self.disabled and self.name in (*AUTOMATIC_ROLES, "System Manager"):
			frappe.throw(_("{0} cannot be disabled").format(self.name))

	def on_update(self) -> None:
		frappe.cache.delete_value("roles")

	def on_trash(self) -> None:
		frappe.cache.delete_value("roles")
