"""Brings the DocTypes of the apps' modules into the database."""

import os

import frappe
from frappe.model.base_document import get_controller
from frappe.modules.import_file import import_file_by_path

FIRST = ("docfield", "docperm", "doctype_action", "doctype_link", "doctype_state", "doctype", "module_def")


def sync_all() -> None:
	frappe.flags.in_patch = True
	for app in frappe.get_installed_apps():
		sync_for(app)
	frappe.flags.in_patch = False
	frappe.clear_cache()


def sync_for(app_name: str, force: bool = False, reset_permissions: bool = True) -> None:
	for module in frappe.local.app_modules[app_name]:
		folder = os.path.join(os.path.dirname(frappe.get_module(f"{app_name}.{module}").__file__), "doctype")
		names = os.listdir(folder) if os.path.isdir(folder) else []
		for name in sorted(names, key=lambda name: (name not in FIRST, name)):
			path = os.path.join(folder, name, f"{name}.json")
			if os.path.exists(path):
				import_file_by_path(path, force=force)
				frappe.db.commit()


def remove_orphan_doctypes() -> None:
	for doctype in frappe.get_all("DocType", {"custom": 0}, pluck="name"):
		try:
			get_controller(doctype)
		except (ImportError, frappe.DoesNotExistError):
			frappe.delete_doc("DocType", doctype, force=True)
	frappe.db.commit()
