"""A user of the site."""

import re

import frappe
from frappe import _
from frappe.model.document import Document

EMAIL = re.compile(r"[a-z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-z0-9-]+(\.[a-z0-9-]+)*", re.IGNORECASE)


class User(Document):
	def autoname(self) -> None:
		self.name = self.email = self.email.strip().lower()

	def validate(self) -> None:
		if self.get("new_password"):
			raise frappe.NotOfferedError("a user's password")
		if self.name not in frappe.STANDARD_USERS:
			self.email = self.name
			if not EMAIL.fullmatch(self.email):
				frappe.throw(_("This is not an email address"), frappe.InvalidEmailAddressError)
			desk = {"name": ["in", [row.role for row in self.roles]], "desk_access": 1, "disabled": 0}
			self.user_type = "System User" if frappe.db.count("Role", desk) else "Website User"
		self.full_name = " ".join(filter(None, (self.first_name, self.last_name)))

	def append_roles(self, *roles: str) -> None:
		for role in roles:
			if role not in [row.role for row in self.roles]:
				self.append("roles", {"role": role})


@frappe.whitelist()
def generate_keys(user: str) -> dict[str, str]:
	if "System Manager" not in frappe.get_roles():
		raise frappe.PermissionError
	document, secret = frappe.get_doc("User", user), frappe.generate_hash(length=15)
	document.update({"api_key": document.api_key or frappe.generate_hash(length=15)}).save()
	frappe.db.delete("__Auth", {"name": user})
	row = {"doctype": "User", "name": user, "fieldname": "api_secret", "password": secret}
	frappe.db.bulk_insert("__Auth", row, [tuple(row.values())])
	return {"api_secret": secret}
