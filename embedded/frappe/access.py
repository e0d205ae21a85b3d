"""What may be called from outside and by whom."""

from collections.abc import Callable
from typing import Any

import frappe
from frappe.context import local
from frappe.permissions import has_permission as has_permission

whitelisted: list[Callable] = []
guest_methods: list[Callable] = []
allowed_http_methods_for_whitelisted_func: dict[Callable, list[str]] = {}


def whitelist(allow_guest: bool = False, methods: list[str] | None = None) -> Callable:
	def wrap(fn: Callable) -> Callable:
		from frappe.utils.typing_validations import validate_argument_types

		fn = validate_argument_types(
			fn, apply_condition=lambda: getattr(local, "request", None) or local.flags.in_test
		)
		allowed_http_methods_for_whitelisted_func[fn] = methods or ["GET", "POST", "PUT", "DELETE"]
		whitelisted.append(fn)
		if allow_guest:
			guest_methods.append(fn)
		return fn

	return wrap


def is_whitelisted(method: Callable) -> None:
	if method not in (guest_methods if local.session.user == "Guest" else whitelisted):
		text = frappe._("{0} may not be called from outside").format(f"{method.__module__}.{method.__name__}")
		frappe.throw(text, frappe.PermissionError)


def only_for(roles: Any) -> None:
	roles = {roles} if isinstance(roles, str) else set(roles)
	is_free = local.flags.in_test or local.session.user == "Administrator"
	if not is_free and roles.isdisjoint(frappe.get_roles()):
		raise frappe.PermissionError


def is_table(doctype: str) -> bool:
	return bool(frappe.get_meta(doctype).istable)
