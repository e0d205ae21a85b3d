"""A DocType: when it is saved, its table, roles and indexes follow."""

import re

import frappe
from frappe import _
from frappe.model import default_fields
from frappe.model.base_document import load_doctype_module
from frappe.model.document import Document

NOT_OFFERED = ("is_virtual", "is_tree", "is_submittable", "fetch_from", "permlevel", "select")


class DocType(Document):
	def validate(self) -> None:
		for name in (self.name, *(df.fieldname for df in self.fields)):
			if name in default_fields or not re.fullmatch(r"[\w -]{1,61}", name or ""):
				text = _("{0} is no name for a DocType or a field").format(name)
				frappe.throw(text, frappe.InvalidColumnName)

	def on_update(self) -> None:
		rows = (self, *self.fields, *self.permissions)
		found = [key for row in rows for key in NOT_OFFERED if row.get(key)]
		if found or self.autoname == "autoincrement":
			raise frappe.NotOfferedError(f"a DocType with {', '.join(found) or self.autoname}")
		frappe.clear_cache(doctype=self.name)
		self._make_roles()
		frappe.db.updatedb(self.name)
		frappe.clear_cache(doctype=self.name)
		if not self.custom and self.module != "Core":
			module = load_doctype_module(self.name, self.module)
			getattr(module, "on_doctype_update", lambda: None)()

	def _make_roles(self) -> None:
		for role in {rule.role for rule in self.permissions} if frappe.db.table_exists("Role") else ():
			if not frappe.db.exists("Role", role):
				doc = frappe.get_doc(doctype="Role", role_name=role, desk_access=1)
				doc.insert(ignore_permissions=True, ignore_mandatory=True, set_name=role)

	def after_delete(self) -> None:
		frappe.clear_cache(doctype=self.name)
