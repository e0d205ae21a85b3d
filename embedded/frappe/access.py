"""What may be called from outside and by whom."""

from collections.abc import Callable
from typing import Any

import frappe
from frappe.context import local

whitelisted: list[Callable] = []
guest_methods: list[Callable] = []
xss_safe_methods: list[Callable] = []
allowed_http_methods_for_whitelisted_func: dict[Callable, list[str]] = {}


def whitelist(
	allow_guest: bool = False, xss_safe: bool = False, methods: list[str] | None = None
) -> Callable:
	def wrap(fn: Callable) -> Callable:
		from frappe.utils.typing_validations import validate_argument_types

		fn = validate_argument_types(
			fn, apply_condition=lambda: getattr(local, "request", None) or local.flags.in_test
		)
		whitelisted.append(fn)
		allowed_http_methods_for_whitelisted_func[fn] = methods or ["GET", "POST", "PUT", "DELETE"]
		if allow_guest:
			guest_methods.append(fn)
		if allow_guest and xss_safe:
			xss_safe_methods.append(fn)
		return fn

	return wrap


def is_whitelisted(method: Callable) -> None:
	is_guest = local.session.user == "Guest"
	if method not in whitelisted or (is_guest and method not in guest_methods):
		text = frappe._("{0} may not be called from outside").format(f"{method.__module__}.{method.__name__}")
		frappe.throw(text, frappe.PermissionError, title=frappe._("Not allowed"))
	if is_guest and method not in xss_safe_methods:
		for key, value in local.form_dict.items():
			local.form_dict[key] = frappe.utils.sanitize_html(value)


def only_for(roles: Any, message: bool = False) -> None:
	if local.flags.in_test or local.session.user == "Administrator":
		return
	roles = (roles,) if isinstance(roles, str) else roles
	if set(roles).isdisjoint(frappe.get_roles()):
		if not message:
			raise frappe.PermissionError
		frappe.throw(frappe._("Only for {0}").format(", ".join(roles)), frappe.PermissionError)


def only_has_select_perm(doctype: str, user: str | None = None, ignore_permissions: bool = False) -> Any:
	if ignore_permissions:
		return False
	permissions = frappe.permissions.get_role_permissions(doctype, user=user or local.session.user)
	return permissions.get("select") and not permissions.get("read")


def has_permission(
	doctype: str | None = None,
	ptype: str = "read",
	doc: Any = None,
	user: str | None = None,
	throw: bool = False,
	*,
	parent_doctype: str | None = None,
	debug: bool = False,
) -> bool:
	doctype = doctype or doc.doctype
	allowed = frappe.permissions.has_permission(doctype, ptype, doc, user, parent_doctype=parent_doctype)
	if throw and not allowed:
		name = (doc if isinstance(doc, str) else doc.name) if doc else ""
		local.flags.error_message = frappe._("You have no permission for {0}").format(
			f"{doctype} {name}".strip()
		)
		raise frappe.PermissionError
	return allowed


def is_table(doctype: str) -> bool:
	return bool(frappe.get_meta(doctype).istable)


def ping() -> str:
	return "pong"
