"""A DocType: when it is saved, its table, roles and indexes follow."""

import re
from typing import Any

import frappe
from frappe import _
from frappe.model import default_fields, no_value_fields, table_fields
from frappe.model.document import Document
from frappe.modules.utils import load_doctype_module


class DocType(Document):
	def validate(self) -> None:
		if not self.custom and not (frappe.conf.developer_mode or frappe.flags.in_test):
			frappe.throw(_("A DocType that is not custom can only be made in developer mode"))
		if not re.match(r"^[^\d_\W][\w -]*$", self.name, re.UNICODE) or len(self.name) > 61:
			frappe.throw(_("{0} is no name for a DocType").format(self.name), frappe.NameError)
		self._name_fields()
		for df in self.fields:
			self._validate_field(df)
		if self.istable:
			self.permissions = []

	def before_import(self) -> None:
		self._name_fields()

	def before_save(self) -> None:
		self._refuse_what_is_not_offered()

	def _refuse_what_is_not_offered(self) -> None:
		for flag in ("is_virtual", "is_tree", "is_submittable"):
			if self.get(flag):
				raise frappe.NotOfferedError(f"a DocType with {flag}")
		if any(df.is_virtual for df in self.fields):
			raise frappe.NotOfferedError("a virtual field")

	def _name_fields(self) -> None:
		for df in self.fields:
			if not df.get("fieldname"):
				prefix = frappe.scrub(df.fieldtype)
				df.fieldname = frappe.scrub(df.label) if df.get("label") else f"{prefix}_{df.idx}"

	def _validate_field(self, df: Any) -> None:
		if df.fieldname in default_fields and df.fieldtype not in no_value_fields:
			frappe.throw(_("{0} is a standard field").format(df.fieldname), frappe.InvalidColumnName)
		if re.search(r"\W", df.fieldname):
			frappe.throw(_("{0} is no name for a field").format(df.fieldname), frappe.InvalidColumnName)
		if sum(other.fieldname == df.fieldname for other in self.fields) > 1:
			frappe.throw(_("There are two fields called {0}").format(df.fieldname))
		links = df.fieldtype in ("Link", *table_fields) and df.options != self.name
		if links and not frappe.db.exists("DocType", df.options):
			frappe.throw(_("{0} needs a DocType in its options").format(df.fieldname))

	def on_update(self) -> None:
		if self.flags.ignore_validate:
			self._refuse_what_is_not_offered()
		frappe.clear_cache(doctype=self.name)
		self._make_module_and_roles()
		frappe.db.updatedb(self.name)
		frappe.clear_cache(doctype=self.name)
		if not self.custom:
			self._run_on_doctype_update()

	def _make_module_and_roles(self) -> None:
		if not frappe.db.exists("DocType", "Role") or not frappe.db.table_exists("Role"):
			return
		for role in {rule.role for rule in self.permissions}:
			if not frappe.db.exists("Role", role):
				doc = frappe.get_doc(doctype="Role", role_name=role, desk_access=1)
				doc.flags.ignore_mandatory = True
				doc.insert(ignore_permissions=True, set_name=role)

	def _run_on_doctype_update(self) -> None:
		try:
			module = load_doctype_module(self.name, self.module)
		except ModuleNotFoundError as e:
			if not (e.name or "").endswith(f".{frappe.scrub(self.name)}") and self.module != "Core":
				raise
			return
		if hasattr(module, "on_doctype_update"):
			module.on_doctype_update()

	def after_delete(self) -> None:
		frappe.clear_cache(doctype=self.name)
