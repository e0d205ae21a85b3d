"""A User Permission: which records of a DocType a user is confined to."""

import frappe
from frappe import _
from frappe.model.document import Document
from frappe.utils.data import cstr


class UserPermission(Document):
	def validate(self) -> None:
		same = {"allow": self.allow, "user": self.user, "name": ["!=", self.name]}
		exactly = {"for_value": self.for_value, "applicable_for": cstr(self.applicable_for)}
		exactly["apply_to_all_doctypes"] = self.apply_to_all_doctypes
		if frappe.get_all(self.doctype, same | exactly, limit=1):
			frappe.throw(_("This User Permission exists already"), frappe.DuplicateEntryError)
		either = {"applicable_for": cstr(self.applicable_for), "apply_to_all_doctypes": 1}
		if self.is_default and frappe.get_all(
			self.doctype, same | {"is_default": 1}, or_filters=either, limit=1
		):
			frappe.throw(_("There is a default {0} for this user already").format(self.allow))

	def on_update(self) -> None:
		frappe.cache.hdel("user_permissions", self.user)

	def on_trash(self) -> None:
		frappe.cache.hdel("user_permissions", self.user)


@frappe.whitelist()
def get_user_permissions(user: str | None = None) -> dict:
	if getattr(frappe.local, "request", None) and frappe.form_dict.cmd == "get_user_permissions":
		user = frappe.session.user
	user = user or frappe.session.user
	if not user or user in frappe.STANDARD_USERS:
		return {}
	return frappe.cache.hget("user_permissions", user, lambda: _load(user))


def _load(user: str) -> frappe._dict:
	fields, found = ["allow", "for_value", "applicable_for", "is_default"], frappe._dict()
	for row in frappe.get_all("User Permission", fields=fields, filters={"user": user}):
		entry = frappe._dict(doc=row.for_value, applicable_for=row.applicable_for, is_default=row.is_default)
		found.setdefault(row.allow, []).append(entry)
	return found
