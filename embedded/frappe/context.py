"""One site in one thread: its configuration, connection, user, apps and hooks."""

import importlib
import inspect
import json
import os
from collections.abc import Callable
from types import FunctionType, ModuleType

import frappe
from frappe.types.frappedict import _dict
from werkzeug.local import Local, release_local

local = Local()
controllers: dict[str, dict[str, type]] = {}
get_module = importlib.import_module


def init(site: str, sites_path: str = ".", new_site: bool = False, force: bool = False) -> None:
	if getattr(local, "initialised", None) and not force:
		return
	local.site, local.sites_path, local.site_path = site, sites_path, os.path.join(sites_path, site)
	file = os.path.join(local.site_path, "site_config.json")
	if site and not new_site and not os.path.exists(file):
		raise frappe.IncorrectSitePath(f"There is no site {site}")
	local.conf = get_common_site_config(sites_path).update(get_file_json(file, missing={}))
	if local.conf.get("db_type", "postgres") != "postgres":
		raise frappe.NotOfferedError(f"the database {local.conf.db_type}")
	local.flags, local.session = _dict(currently_saving=[]), _dict()
	local.message_log, local.response, local.qb = [], _dict(docs=[]), frappe.query_builder.Postgres
	frappe.cache = frappe.cache or frappe.utils.redis_wrapper.RedisWrapper(local.conf.redis_cache)
	local.module_app = {scrub(module): app for app in get_all_apps() for module in get_module_list(app)}
	local.initialised = True
	set_user(None)


def connect(site: str | None = None, set_admin_as_user: bool = True) -> None:
	if site:
		init(site)
	local.db = frappe.database.PostgresDatabase(local.conf)
	if set_admin_as_user:
		set_user("Administrator")


def destroy() -> None:
	if getattr(local, "db", None):
		local.db.close()
	release_local(local)


def set_user(username: str | None) -> None:
	local.session.update(user=username, sid=username, data=_dict())
	local.cache, local.form_dict, local.role_permissions = {}, _dict(), {}


def get_common_site_config(sites_path: str) -> _dict:
	return _dict(get_file_json(os.path.join(sites_path, "common_site_config.json"), missing={}))


def get_file_json(path: str, missing: dict | None = None):
	if missing is not None and not os.path.exists(path):
		return missing
	with open(path) as stream:
		return json.load(stream)


def scrub(txt: str) -> str:
	return txt.replace(" ", "_").replace("-", "_").lower()


def get_app_path(app_name: str, *joins: str) -> str:
	return os.path.join(os.path.dirname(get_module(app_name).__file__), *joins)


def get_module_package(module: str) -> str:
	if scrub(module) not in local.module_app:
		frappe.throw(frappe._("There is no module {0}").format(module), frappe.DoesNotExistError)
	return f"{local.module_app[scrub(module)]}.{scrub(module)}"


def get_module_path(module: str, *joins: str) -> str:
	return get_app_path(get_module_package(module), *joins)


def get_module_list(app_name: str) -> list[str]:
	return _lines(path) if os.path.exists(path := get_app_path(app_name, "modules.txt")) else []


def get_all_apps(sites_path: str | None = None) -> list[str]:
	return _lines(os.path.join(sites_path or local.sites_path, "apps.txt"))


def _lines(path: str) -> list[str]:
	with open(path) as stream:
		return [line.strip() for line in stream if line.strip()]


def get_installed_apps() -> list[str]:
	return [] if local.flags.in_install_db else json.loads(local.db.get_global("installed_apps") or "[]")


def get_hooks(hook: str | None = None, default=None, app_name: str | None = None):
	hooks = _load_hooks(app_name) if app_name else frappe.cache.get_value("app_hooks", _load_hooks)
	return hooks.get(hook, [] if default is None else default) if hook else _dict(hooks)


def _load_hooks(app_name: str | None = None) -> dict:
	hooks, known = {}, get_all_apps()
	for app in [app_name] if app_name else [app for app in get_installed_apps() if app in known]:
		for key, value in vars(get_module(f"{app}.hooks")).items():
			if not key.startswith("_") and not isinstance(value, ModuleType | FunctionType | type):
				_append_hook(hooks, key, value)
	return hooks


def _append_hook(target: dict, keys, value) -> None:
	for key in keys if isinstance(keys, tuple) else [keys]:
		if isinstance(value, dict):
			for inner_key, inner_value in value.items():
				_append_hook(target.setdefault(key, {}), inner_key, inner_value)
		else:
			target.setdefault(key, []).extend(value if isinstance(value, list) else [value])


def get_attr(method_string: str):
	app = method_string.split(".", 1)[0]
	if not (local.flags.in_uninstall or local.flags.in_install) and app not in get_installed_apps():
		frappe.throw(frappe._("The app {0} is not installed").format(app), frappe.AppNotInstalledError)
	modulename, _, name = method_string.rpartition(".")
	return getattr(get_module(modulename), name)


def call(fn: str | Callable, *args, **kwargs):
	"""Passes on only what the function takes."""
	fn = get_attr(fn) if isinstance(fn, str) else fn
	parameters = inspect.signature(fn).parameters
	takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
	accepted = {key for key in kwargs if takes_all or key in parameters} - {"ignore_permissions", "flags"}
	return fn(*args, **{key: kwargs[key] for key in accepted})
