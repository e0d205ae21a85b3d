"""One document as a form loads it."""

from typing import Any

import frappe
from frappe import _


@frappe.whitelist()
def getdoc(doctype, name, user=None):
	"""The answer is in `docs`, because a form may need more than one document."""
	try:
		doc = frappe.get_doc(doctype, name)
	except frappe.DoesNotExistError:
		frappe.clear_last_message()
		return []
	if not doc.has_permission("read"):
		frappe.local.flags.error_message = _("You may not read {0}").format(frappe.bold(f"{doctype} {name}"))
		raise frappe.PermissionError("read", doctype, name)
	run_onload(doc)
	doc.apply_fieldlevel_read_permissions()
	frappe.local.response["docinfo"] = get_docinfo(doc)
	frappe.local.response.docs.append(doc)
	return None


def get_docinfo(doc: Any) -> dict:
	permissions = frappe.permissions.get_doc_permissions(doc)
	return {"doctype": doc.doctype, "name": doc.name, "permissions": permissions}


def run_onload(doc: Any) -> None:
	doc.set("__onload", frappe._dict())
	doc.run_method("onload")
