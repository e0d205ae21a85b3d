"""Finds the Python module of a DocType."""

import types

import frappe


def load_doctype_module(doctype: str, module: str | None = None) -> types.ModuleType:
	module = module or frappe.db.get_value("DocType", doctype, "module") or "Core"
	package = f"{frappe.get_module_app(module)}.{frappe.scrub(module)}.doctype.{frappe.scrub(doctype)}"
	return frappe.get_module(f"{package}.{frappe.scrub(doctype)}")
