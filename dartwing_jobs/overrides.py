"""Whitelisted methods of Frappe that answer without asking who may see: for our DocTypes they ask first.

Every other DocType gets Frappe's own answer.
"""

import frappe
from frappe import client
from frappe.desk import reportview, search

from dartwing_jobs.tenancy import TENANT_DOCTYPES


@frappe.whitelist()
def get_count(doctype: str, filters=None, debug=False, cache=False) -> int:
	"""Counts the rows that the user may see; Frappe's counts them all."""
	if doctype not in TENANT_DOCTYPES:
		return client.get_count(doctype, filters, debug, cache)
	frappe.local.form_dict = frappe._dict(doctype=doctype, filters=filters or {}, fields=[])
	return reportview.get_count()


@frappe.whitelist()
def get_link_title(doctype: str, docname: str) -> str | None:
	"""A document's title for those who may read it; Frappe tells it to everybody."""
	if doctype in TENANT_DOCTYPES:
		frappe.has_permission(doctype, "read", doc=docname, throw=True)
	return search.get_link_title(doctype, docname)


@frappe.whitelist()
def validate_link(doctype: str, docname: str, fields=None) -> dict:
	"""Whether a name exists, for those who may read it; Frappe needs no more than read on the DocType."""
	if doctype in TENANT_DOCTYPES and not frappe.get_list(doctype, filters={"name": docname}, limit=1):
		return frappe._dict(name=None)
	return client.validate_link(doctype, docname, fields)
