"""Who may do what: roles, ownership, User Permissions and the hooks of apps."""

import copy
from typing import Any

import frappe
from frappe import _
from frappe.utils.data import cint

rights = ("select", "read", "write", "create", "delete", "submit", "cancel", "amend")
rights += ("print", "email", "report", "import", "export", "share")
GUEST_ROLE, ALL_USER_ROLE, SYSTEM_USER_ROLE, ADMIN_ROLE = "Guest", "All", "Desk User", "Administrator"
AUTOMATIC_ROLES = (GUEST_ROLE, ALL_USER_ROLE, SYSTEM_USER_ROLE, ADMIN_ROLE)


def has_permission(
	doctype: Any,
	ptype: str = "read",
	doc: Any = None,
	user: str | None = None,
	raise_exception: bool = True,
	*,
	parent_doctype: str | None = None,
	debug: bool = False,
) -> bool:
	user = user or frappe.session.user
	if user == "Administrator":
		return True
	if not doc and hasattr(doctype, "doctype"):
		doc, doctype = doctype, doctype.doctype
	meta = frappe.get_meta(doctype)
	if meta.istable:
		return has_child_permission(doctype, ptype, doc, user, parent_doctype)
	if doc:
		doc = frappe.get_doc(doctype, doc) if isinstance(doc, str | int) else doc
		return bool(get_doc_permissions(doc, user=user, ptype=ptype).get(ptype))
	if (ptype == "submit" and not meta.is_submittable) or (ptype == "import" and not meta.allow_import):
		return False
	return bool(get_role_permissions(meta, user=user).get(ptype))


def has_child_permission(
	child_doctype: str, ptype: str, child_doc: Any, user: str, parent_doctype: str | None
) -> bool:
	if isinstance(child_doc, str):
		child_doc = frappe.get_doc(child_doctype, child_doc)
	if child_doc:
		parent_doctype = child_doc.parenttype
	tables = frappe.get_meta(parent_doctype).get_table_fields() if parent_doctype else []
	tables = [df for df in tables if df.options == child_doctype]
	if not tables:
		return False
	if child_doc:
		permlevel = next((cint(df.permlevel) for df in tables if df.fieldname == child_doc.parentfield), 0)
		levels = frappe.get_meta(parent_doctype).get_permlevel_access(ptype, user=user)
		if permlevel and permlevel not in levels:
			return False
	return has_permission(parent_doctype, ptype, child_doc.parent if child_doc else None, user)


def get_doc_permissions(
	doc: Any, user: str | None = None, ptype: str | None = None, debug: bool = False
) -> dict:
	user = user or frappe.session.user
	is_owner = (doc.get("owner") or "").lower() == user.lower()
	if not has_controller_permissions(doc, ptype, user):
		return {ptype: 0}
	permissions = copy.deepcopy(get_role_permissions(doc.meta, user=user, is_owner=is_owner))
	if not doc.meta.is_submittable:
		permissions["submit"] = 0
	if not doc.meta.allow_import:
		permissions["import"] = 0
	if permissions.get("has_if_owner_enabled"):
		permissions.update(permissions.get("if_owner", {}))
	if has_user_permission(doc, user):
		return permissions
	return {**permissions.get("if_owner", {}), "create": 0} if is_owner else {}


def get_role_permissions(
	doctype_meta: Any, user: str | None = None, is_owner: bool | None = None, debug: bool = False
) -> dict:
	meta = frappe.get_meta(doctype_meta) if isinstance(doctype_meta, str) else doctype_meta
	user = user or frappe.session.user
	if user == "Administrator":
		return allow_everything()
	key = (meta.name, user, bool(is_owner))
	if key not in frappe.local.role_permissions:
		frappe.local.role_permissions[key] = _role_permissions(meta, user, is_owner)
	return frappe.local.role_permissions[key]


def _role_permissions(meta: Any, user: str, is_owner: bool | None) -> frappe._dict:
	roles = frappe.get_roles(user)
	rules = [rule for rule in meta.permissions or [] if rule.role in roles and not cint(rule.permlevel)]
	permissions = frappe._dict(if_owner={}, has_if_owner_enabled=any(rule.if_owner for rule in rules))
	for ptype in rights:
		granting = [rule for rule in rules if rule.get(ptype)]
		permissions[ptype] = int(bool(granting))
		if granting and all(rule.if_owner for rule in granting) and ptype != "create":
			permissions["if_owner"][ptype] = int(bool(is_owner))
			# reading stays allowed here so that lists open; they are cut down to the owner's rows
			permissions[ptype] = int(ptype in ("select", "read"))
	return permissions


def allow_everything() -> dict[str, int]:
	return dict.fromkeys(rights, 1)


def has_controller_permissions(
	doc: Any, ptype: str | None, user: str | None = None, debug: bool = False
) -> bool:
	"""The rule of v16: every hook must answer with something true."""
	hooks = frappe.get_hooks("has_permission", {})
	arguments = {"doc": doc, "ptype": ptype, "user": user or frappe.session.user, "debug": debug}
	return all(frappe.call(m, **arguments) for m in reversed(hooks.get(doc.doctype, []) + hooks.get("*", [])))


def get_user_permissions(user: str | None = None) -> dict:
	from frappe.core.doctype.user_permission.user_permission import get_user_permissions

	return get_user_permissions(user)


def has_user_permission(doc: Any, user: str | None = None, debug: bool = False) -> bool:
	permissions = get_user_permissions(user)
	if not permissions:
		return True
	if doc.doctype in permissions:
		allowed = get_allowed_docs_for_doctype(permissions[doc.doctype], doc.doctype)
		if allowed and str(doc.name) not in allowed:
			return False
	strict = not doc.meta.issingle and frappe.get_system_settings("apply_strict_user_permissions")
	return all(_links_allowed(d, doc.doctype, permissions, strict) for d in (doc, *doc.get_all_children()))


def _links_allowed(doc: Any, doctype: str, permissions: dict, strict: Any) -> bool:
	for df in doc.meta.get_link_fields():
		value = doc.get(df.fieldname)
		if df.ignore_user_permissions or df.options not in permissions or not (value or strict):
			continue
		allowed = get_allowed_docs_for_doctype(permissions[df.options], doctype)
		if allowed and str(value) not in allowed:
			frappe.flags.error_message = _("You have no access to {0} {1}").format(df.options, value)
			return False
	return True


def filter_allowed_docs_for_doctype(
	user_permissions: list, doctype: str, with_default_doc: bool = True
) -> Any:
	applicable = [p for p in user_permissions if not p.applicable_for or p.applicable_for == doctype]
	allowed = [p.doc for p in applicable]
	if not with_default_doc:
		return allowed
	defaults = [p.doc for p in applicable if p.is_default or len(user_permissions) == 1]
	return allowed, defaults[-1] if defaults else None


def get_allowed_docs_for_doctype(user_permissions: list, doctype: str) -> list[str]:
	return filter_allowed_docs_for_doctype(user_permissions, doctype, with_default_doc=False)


def get_roles(user: str | None = None, with_standard: bool = True) -> list[str]:
	user = user or frappe.session.user
	if not user or user == "Guest":
		return [GUEST_ROLE]
	roles = frappe.cache.hget("roles", user, lambda: _load_roles(user))
	return roles if with_standard else [role for role in roles if role not in AUTOMATIC_ROLES]


def _load_roles(user: str) -> list[str]:
	if user == "Administrator":
		return frappe.get_all("Role", pluck="name")
	filters = {"parenttype": "User", "parent": user, "role": ["not in", AUTOMATIC_ROLES]}
	roles = [row[0] for row in frappe.db.get_values("Has Role", filters, "role", order_by=None)]
	is_system_user = frappe.db.get_value("User", user, "user_type") == "System User"
	return [*roles, ALL_USER_ROLE, GUEST_ROLE, *([SYSTEM_USER_ROLE] if is_system_user else [])]


def get_valid_perms(doctype: str | None = None, user: str | None = None) -> list[frappe._dict]:
	filters = {"permlevel": 0, "docstatus": 0, "role": ["in", get_roles(user)]}
	rules = frappe.get_all("DocPerm", fields=["*"], filters=filters)
	return [rule for rule in rules if doctype in (None, rule.parent)]


def add_user_permission(
	doctype: str,
	name: str,
	user: str,
	ignore_permissions: bool = False,
	applicable_for: str | None = None,
	is_default: int = 0,
	hide_descendants: int = 0,
) -> None:
	existing = get_user_permissions(user).get(doctype, [])
	if any(p.doc == name and p.applicable_for == applicable_for for p in existing):
		return
	if not frappe.db.exists(doctype, name):
		frappe.throw(_("{0} {1} does not exist").format(doctype, name), frappe.DoesNotExistError)
	frappe.get_doc(
		doctype="User Permission",
		user=user,
		allow=doctype,
		for_value=name,
		is_default=is_default,
		applicable_for=applicable_for,
		apply_to_all_doctypes=0 if applicable_for else 1,
		hide_descendants=hide_descendants,
	).insert(ignore_permissions=ignore_permissions)


def remove_user_permission(doctype: str, name: str, user: str) -> None:
	found = frappe.db.get_value("User Permission", {"user": user, "allow": doctype, "for_value": name})
	frappe.delete_doc("User Permission", found)


def clear_user_permissions_for_doctype(doctype: str, user: str | None = None) -> None:
	for name in frappe.get_all(
		"User Permission", {"allow": doctype} | ({"user": user} if user else {}), pluck="name"
	):
		frappe.delete_doc("User Permission", name)


def can_import(doctype: str, raise_exception: bool = False) -> bool:
	allowed = "System Manager" in frappe.get_roles() or has_permission(doctype, "import")
	if not allowed and raise_exception:
		raise frappe.PermissionError(f"You may not import {doctype}")
	return allowed


def can_export(doctype: str, raise_exception: bool = False) -> bool:
	permissions = get_role_permissions(doctype)
	allowed = "System Manager" in frappe.get_roles() or permissions.get("export")
	allowed = bool(allowed or permissions.get("if_owner", {}).get("export"))
	if not allowed and raise_exception:
		raise frappe.PermissionError(f"You may not export {doctype}")
	return allowed
