"""What the session user is and may do."""

import frappe


class UserPermissions:
	def __init__(self, name: str = ""):
		self.name = name or frappe.session.user

	def get_roles(self) -> list[str]:
		return frappe.get_roles(self.name)

	roles = property(get_roles)


def get_user() -> UserPermissions:
	if not frappe.local.user_perms:
		frappe.local.user_perms = UserPermissions(frappe.session.user)
	return frappe.local.user_perms
