"""The context of one site in one thread: configuration, connection, session user."""

import json
import os
from typing import Any

import frappe
from frappe.types.frappedict import _dict
from werkzeug.local import Local, release_local

local = Local()
controllers: dict[str, dict[str, type]] = {}

ENVIRONMENT = {
	"redis_queue": ("FRAPPE_REDIS_QUEUE", "redis://127.0.0.1:11311"),
	"redis_cache": ("FRAPPE_REDIS_CACHE", "redis://127.0.0.1:13311"),
	"db_type": ("FRAPPE_DB_TYPE", "postgres"),
	"db_host": ("FRAPPE_DB_HOST", "127.0.0.1"),
	"db_port": ("FRAPPE_DB_PORT", 5432),
}
FLAGS = ("in_install_db", "in_install_app", "in_import", "in_test")
FLAGS += ("mute_messages", "mute_emails", "ignore_links", "read_only")


def init(site: str, sites_path: str = ".", new_site: bool = False, force: bool = False) -> None:
	if getattr(local, "initialised", None) and not force:
		return
	local.flags = _dict(dict.fromkeys(FLAGS, False), currently_saving=[], new_site=new_site)
	local.site, local.sites_path, local.site_path = site, sites_path, os.path.join(sites_path, site)
	local.error_log, local.message_log, local.debug_log = [], [], []
	local.response, local.task_id, local.request_ip = _dict(docs=[]), None, None
	local.conf = _dict(get_site_config())
	if local.conf.db_type != "postgres":
		raise frappe.NotOfferedError(f"the database {local.conf.db_type}")
	local.lang = local.conf.lang or "en"
	local.session, local.user, local.job = _dict(), None, None
	_reset_caches()
	local.qb = frappe.query_builder.Postgres
	if frappe.cache is None:
		frappe.cache = frappe.utils.redis_wrapper.setup_cache()
	frappe.registry.setup_module_map()
	local.initialised = True


def _reset_caches() -> None:
	local.cache, local.form_dict, local.role_permissions = {}, _dict(), {}
	local.new_doc_templates, local.user_perms = {}, None


def connect(site: str | None = None, db_name: str | None = None, set_admin_as_user: bool = True) -> None:
	if site:
		init(site)
	name = local.conf.db_name or db_name
	assert name and local.conf.db_password, "site_config.json needs db_name and db_password"
	local.db = frappe.database.get_db(
		host=local.conf.db_host,
		port=local.conf.db_port,
		user=name,
		password=local.conf.db_password,
		cur_db_name=name,
	)
	if set_admin_as_user:
		set_user("Administrator")


def destroy() -> None:
	if getattr(local, "db", None):
		local.db.close()
	release_local(local)


def set_user(username: str) -> None:
	local.session.update(user=username, sid=username, data=_dict())
	_reset_caches()


def get_common_site_config(sites_path: str | None = None) -> _dict:
	path = os.path.join(sites_path or getattr(local, "sites_path", "."), "common_site_config.json")
	return _dict(get_file_json(path)) if os.path.exists(path) else _dict()


def get_site_config(sites_path: str | None = None, site_path: str | None = None) -> _dict:
	sites_path = sites_path or getattr(local, "sites_path", None)
	site_path = site_path or getattr(local, "site_path", None)
	config = get_common_site_config(sites_path) if sites_path else _dict()
	path = os.path.join(site_path, "site_config.json") if site_path else ""
	if os.path.exists(path):
		config.update(get_file_json(path))
	elif getattr(local, "site", None) and not local.flags.new_site:
		raise frappe.IncorrectSitePath(f"There is no site {local.site}")
	for key, (variable, default) in ENVIRONMENT.items():
		config[key] = os.environ.get(variable) or config.get(key) or default
	return config


def get_conf(site: str | None = None) -> _dict:
	if not hasattr(local, "conf"):
		init(site or "")
	return local.conf


def get_file_json(path: str) -> Any:
	with open(path) as stream:
		return json.load(stream)


def get_site_path(*joins: str) -> str:
	return os.path.join(local.site_path, *joins)


def get_roles(username: str | None = None) -> list[str]:
	if not local.session or not local.session.user:
		return ["Guest"]
	return frappe.permissions.get_roles(username or local.session.user)


def get_system_settings(key: str) -> Any:
	try:
		return frappe.get_cached_doc("System Settings").get(key)
	except (frappe.DoesNotExistError, ImportError):
		# a site that is being made has no settings yet
		return None
