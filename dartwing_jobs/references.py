"""Documents of Frappe that refer to ours: who may not see a row may not hang a file or a comment on it.

These are hooks on the referring documents, because the methods that make them do not ask, and there are many.
"""

import frappe
from frappe import _

from dartwing_jobs.tenancy import TENANT_DOCTYPES, is_unrestricted

# where a reference is kept: the fields with the DocType and the name
FIELDS = {
	"Comment": ("reference_doctype", "reference_name"),
	"Communication": ("reference_doctype", "reference_name"),
	"File": ("attached_to_doctype", "attached_to_name"),
	"ToDo": ("reference_type", "reference_name"),
}
# what would show rows to people whatever their organization is, or would write into them
REFUSED = {
	"DocShare": "share_doctype",
	"Document Follow": "ref_doctype",
	"Kanban Board": "reference_doctype",
	"Tag Link": "document_type",
	"Workflow": "document_type",
}


def check(doc, method: str | None = None) -> None:
	"""Refuses a reference to a row that the user may not read."""
	doctype_field, name_field = FIELDS[doc.doctype]
	_check_readable(doc.get(doctype_field), doc.get(name_field))
	if doc.doctype == "File" and doc.attached_to_doctype in TENANT_DOCTYPES and doc.attached_to_field:
		# Frappe writes the file's address into that field whenever the file changes
		frappe.throw(_("A file cannot be attached to a field of {0}.").format(_(doc.attached_to_doctype)))


def check_links(doc, method: str | None = None) -> None:
	"""The same for a table of dynamic links, as contacts and addresses have it."""
	for link in doc.get("links") or []:
		_check_readable(link.link_doctype, link.link_name)


def refuse(doc, method: str | None = None) -> None:
	"""Refuses what would outlive the membership in an organization."""
	doctype = doc.get(REFUSED[doc.doctype])
	if doctype in TENANT_DOCTYPES:
		message = _("{0} is not possible for {1}: who sees it is decided by its organization.")
		frappe.throw(message.format(_(doc.doctype), _(doctype)), frappe.PermissionError)


def file_conditions(user: str | None = None, doctype: str | None = None) -> str:
	"""The hook permission_query_conditions for File: attachments of our rows are found through their row."""
	user = user or frappe.session.user
	if is_unrestricted(user):
		return ""
	ours = ", ".join(frappe.db.escape(name) for name in sorted(TENANT_DOCTYPES))
	kind, own = (
		"`tabFile`.`attached_to_doctype`",
		f"`tabFile`.`owner` = {frappe.db.escape(user, percent=False)}",
	)
	return f"({kind} is null or {kind} not in ({ours}) or {own})"


def _check_readable(doctype: str | None, name: str | None) -> None:
	if doctype in TENANT_DOCTYPES and name:
		frappe.has_permission(doctype, "read", doc=name, throw=True)
