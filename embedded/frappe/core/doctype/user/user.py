"""A user of the site."""

import frappe
from frappe import _
from frappe.model.document import Document


class User(Document):
	def autoname(self) -> None:
		if self.name not in frappe.STANDARD_USERS:
			self.email = self.email.strip().lower()
			self.name = self.email

	def validate(self) -> None:
		if self.new_password:
			raise frappe.NotOfferedError("A password to log in with")
		if self.name not in frappe.STANDARD_USERS:
			self.email = self.name
			frappe.utils.validate_email_address(self.email, throw=True)
			self.user_type = "System User" if self.has_desk_access() else "Website User"
		elif not self.enabled and self.name == "Administrator":
			frappe.throw(_("Administrator cannot be disabled"))
		self.full_name = " ".join(filter(None, (self.first_name, self.last_name)))
		self.ensure_unique_roles()

	def has_desk_access(self) -> bool:
		roles = [row.role for row in self.roles]
		return bool(
			roles and frappe.db.count("Role", {"name": ["in", roles], "desk_access": 1, "disabled": 0})
		)

	def ensure_unique_roles(self) -> None:
		seen = set()
		for row in list(self.roles):
			if not row.role or row.role in seen:
				self.remove(row)
			seen.add(row.role)

	def on_update(self) -> None:
		frappe.clear_cache(user=self.name)

	def on_trash(self) -> None:
		if self.name in frappe.STANDARD_USERS:
			frappe.throw(_("{0} cannot be deleted").format(self.name))
		frappe.clear_cache(user=self.name)
		frappe.db.delete("DefaultValue", {"parent": self.name})

	def append_roles(self, *roles: str) -> None:
		has = {row.role for row in self.roles}
		for role in roles:
			if role not in has:
				self.append("roles", {"role": role})

	def add_roles(self, *roles: str) -> None:
		self.append_roles(*roles)
		self.save()

	def remove_roles(self, *roles: str) -> None:
		for row in [row for row in self.roles if row.role in roles]:
			self.remove(row)
		self.save()


@frappe.whitelist()
def generate_keys(user: str) -> dict[str, str]:
	frappe.only_for("System Manager")
	document = frappe.get_doc("User", user)
	secret = frappe.generate_hash(length=15)
	document.api_key = document.api_key or frappe.generate_hash(length=15)
	document.api_secret = secret
	document.save()
	return {"api_secret": secret}
