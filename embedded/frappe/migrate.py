"""Bring a site to its apps' current state: patches, DocTypes, schedules, fixtures."""

import configparser
import hashlib
import os

import frappe
from frappe.core.doctype.scheduled_job_type.scheduled_job_type import sync_jobs

FIRST = ("docfield", "docperm", "doctype_action", "doctype_link", "doctype_state", "doctype", "module_def")


class SiteMigration:
	def run(self, site: str) -> None:
		frappe.connect(site)
		frappe.clear_cache()
		frappe.flags.in_migrate = True
		apps = frappe.get_installed_apps()
		try:
			run_hooks("before_migrate", *apps)
			run_patches("pre_model_sync", *apps)
			for app in apps:
				sync_for(app)
			frappe.clear_cache()
			run_patches("post_model_sync", *apps)
			sync_jobs()
			sync_fixtures(*apps)
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
			import_file_by_path(f"{folder}/{file}", data_import=True, force=True)
			frappe.db.commit()
	frappe.flags.in_fixtures = False


def sync_for(app_name: str, force: bool = False) -> None:
	for module in frappe.get_module_list(app_name):
		folder = frappe.get_module_path(module, "doctype")
		names = os.listdir(folder) if os.path.isdir(folder) else []
		for name in sorted(names, key=lambda name: (name not in FIRST, name)):
			path = os.path.join(folder, name, f"{name}.json")
			if os.path.exists(path):
				import_file_by_path(path, force=force)
				frappe.db.commit()


def import_file_by_path(path: str, force: bool = False, data_import: bool = False) -> None:
	"""A DocType comes in when its file has changed, other records always."""
	with open(path, "rb") as stream:
		digest = hashlib.md5(stream.read(), usedforsecurity=False).hexdigest()
	docs = frappe.get_file_json(path)
	for doc in docs if isinstance(docs, list) else [docs]:
		key, stamps = (doc["doctype"], doc["name"]), {}
		if doc["doctype"] == "DocType":
			stamps["migration_hash"] = digest
			if not force and frappe.db.get_value(*key, "migration_hash") == digest:
				continue
		_import_doc(doc, is_trusted=not data_import)
		stamps |= {"modified": doc["modified"]} if doc.get("modified") else {}
		if stamps:
			frappe.db.set_value(*key, stamps, update_modified=False)


def _import_doc(docdict: dict, is_trusted: bool) -> None:
	frappe.flags.in_import = True
	doc = frappe.get_doc({**docdict, "__islocal": 1})
	doc.run_method("before_import")
	frappe.delete_doc(doc.doctype, doc.name, force=1, for_reload=True)
	doc.flags.update(ignore_links=True, ignore_validate=is_trusted, ignore_permissions=is_trusted)
	doc.insert(ignore_mandatory=is_trusted)
	frappe.flags.in_import = False
