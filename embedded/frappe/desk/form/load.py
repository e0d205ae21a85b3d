"""One document as a form loads it."""

import frappe
from frappe.client import readable


@frappe.whitelist()
def getdoc(doctype, name) -> None:
	"""The answer is in `docs`, because a form may need more than one document."""
	if frappe.db.exists(doctype, name):
		frappe.local.response.docs.append(readable(doctype, name))
