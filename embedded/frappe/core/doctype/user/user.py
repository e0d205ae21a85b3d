"""A user of the site."""

import frappe
from frappe import _
from frappe.model.document import Document


class User(Document):
	def autoname(self) -> None:
		self.name = self.email = self.email.strip().lower()

	def validate(self) -> None:
		if self.new_password:
			raise frappe.NotOfferedError("a user's password")
		if self.name not in frappe.STANDARD_USERS:
			self.email = self.name
			frappe.utils.validate_email_address(self.email, throw=True)
			desk = {"name": ["in", [row.role for row in self.roles]], "desk_access": 1, "disabled": 0}
			self.user_type = "System User" if frappe.db.count("Role", desk) else "Website User"
		self.full_name = " ".join(filter(None, (self.first_name, self.last_name)))

	def on_trash(self) -> None:
		if self.name in frappe.STANDARD_USERS:
			frappe.throw(_("{0} cannot be deleted").format(self.name))

	def append_roles(self, *roles: str) -> None:
		for role in roles:
			if role not in [row.role for row in self.roles]:
				self.append("roles", {"role": role})

	def add_roles(self, *roles: str) -> None:
		self.append_roles(*roles)
		self.save()

	def remove_roles(self, *roles: str) -> None:
		self.set("roles", [row for row in self.roles if row.role not in roles])
		self.save()


@frappe.whitelist()
def generate_keys(user: str) -> dict[str, str]:
	frappe.only_for("System Manager")
	document, secret = frappe.get_doc("User", user), frappe.generate_hash(length=15)
	key = document.api_key or frappe.generate_hash(length=15)
	document.update({"api_key": key, "api_secret": secret}).save()
	return {"api_secret": secret}
