"""Sites and apps: creating, installing, removing."""

import hashlib
import json
import os
import secrets
import shutil
from typing import Any

import frappe
from frappe.core.doctype.scheduled_job_type.scheduled_job_type import sync_jobs
from frappe.database import bootstrap_database, drop_user_and_database, setup_database
from frappe.model.sync import sync_for
from frappe.modules.patch_handler import get_patches_from_app
from frappe.utils.fixtures import sync_fixtures


def _new_site(
	db_name: str | None,
	site: str,
	db_root_username: str = "postgres",
	db_root_password: str | None = None,
	admin_password: str | None = None,
	db_password: str | None = None,
	force: bool = False,
) -> None:
	"""Leaves the new site's context open, as Administrator."""
	if os.path.exists(os.path.join(site, "site_config.json")) and not force:
		raise SystemExit(f"Site {site} already exists")
	db_name = db_name or "_" + hashlib.sha1(os.path.realpath(site).encode()).hexdigest()[:16]
	config = {"db_name": db_name, "db_type": "postgres", "encryption_key": secrets.token_urlsafe(32)}
	config["db_password"] = db_password or secrets.token_urlsafe(16)
	frappe.init(site, new_site=True, force=True)
	root = {"host": frappe.conf.db_host, "port": frappe.conf.db_port}
	root |= {"root_login": db_root_username, "root_password": db_root_password}
	setup_database(db_name, config["db_password"], force=force, **root)
	for folder in ("locks", "private/files", "public/files"):
		os.makedirs(os.path.join(site, folder), exist_ok=True)
	frappe.local.conf.update(config)
	frappe.connect()
	bootstrap_database(admin_password)
	# Written last: a site that has a configuration is a whole site.
	_write_json(os.path.join(site, "site_config.json"), config)
	frappe.init(site, force=True)
	frappe.connect()


def drop_site(site: str, root_login: str = "postgres", root_password: str | None = None) -> None:
	frappe.init(site)
	root = {"root_login": root_login, "root_password": root_password}
	conf = frappe.local.conf
	drop_user_and_database(conf.db_name, host=conf.db_host, port=conf.db_port, **root)
	frappe.destroy()
	shutil.rmtree(site)


def install_app(name: str, verbose: bool = False, set_as_patched: bool = True, force: bool = False) -> None:
	frappe.clear_cache()
	if name not in frappe.get_all_apps():
		raise Exception(f"App {name} is not in apps.txt")
	frappe.flags.in_install = name
	hooks = frappe.get_hooks(app_name=name)
	for required in hooks.required_apps or []:
		install_app(required.rstrip("/").split("/")[-1].removesuffix(".git"))
	frappe.flags.in_install = name
	if name in frappe.get_installed_apps() and not force:
		print(f"App {name} is installed already")
	elif all(frappe.get_attr(method)() is not False for method in hooks.before_install or []):
		_install(name, hooks, set_as_patched, force)
	frappe.flags.in_install = False
	frappe.clear_cache()


def _install(name: str, hooks: Any, set_as_patched: bool, force: bool) -> None:
	frappe.only_for("System Manager")
	_call_all(frappe.get_hooks("before_app_install"), name)
	add_module_defs(name, ignore_if_duplicate=force)
	sync_for(name, force=force, reset_permissions=True)
	_set_installed_apps([*frappe.get_installed_apps(), name])
	init_singles()
	if set_as_patched:
		set_all_patches_as_completed(name)
	_call_all(hooks.after_install)
	_call_all(frappe.get_hooks("after_app_install"), name)
	sync_jobs()
	sync_fixtures(name)
	_call_all(hooks.after_sync)
	frappe.db.commit()


def remove_app(
	app_name: str, dry_run: bool = False, yes: bool = False, no_backup: bool = False, force: bool = False
) -> None:
	"""Everything of the app's modules goes, custom DocTypes and data included."""
	installed = frappe.get_installed_apps()
	if app_name not in installed and not force:
		print(f"App {app_name} is not installed on {frappe.local.site}")
		return
	needed_by = [app for app in installed if app != app_name and app_name in _required_apps(app)]
	if needed_by:
		print(f"App {app_name} is needed by {', '.join(needed_by)}")
		return
	if dry_run or not no_backup:
		raise frappe.NotOfferedError("Removing an app with a dry run or a backup")
	frappe.flags.in_uninstall = True
	hooks = frappe.get_hooks(app_name=app_name)
	_call_all(hooks.before_uninstall)
	_call_all(frappe.get_hooks("before_app_uninstall"), app_name)
	for module in frappe.get_all("Module Def", filters={"app_name": app_name}, pluck="name"):
		_delete_module(module)
	_set_installed_apps([app for app in installed if app != app_name])
	_call_all(hooks.after_uninstall)
	_call_all(frappe.get_hooks("after_app_uninstall"), app_name)
	frappe.db.commit()
	frappe.flags.in_uninstall = False


def _delete_module(module: str) -> None:
	for doctype in frappe.get_all("DocType", filters={"module": module}, fields=["name", "issingle"]):
		frappe.delete_doc("DocType", doctype.name, ignore_on_trash=True, force=True)
		if not doctype.issingle:
			frappe.db.sql_ddl(f"DROP TABLE IF EXISTS `tab{doctype.name}`")
	frappe.delete_doc("Module Def", module, ignore_on_trash=True, force=True)


def add_module_defs(app: str, ignore_if_duplicate: bool = False) -> None:
	for module in frappe.get_module_list(app):
		definition = frappe.get_doc({"doctype": "Module Def", "app_name": app, "module_name": module})
		definition.insert(ignore_permissions=True, ignore_if_duplicate=ignore_if_duplicate)


def set_all_patches_as_completed(app: str) -> None:
	for patch in get_patches_from_app(app):
		frappe.get_doc({"doctype": "Patch Log", "patch": patch}).insert(ignore_permissions=True)
	frappe.db.commit()


def init_singles() -> None:
	"""A Single that nobody has saved yet is saved with its defaults."""
	for doctype in frappe.get_all("DocType", filters={"issingle": 1}, pluck="name"):
		if not frappe.db.get_singles_dict(doctype):
			doc = frappe.new_doc(doctype)
			doc.flags.ignore_mandatory = doc.flags.ignore_validate = True
			doc.save()
	frappe.db.commit()


def update_site_config(
	key: str, value: Any, validate: bool = True, site_config_path: str | None = None
) -> None:
	"""The word "None" removes a key."""
	path = site_config_path or frappe.get_site_path("site_config.json")
	config = frappe.get_file_json(path)
	if validate and isinstance(value, str) and value.lstrip("-").isdigit():
		value = int(value)
	if value == "None":
		config.pop(key, None)
	else:
		config[key] = value
	_write_json(path, config)
	if getattr(frappe.local, "conf", None) is not None:
		frappe.local.conf[key] = config.get(key)


def _set_installed_apps(apps: list[str]) -> None:
	frappe.db.set_global("installed_apps", json.dumps(list(dict.fromkeys(apps))))
	frappe.db.commit()
	frappe.clear_cache()


def _required_apps(app: str) -> str:
	return " ".join(frappe.get_hooks(app_name=app).required_apps or [])


def _call_all(methods: list[str] | None, *arguments: Any) -> None:
	for method in methods or []:
		frappe.get_attr(method)(*arguments)


def _write_json(path: str, content: dict) -> None:
	with open(path, "w") as file:
		json.dump(content, file, indent=1, sort_keys=True)
