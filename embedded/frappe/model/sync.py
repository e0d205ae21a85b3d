"""Brings the DocTypes of the apps' modules into the database."""

import os

import frappe
from frappe.model.base_document import get_controller
from frappe.modules.import_file import import_file_by_path

FIRST = (
	"docfield",
	"docperm",
	"doctype_action",
	"doctype_link",
	"doctype_state",
	"doctype",
	"module_def",
	"role",
)


def sync_all(force: bool = False, reset_permissions: bool = False) -> None:
	frappe.flags.in_patch = True
	for app in frappe.get_installed_apps():
		sync_for(app, force, reset_permissions=reset_permissions)
	frappe.flags.in_patch = False
	frappe.clear_cache()


def sync_for(app_name: str, force: bool = False, reset_permissions: bool = False) -> None:
	for module in frappe.local.app_modules.get(app_name) or []:
		for path in get_doc_files([], os.path.dirname(frappe.get_module(f"{app_name}.{module}").__file__)):
			import_file_by_path(path, force=force, ignore_version=True, reset_permissions=reset_permissions)
			frappe.db.commit()


def get_doc_files(files: list[str], start_path: str) -> list[str]:
	folder = os.path.join(start_path, "doctype")
	names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
	for name in sorted(names, key=lambda n: FIRST.index(n) if n in FIRST else len(FIRST)):
		path = os.path.join(folder, name, f"{name}.json")
		if os.path.exists(path) and path not in files:
			files.append(path)
	return files


def remove_orphan_doctypes() -> None:
	for doctype in frappe.get_all("DocType", {"custom": 0}, pluck="name"):
		try:
			get_controller(doctype)
		except (ImportError, frappe.DoesNotExistError):
			frappe.delete_doc("DocType", doctype, force=True, ignore_missing=True)
	frappe.db.commit()
