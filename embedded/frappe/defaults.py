"""Default values of the site and of users."""

from typing import Any

import frappe


def get_defaults_for(parent: str = "__default") -> frappe._dict:
	def load() -> frappe._dict:
		table = frappe.qb.DocType("DefaultValue")
		rows = frappe.qb.from_(table).select(table.defkey, table.defvalue).where(table.parent == parent)
		return frappe._dict(rows.orderby("creation").run())

	return frappe.cache.hget("defaults", parent, load)


def get_defaults(user: str | None = None) -> frappe._dict:
	user = user or frappe.session.user or "Guest"
	return get_defaults_for().copy().update(get_defaults_for(user)).update(user=user, owner=user)


def get_user_default(key: str, user: str | None = None) -> Any:
	return get_defaults(user).get(key)


def set_user_default(key: str, value: Any, user: str | None = None, parenttype: str | None = None) -> None:
	set_default(key, value, user or frappe.session.user, parenttype)


def set_global_default(key: str, value: Any) -> None:
	set_default(key, value, "__default")


def get_global_default(key: str) -> Any:
	return get_defaults().get(key)


def set_default(key: str, value: Any, parent: str, parenttype: str | None = "__default") -> None:
	clear_default(key=key, parent=parent)
	if value is not None:
		owner = {"parent": parent, "parenttype": parenttype or "__default", "parentfield": "system_defaults"}
		document = frappe.get_doc({"doctype": "DefaultValue", "defkey": key, "defvalue": value, **owner})
		document.insert(ignore_permissions=True)
	frappe.cache.hdel("defaults", parent)


def clear_default(key: str, parent: str) -> None:
	frappe.db.delete("DefaultValue", {"defkey": key, "parent": parent})
	frappe.cache.hdel("defaults", parent)
