"""Installed apps, their modules, their hooks, and calls by dotted path."""

import importlib
import inspect
import json
import os
import types
from collections.abc import Callable
from typing import Any

import frappe
from frappe.context import local
from frappe.types.frappedict import _dict


def get_module(modulename: str) -> types.ModuleType:
	return importlib.import_module(modulename)


def scrub(txt: str) -> str:
	return str(txt).replace(" ", "_").replace("-", "_").lower()


def unscrub(txt: str) -> str:
	return txt.replace("_", " ").replace("-", " ").title()


def get_pymodule_path(modulename: str, *joins: str) -> str:
	parts = joins if "public" in joins else [scrub(part) for part in joins]
	return os.path.abspath(os.path.join(os.path.dirname(get_module(scrub(modulename)).__file__), *parts))


def get_app_path(app_name: str, *joins: str) -> str:
	return get_pymodule_path(app_name, *joins)


def get_app_source_path(app_name: str, *joins: str) -> str:
	return get_app_path(app_name, "..", *joins)


def get_module_path(module: str, *joins: str) -> str:
	return get_pymodule_path(f"{get_module_app(module)}.{scrub(module)}", *joins)


def get_module_app(module: str) -> str:
	app = local.module_app.get(scrub(module))
	if not app:
		frappe.throw(frappe._("There is no module {0}").format(module), frappe.DoesNotExistError)
	return app


def get_file_items(path: str, raise_not_found: bool = False, ignore_empty_lines: bool = True) -> list[str]:
	if not os.path.exists(path):
		if raise_not_found:
			raise OSError(f"There is no {path}")
		return []
	with open(path) as stream:
		lines = stream.read().strip().splitlines()
	return [
		line.strip()
		for line in lines
		if not ignore_empty_lines or (line.strip() and not line.startswith("#"))
	]


def get_module_list(app_name: str) -> list[str]:
	return get_file_items(get_app_path(app_name, "modules.txt"))


def get_all_apps(with_internal_apps: bool = True, sites_path: str | None = None) -> list[str]:
	apps = get_file_items(os.path.join(sites_path or local.sites_path, "apps.txt"))
	if with_internal_apps:
		apps += get_file_items(os.path.join(local.site_path, "apps.txt"))
	return ["frappe", *(app for app in dict.fromkeys(apps) if app != "frappe")]


def setup_module_map() -> None:
	local.app_modules = {app: [scrub(m) for m in get_module_list(app)] for app in get_all_apps()}
	local.module_app = {module: app for app, modules in local.app_modules.items() for module in modules}


def get_installed_apps() -> list[str]:
	if local.flags.in_install_db:
		return []
	if not getattr(local, "db", None):
		frappe.connect()
	return json.loads(local.db.get_global("installed_apps") or "[]")


def _load_app_hooks(app_name: str | None = None) -> dict:
	hooks: dict = {}
	on_bench = get_all_apps()
	for app in [app_name] if app_name else [a for a in get_installed_apps() if a in on_bench]:
		for key, value in vars(get_module(f"{app}.hooks")).items():
			if not key.startswith("_") and not isinstance(
				value, types.ModuleType | types.FunctionType | type
			):
				append_hook(hooks, key, value)
	return hooks


def get_hooks(
	hook: str | None = None, default: Any = "_KEEP_DEFAULT_LIST", app_name: str | None = None
) -> Any:
	if app_name or local.conf.developer_mode:
		hooks = _load_app_hooks(app_name)
	else:
		hooks = frappe.cache.get_value("app_hooks", _load_app_hooks)
	if not hook:
		return _dict(hooks)
	return hooks.get(hook, [] if default == "_KEEP_DEFAULT_LIST" else default)


def append_hook(target: dict, key: Any, value: Any) -> None:
	if isinstance(value, dict):
		for inner, inner_value in value.items():
			append_hook(target.setdefault(key, {}), inner, inner_value)
		target.setdefault(key, {})
	else:
		target.setdefault(key, []).extend(value if isinstance(value, list) else [value])


def get_doc_hooks() -> dict:
	if "doc_events_hooks" not in local.cache:
		out = local.cache["doc_events_hooks"] = {}
		for key, value in get_hooks("doc_events", {}).items():
			for doctype in key if isinstance(key, tuple) else (key,):
				append_hook(out, doctype, value)
	return local.cache["doc_events_hooks"]


def get_attr(method_string: str) -> Any:
	app = method_string.split(".", 1)[0]
	if not (local.flags.in_uninstall or local.flags.in_install) and app not in get_installed_apps():
		frappe.throw(frappe._("The app {0} is not installed").format(app), frappe.AppNotInstalledError)
	modulename, _, name = method_string.rpartition(".")
	return getattr(get_module(modulename), name)


def call(fn: str | Callable, *args: Any, **kwargs: Any) -> Any:
	fn = get_attr(fn) if isinstance(fn, str) else fn
	return fn(*args, **get_newargs(fn, kwargs))


def get_newargs(fn: Callable, kwargs: dict[str, Any]) -> dict[str, Any]:
	parameters = inspect.signature(fn).parameters
	takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
	never = ("ignore_permissions", "flags")
	return {k: v for k, v in kwargs.items() if (takes_all or k in parameters) and k not in never}
