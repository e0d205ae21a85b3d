"""Sites and apps: creating, installing, removing."""

import json
import os
import secrets

import frappe
from frappe.core.doctype.scheduled_job_type.scheduled_job_type import sync_jobs
from frappe.database import bootstrap_database, setup_database
from frappe.migrate import run_hooks, run_patches, sync_fixtures, sync_for


def new_site(site: str, db_name, db_root_username, db_root_password, apps, force: bool) -> None:
	if os.path.exists(f"{site}/site_config.json") and not force:
		raise SystemExit(f"Site {site} already exists")
	db_name = db_name or f"_{secrets.token_hex(8)}"
	config = {"db_name": db_name, "db_type": "postgres", "db_password": secrets.token_urlsafe(16)}
	frappe.init(site, new_site=True, force=True)
	frappe.local.conf.update(config)
	setup_database(frappe.conf, db_root_username, db_root_password, force)
	frappe.connect()
	bootstrap_database()
	# Written after that: a site that has a configuration is a whole site.
	os.makedirs(site, exist_ok=True)
	write_json(f"{site}/site_config.json", config)
	for app in apps:
		install_app(app)
	frappe.destroy()


def write_json(path: str, values: dict) -> None:
	with open(path, "w") as file:
		json.dump(values, file, indent=1, sort_keys=True)


def install_app(name: str) -> None:
	if name not in frappe.get_all_apps():
		raise Exception(f"App {name} is not in apps.txt")
	if name in frappe.get_installed_apps():
		print(f"App {name} is installed already")
		return
	frappe.flags.in_install = name
	if set(frappe.get_hooks("required_apps", app_name=name)) - set(frappe.get_installed_apps()):
		raise frappe.NotOfferedError("Installing the apps that an app requires")
	run_hooks("before_install", name)
	for module in frappe.get_module_list(name):
		frappe.get_doc({"doctype": "Module Def", "app_name": name, "module_name": module}).insert()
	sync_for(name)
	frappe.db.set_global("installed_apps", json.dumps([*frappe.get_installed_apps(), name]))
	frappe.db.commit()
	frappe.clear_cache()
	init_singles()
	for section in ("pre_model_sync", "post_model_sync"):
		run_patches(section, name, only_log=True)
	run_hooks("after_install", name)
	for method in frappe.get_hooks("after_app_install"):
		frappe.get_attr(method)(name)
	sync_jobs()
	sync_fixtures(name)
	frappe.db.commit()
	frappe.flags.in_install = False
	frappe.clear_cache()


def remove_app(app_name: str, dry_run: bool = False, no_backup: bool = False) -> None:
	"""All of the app's modules goes, custom DocTypes and data included. A dry run only calls the hooks."""
	if not (dry_run or no_backup):
		raise frappe.NotOfferedError("Removing an app with a backup")
	if app_name not in (installed := frappe.get_installed_apps()):
		print(f"App {app_name} is not installed on {frappe.local.site}")
		return
	frappe.flags.in_uninstall = True
	run_hooks("before_uninstall", app_name)
	modules = frappe.get_all("Module Def", filters={"app_name": app_name}, pluck="name")
	for module in [] if dry_run else modules:
		for doctype in frappe.get_all("DocType", filters={"module": module}, pluck="name"):
			frappe.delete_doc("DocType", doctype, ignore_on_trash=True, force=True)
			frappe.db.sql_ddl(f"drop table if exists `tab{doctype}`")
		frappe.delete_doc("Module Def", module, ignore_on_trash=True, force=True)
	if not dry_run:
		frappe.db.set_global("installed_apps", json.dumps([app for app in installed if app != app_name]))
		frappe.db.commit()
	run_hooks("after_uninstall", app_name)
	frappe.flags.in_uninstall = False


def init_singles() -> None:
	"""A Single that nobody has saved yet is saved with its defaults."""
	for doctype in frappe.get_all("DocType", filters={"issingle": 1}, pluck="name"):
		if not frappe.db.get_singles_dict(doctype):
			doc = frappe.new_doc(doctype)
			doc.flags.ignore_mandatory = doc.flags.ignore_validate = True
			doc.save()
