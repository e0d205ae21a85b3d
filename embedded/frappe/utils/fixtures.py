"""Fixtures: an app's records, put back as they are in its files at install and at each migrate."""

import os

import frappe
from frappe.core.doctype.data_import.data_import import import_doc


def sync_fixtures(app: str | None = None) -> None:
	frappe.flags.in_fixtures = True
	for name in [app] if app else frappe.get_installed_apps():
		import_fixtures(name)
	frappe.flags.in_fixtures = False


def import_fixtures(app: str) -> None:
	folder = frappe.get_app_path(app, "fixtures")
	for file in os.listdir(folder) if os.path.isdir(folder) else ():
		if not file.endswith(".json"):
			continue
		try:
			import_doc(os.path.join(folder, file))
		except (ImportError, frappe.DoesNotExistError) as error:
			print(f"Fixture {file} is skipped: {error}")
