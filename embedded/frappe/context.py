"""One site in one thread: its configuration, connection, user, apps and hooks."""

import importlib
import inspect
import json
import os
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import frappe
from frappe.types.frappedict import _dict
from werkzeug.local import Local, release_local

local = Local()
controllers: dict[str, dict[str, type]] = {}
get_module = importlib.import_module
DEFAULTS = {"db_type": "postgres", "db_host": "127.0.0.1", "db_port": 5432}
DEFAULTS |= {"redis_queue": "redis://127.0.0.1:11311", "redis_cache": "redis://127.0.0.1:13311"}


def init(site: str, sites_path: str = ".", new_site: bool = False, force: bool = False) -> None:
	if getattr(local, "initialised", None) and not force:
		return
	local.site, local.sites_path, local.site_path = site, sites_path, os.path.join(sites_path, site)
	file = get_site_path("site_config.json")
	if site and not new_site and not os.path.exists(file):
		raise frappe.IncorrectSitePath(f"There is no site {site}")
	local.conf = _dict(DEFAULTS | get_common_site_config(sites_path))
	local.conf.update(get_file_json(file) if os.path.exists(file) else {})
	if local.conf.db_type != "postgres":
		raise frappe.NotOfferedError(f"the database {local.conf.db_type}")
	local.flags, local.session, local.job = _dict(currently_saving=[]), _dict(), None
	local.message_log, local.response, local.qb = [], _dict(docs=[]), frappe.query_builder.Postgres
	frappe.cache = frappe.cache or frappe.utils.redis_wrapper.RedisWrapper.from_url(local.conf.redis_cache)
	local.app_modules = {app: [scrub(name) for name in get_module_list(app)] for app in get_all_apps()}
	local.module_app = {module: app for app, modules in local.app_modules.items() for module in modules}
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
	path = os.path.join(sites_path, "common_site_config.json")
	return _dict(get_file_json(path) if os.path.exists(path) else {})


def get_conf(site: str = "") -> _dict:
	init(site)
	return local.conf


def get_file_json(path: str) -> Any:
	with open(path) as stream:
		return json.load(stream)


def get_site_path(*joins: str) -> str:
	return os.path.join(local.site_path, *joins)


def get_system_settings(key: str) -> Any:
	# a site that is being made has no settings yet
	return None if local.flags.in_install_db else frappe.get_cached_doc("System Settings").get(key)


def scrub(txt: str) -> str:
	return str(txt).replace(" ", "_").replace("-", "_").lower()


def get_app_path(app_name: str, *joins: str) -> str:
	return os.path.join(os.path.dirname(get_module(app_name).__file__), *joins)


def get_module_app(module: str) -> str:
	if scrub(module) not in local.module_app:
		frappe.throw(frappe._("There is no module {0}").format(module), frappe.DoesNotExistError)
	return local.module_app[scrub(module)]


def get_module_path(module: str, *joins: str) -> str:
	return get_app_path(f"{get_module_app(module)}.{scrub(module)}", *joins)


def get_file_items(path: str) -> list[str]:
	with open(path) as stream:
		return [line.strip() for line in stream if line.strip() and not line.startswith("#")]


def get_module_list(app_name: str) -> list[str]:
	return get_file_items(get_app_path(app_name, "modules.txt"))


def get_all_apps(with_internal_apps: bool = True, sites_path: str | None = None) -> list[str]:
	apps = get_file_items(os.path.join(sites_path or local.sites_path, "apps.txt"))
	return list(dict.fromkeys(["frappe", *apps]))


def get_installed_apps() -> list[str]:
	return [] if local.flags.in_install_db else json.loads(local.db.get_global("installed_apps") or "[]")


def _load_hooks(app_name: str | None = None) -> dict:
	hooks, known = {}, get_all_apps()
	for app in [app_name] if app_name else [app for app in get_installed_apps() if app in known]:
		for key, value in vars(get_module(f"{app}.hooks")).items():
			if not key.startswith("_") and not isinstance(value, ModuleType | FunctionType | type):
				_append_hook(hooks, key, value)
	return hooks


def _append_hook(target: dict, keys: Any, value: Any) -> None:
	for key in keys if isinstance(keys, tuple) else [keys]:
		if isinstance(value, dict):
			inner = target.setdefault(key, {})
			for inner_key, inner_value in value.items():
				_append_hook(inner, inner_key, inner_value)
		else:
			target.setdefault(key, []).extend(value if isinstance(value, list) else [value])


def get_hooks(hook: str | None = None, default: Any = None, app_name: str | None = None) -> Any:
	hooks = _load_hooks(app_name) if app_name else frappe.cache.get_value("app_hooks", _load_hooks)
	return hooks.get(hook, [] if default is None else default) if hook else _dict(hooks)


def get_attr(method_string: str) -> Any:
	app = method_string.split(".", 1)[0]
	if not (local.flags.in_uninstall or local.flags.in_install) and app not in get_installed_apps():
		frappe.throw(frappe._("The app {0} is not installed").format(app), frappe.AppNotInstalledError)
	modulename, _, name = method_string.rpartition(".")
	return getattr(get_module(modulename), name)


def call(fn: str | Callable, *args: Any, **kwargs: Any) -> Any:
	"""Passes on only what the function takes."""
	fn = get_attr(fn) if isinstance(fn, str) else fn
	parameters = inspect.signature(fn).parameters
	takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
	accepted = {key for key in kwargs if takes_all or key in parameters} - {"ignore_permissions", "flags"}
	return fn(*args, **{key: kwargs[key] for key in accepted})


def get_doc_hooks() -> dict:
	return get_hooks("doc_events", {})
