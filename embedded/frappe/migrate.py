"""Bring a site to its apps' current state: patches, DocTypes, schedules, fixtures."""

import configparser
import os

import frappe
from frappe.core.doctype.scheduled_job_type.scheduled_job_type import sync_jobs
from frappe.model.sync import remove_orphan_doctypes, sync_all
from frappe.modules.import_file import import_file_by_path


class SiteMigration:
	def run(self, site: str) -> None:
		frappe.init(site)
		frappe.connect()
		frappe.clear_cache()
		frappe.flags.in_migrate = True
		apps = frappe.get_installed_apps()
		try:
			run_hooks("before_migrate", *apps)
			run_patches("pre_model_sync", *apps)
			sync_all()
			run_patches("post_model_sync", *apps)
			sync_jobs()
			sync_fixtures(*apps)
			remove_orphan_doctypes()
			run_hooks("after_migrate", *apps)
			frappe.db.commit()
		finally:
			frappe.clear_cache()
			frappe.destroy()


def run_hooks(event: str, *apps: str) -> None:
	for app in apps:
		for method in frappe.get_hooks(event, app_name=app):
			frappe.get_attr(method)()


def run_patches(section: str, *apps: str, only_log: bool = False) -> None:
	"""Modules named in that section of each patches.txt; each runs once on a site."""
	frappe.db.commit()
	for app in apps:
		parser = configparser.ConfigParser(allow_no_value=True, delimiters="\n")
		parser.read(frappe.get_app_path(app, "patches.txt"))
		for patch in parser[section] if parser.has_section(section) else ():
			if not frappe.db.exists("Patch Log", {"patch": patch}):
				if not only_log:
					frappe.get_attr(f"{patch}.execute")()
				frappe.get_doc({"doctype": "Patch Log", "patch": patch}).insert(ignore_permissions=True)
				frappe.db.commit()


def sync_fixtures(*apps: str) -> None:
	"""Each record replaces its stored version; defaults are skipped, validations run."""
	frappe.flags.in_fixtures = True
	for folder in (frappe.get_app_path(app, "fixtures") for app in apps):
		for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
			import_file_by_path(f"{folder}/{file}", data_import=True, force=True, reset_permissions=True)
			frappe.db.commit()
	frappe.flags.in_fixtures = False
