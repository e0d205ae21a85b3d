"""A User Permission: which records of a DocType a user is confined to."""

import frappe
from frappe import _
from frappe.model.document import Document
from frappe.permissions import get_user_permissions as get_user_permissions
from frappe.utils.data import cstr


class UserPermission(Document):
	def validate(self) -> None:
		if self.is_default:
			raise frappe.NotOfferedError("a default among several User Permissions")
		same = {key: cstr(self.get(key)) for key in ("allow", "user", "for_value", "applicable_for")}
		if frappe.get_all(self.doctype, same | {"name": ["!=", self.name]}, limit=1):
			frappe.throw(_("This User Permission exists already"), frappe.DuplicateEntryError)
