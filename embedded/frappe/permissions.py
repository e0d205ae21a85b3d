"""Who may do what: roles, ownership, User Permissions and the hooks of apps."""

import frappe
from frappe import _

rights = ("select", "read", "write", "create", "delete", "submit", "cancel", "amend")
rights += ("print", "email", "report", "import", "export", "share")
AUTOMATIC_ROLES = ("Guest", "All", "Desk User", "Administrator")


def has_permission(
	doctype: str, ptype: str = "read", doc=None, user: str | None = None, throw: bool = False
) -> bool:
	user, meta = user or frappe.session.user, frappe.get_meta(doctype)
	if user == "Administrator":
		return True
	if meta.istable:
		raise frappe.NotOfferedError(f"permission for the child table {doctype} alone")
	if doc:
		doc = frappe.get_doc(doctype, doc) if isinstance(doc, str) else doc
		granted = get_doc_permissions(doc, user=user, ptype=ptype)
	else:
		granted = get_role_permissions(meta, user=user)
	if throw and not granted.get(ptype):
		frappe.local.flags.error_message = _("You have no permission for {0}").format(doctype)
		raise frappe.PermissionError(frappe.local.flags.error_message)
	return bool(granted.get(ptype))


def get_doc_permissions(doc, user: str, ptype: str | None = None) -> dict:
	hooks = frappe.get_hooks("has_permission", {})
	# the rule of v16: every hook must answer with something true
	for method in hooks.get(doc.doctype, []) + hooks.get("*", []):
		if not frappe.call(method, doc=doc, ptype=ptype, user=user, debug=False):
			return {ptype: 0}
	is_owner = (doc.get("owner") or "").lower() == user.lower()
	permissions = get_role_permissions(doc.meta, user=user, is_owner=is_owner)
	if_owner = permissions.get("if_owner", {})
	if _has_user_permission(doc, user):
		return permissions | if_owner
	return {**if_owner, "create": 0} if is_owner else {}


def get_role_permissions(meta, user: str, is_owner: bool = False) -> dict:
	if user == "Administrator":
		return dict.fromkeys(rights, 1)
	roles = frappe.get_roles(user)
	rules = [rule for rule in meta.permissions if rule.role in roles]
	permissions = {"if_owner": {}}
	for ptype in rights:
		granting = [rule for rule in rules if rule.get(ptype)]
		permissions[ptype] = int(bool(granting))
		if granting and all(rule.if_owner for rule in granting) and ptype != "create":
			permissions["if_owner"][ptype] = int(is_owner)
			# reading stays allowed here so that lists open; they are cut down to the owner's rows
			permissions[ptype] = int(ptype == "read")
	return permissions


def get_user_permissions(user: str | None = None) -> dict:
	user, found = user or frappe.session.user, frappe._dict()
	fields = ["allow", "for_value as doc", "applicable_for", "is_default"]
	for row in frappe.get_all("User Permission", fields=fields, filters={"user": user}):
		found.setdefault(row.pop("allow"), []).append(row)
	return {} if user in frappe.STANDARD_USERS else found


def _has_user_permission(doc, user: str) -> bool:
	granted = get_user_permissions(user)
	links = [(doc.doctype, doc.name)]
	for row in (doc, *doc.get_all_children()):
		fields = [df for df in row.meta.get_link_fields() if not df.ignore_user_permissions]
		links += [(df.options, row.get(df.fieldname)) for df in fields if row.get(df.fieldname)]
	allowed = [(get_allowed_docs(granted, doctype, doc.doctype), name) for doctype, name in links]
	return all(not names or name in names for names, name in allowed)


def get_allowed_docs(granted: dict, doctype: str, applicable_for: str) -> list[str]:
	rows = granted.get(doctype, [])
	return [row.doc for row in rows if not row.applicable_for or row.applicable_for == applicable_for]


def get_roles(user: str | None = None) -> list[str]:
	user = user or frappe.session.user
	if user == "Administrator":
		return frappe.get_all("Role", pluck="name")
	if not user or user == "Guest":
		return ["Guest"]
	filters = {"parenttype": "User", "parent": user, "role": ["not in", AUTOMATIC_ROLES]}
	roles = frappe.db.get_values("Has Role", filters, "role", order_by=None, pluck=True)
	is_system_user = frappe.db.get_value("User", user, "user_type") == "System User"
	return [*roles, "All", "Guest", *(["Desk User"] if is_system_user else [])]
