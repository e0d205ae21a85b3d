"""Documents of Frappe that refer to ours: who may not see a row may not hang a file or a comment on it.

These are hooks on the referring documents, because the methods that make them do not ask, and there are many.
"""

import posixpath
import re
from urllib.parse import unquote

import frappe
from frappe import _

from dartwing_jobs.engine.quoting import is_one_of, quoted
from dartwing_jobs.messages import throw
from dartwing_jobs.tenancy import TENANT_DOCTYPES, is_unrestricted, query_conditions

JOB = "Background Job"
WRITING = ("create", "write")
SERVER = re.compile(r"^https?://[^/]*", re.IGNORECASE)
FILE_HOOK = "dartwing_jobs.references.may_use_file"

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
	if doc.doctype == "File" and not _may_use_address(doc.file_url, frappe.session.user):
		# only now Frappe has made of the address what it is going to open
		throw(_("You cannot use this file."), frappe.PermissionError)
	if doc.doctype == "File" and doc.attached_to_doctype in TENANT_DOCTYPES and doc.attached_to_field:
		# Frappe writes the file's address into that field whenever the file changes
		throw(_("A file cannot be attached to a field of {0}.").format(_(doc.attached_to_doctype)))


def check_links(doc, method: str | None = None) -> None:
	"""The same for a table of dynamic links, as contacts and addresses have it."""
	for link in doc.get("links") or []:
		_check_readable(link.link_doctype, link.link_name)


def refuse(doc, method: str | None = None) -> None:
	"""Refuses what would outlive the membership in an organization."""
	doctype = doc.get(REFUSED[doc.doctype])
	if doctype in TENANT_DOCTYPES:
		message = _("{0} is not possible for {1}: who sees it is decided by its organization.")
		throw(message.format(_(doc.doctype), _(doctype)), frappe.PermissionError)


def file_conditions(user: str | None = None, doctype: str | None = None) -> str:
	"""The hook permission_query_conditions for File: those of a job are found by whoever may see the job."""
	user = user or frappe.session.user
	if is_unrestricted(user):
		return ""
	kind, name, owner = (
		f"`tabFile`.`{column}`" for column in ("attached_to_doctype", "attached_to_name", "owner")
	)
	ours = is_one_of(kind, sorted(TENANT_DOCTYPES))
	jobs = f"select name from `tab{JOB}` where {query_conditions(user, JOB)}"
	of_a_job = f"({kind} = {quoted(JOB)} and {name} in ({jobs}))"
	own = f"({kind} <> {quoted(JOB)} and {owner} = {quoted(user)})"
	return f"({kind} is null or not {ours} or {of_a_job} or {own})"


def may_use_file(doc, ptype: str = "read", user: str | None = None, debug: bool = False) -> bool:
	"""The hook has_permission for File, which can only deny: files of our rows follow their row."""
	user = user or frappe.session.user
	if not _may_read(doc, user) or (ptype in WRITING and not _may_use_address(doc.file_url, user)):
		return False
	return _others_agree(doc, ptype, user)


def _others_agree(doc, ptype: str, user: str) -> bool:
	"""Frappe 15 takes the first app's answer for the last word: so ask those whom ours would silence."""
	for method in reversed(frappe.get_hooks("has_permission")["File"]):
		if method != FILE_HOOK:
			answer = frappe.call(method, doc=doc, ptype=ptype, user=user)
			if answer is not None:
				return bool(answer)
	return True


def _may_use_address(address: str | None, user: str) -> bool:
	"""Frappe lets anybody make a File of an address that they know, and opens it for them."""
	if not address or is_unrestricted(user):
		return True
	ours = {"file_url": ["in", _spellings(address)], "attached_to_doctype": ["in", sorted(TENANT_DOCTYPES)]}
	files = frappe.get_all("File", filters=ours, fields=["attached_to_doctype", "attached_to_name"])
	return not files or any(_may_read(file, user) for file in files)


def _spellings(address: str) -> list[str]:
	"""As it is written, and as it is opened: quotes, dots and the site's address change nothing.

	Any server's: Frappe takes the name by which a request calls the site for the site's own.
	"""
	return [address, posixpath.normpath(SERVER.sub("", unquote(address), count=1))]


def _may_read(file, user: str) -> bool:
	"""Whether this user may read what a file is attached to, if that is ours."""
	doctype, name = file.attached_to_doctype, file.attached_to_name
	if doctype not in TENANT_DOCTYPES or not name or is_unrestricted(user):
		return True
	is_there = frappe.db.exists(doctype, name)
	return bool(is_there) and frappe.has_permission(doctype, "read", doc=name, user=user)


def _check_readable(doctype: str | None, name: str | None) -> None:
	if doctype in TENANT_DOCTYPES and name:
		frappe.has_permission(doctype, "read", doc=name, throw=True)
