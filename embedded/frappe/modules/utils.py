"""Finds the Python module and the JSON file of a DocType."""

import types

import frappe
from frappe.registry import get_module, get_module_app, get_module_path, scrub

__all__ = ["get_module_app", "get_module_path", "load_doctype_module", "reload_doc", "scrub"]


def get_doctype_module(doctype: str) -> str:
	return frappe.db.get_value("DocType", doctype, "module") or "Core"


def load_doctype_module(
	doctype: str, module: str | None = None, prefix: str = "", suffix: str = ""
) -> types.ModuleType:
	module = module or get_doctype_module(doctype)
	folder = scrub(doctype)
	return get_module(f"{get_module_app(module)}.{scrub(module)}.doctype.{folder}.{prefix}{folder}{suffix}")


def reload_doc(
	module: str, dt: str, dn: str, force: bool = False, reset_permissions: bool = False
) -> bool | None:
	from frappe.modules.import_file import import_file_by_path

	path = get_module_path(module, scrub(dt), scrub(dn), f"{scrub(dn)}.json")
	return import_file_by_path(path, force=force, reset_permissions=reset_permissions)
