"""Values that the site keeps by key, such as its installed apps."""

from typing import Any

import frappe


def get_defaults_for(parent: str = "__default") -> frappe._dict:
	query = ("DefaultValue", {"parent": parent}, ["defkey", "defvalue"])
	return frappe.cache.hget("defaults", parent, lambda: frappe._dict(frappe.db.get_values(*query)))


def set_default(key: str, value: Any, parent: str, parenttype: str | None = None) -> None:
	frappe.db.delete("DefaultValue", {"defkey": key, "parent": parent})
	if value is not None:
		owner = {"parent": parent, "parenttype": parenttype or "__default", "parentfield": "system_defaults"}
		document = frappe.get_doc({"doctype": "DefaultValue", "defkey": key, "defvalue": value, **owner})
		document.insert(ignore_permissions=True)
	frappe.cache.hdel("defaults", parent)
