"""A DocType: when it is saved, its table, roles and indexes follow."""

import re

import frappe
from frappe import _
from frappe.model import default_fields, table_fields
from frappe.model.document import Document
from frappe.modules.utils import load_doctype_module

NOT_OFFERED = ("is_virtual", "is_tree", "is_submittable", "fetch_from", "permlevel", "select")


class DocType(Document):
	def validate(self) -> None:
		if not self.custom and not (frappe.conf.developer_mode or frappe.flags.in_test):
			frappe.throw(_("A DocType that is not custom can only be made in developer mode"))
		if not re.fullmatch(r"[^\d_\W][\w -]{0,60}", self.name):
			frappe.throw(_("{0} is no name for a DocType").format(self.name), frappe.NameError)
		for df in self.fields:
			if df.fieldname in default_fields or not re.fullmatch(r"\w+", df.fieldname or ""):
				frappe.throw(_("{0} is no name for a field").format(df.fieldname), frappe.InvalidColumnName)
			links = df.fieldtype in ("Link", *table_fields) and df.options != self.name
			if links and not frappe.db.exists("DocType", df.options):
				frappe.throw(_("{0} needs a DocType in its options").format(df.fieldname))

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
