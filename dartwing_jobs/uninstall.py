"""What goes with the app: Frappe drops its tables and leaves what the rest of the site says about them.

`bench uninstall-app --dry-run` calls both hooks as well. So what comes before changes rows and commits
nothing, and what comes after undoes that while the app is still there.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import frappe

from dartwing_jobs.engine import bell
from dartwing_jobs.tenancy import ADMIN_ROLE, ORGANIZATION, USER_ROLE

APP, MODULE, JOB = "dartwing_jobs", "Dartwing Jobs", "Background Job"
ROLES = (ADMIN_ROLE, USER_ROLE)
DOCTYPE_FILES = "dartwing_jobs/doctype/*/*.json"
# where Frappe keeps custom DocTypes that belong to no app
NO_APPS_MODULE = "Custom"

# rows that are nothing without the document or the DocType that they are about; all others lose the reference
GO = frozenset(
	{
		"Amended Document Naming Settings",
		"Assignment Rule",
		"Auto Repeat",
		"Calendar View",
		"Client Script",
		"Comment",
		"Communication Link",
		"Custom Field",
		"Custom Role",
		"Dashboard Chart",
		"Data Import",
		"Deleted Document",
		"Discussion Topic",
		"DocShare",
		"DocType Layout",
		"DocType Link",
		"Document Follow",
		"Document Naming Rule",
		"Document Share Key",
		"Dynamic Link",
		"Email Unsubscribe",
		"Energy Point Log",
		"Energy Point Rule",
		"Event Participants",
		"File",
		"Form Tour",
		"Global Search DocType",
		"Kanban Board",
		"List Filter",
		"Logs To Clear",
		"Milestone",
		"Milestone Tracker",
		"Notification",
		"Notification Log",
		"Notification Subscribed Document",
		"Number Card",
		"Permission Type",
		"Print Format",
		"Print Format Field Template",
		"Property Setter",
		"Reminder",
		"Report",
		"Server Script",
		"Session Default",
		"Submission Queue",
		"Success Action",
		"Tag Link",
		"ToDo",
		"User Document Type",
		"User Permission",
		"User Select Document Type",
		"Version",
		"View Log",
		"Web Form",
		"Webhook",
		"Workflow",
		"Workflow Action",
		"Workspace Link",
		"Workspace Quick List",
		"Workspace Shortcut",
		"Workspace Sidebar Item",
	}
)
# fields that hold the name of a DocType as a text
TEXTS = ("%doctype%", "document_type")
# columns that hold a DocType and are no fields
COLUMNS = {"tabCustom DocPerm": "parent", "tabList View Settings": "name", "__Auth": "doctype"}
COLUMNS |= {"__UserSettings": "doctype", "__global_search": "doctype", "tabSingles": "doctype"}
# rows that name a function or a module of ours
METHODS = {"Error Log": "method", "Patch Log": "patch", "Scheduled Job Type": "method"}


class Reference(NamedTuple):
	"""A field that holds the name of a DocType, and the one beside it with the name of a document."""

	doctype: str
	kind: str
	name: str | None


def before_uninstall() -> None:
	"""Frappe is about to delete each DocType of our module."""
	module = frappe.db.get_value("DocType", {"name": ORGANIZATION, "custom": 1}, "module")
	if module == MODULE and is_linked_by_others(ORGANIZATION):
		frappe.db.set_value("DocType", ORGANIZATION, "module", NO_APPS_MODULE)


def after_uninstall() -> None:
	if frappe.db.exists("DocType", JOB):  # a dry run
		frappe.db.rollback()
		return
	gone = doctypes_that_are_gone()
	remove_scheduled_jobs()
	remove_references(gone)
	remove_sidebars(gone)
	for role in ROLES:
		remove_role_if_unused(role)
	frappe.db.commit()  # nosemgrep: the uninstaller has committed already and does not do so again
	remove_files(gone)
	bell.leave_the_bench()
	frappe.clear_cache()


def our_doctypes() -> list[str]:
	return sorted(json.loads(file.read_text())["name"] for file in Path(__file__).parent.glob(DOCTYPE_FILES))


def doctypes_that_are_gone() -> list[str]:
	return [name for name in (*our_doctypes(), ORGANIZATION) if not frappe.db.exists("DocType", name)]


def is_linked_by_others(doctype: str) -> bool:
	linking = {field.parent for field in _fields(options=doctype)}
	return not linking.issubset(our_doctypes())


def remove_scheduled_jobs() -> None:
	ours = frappe.get_all("Scheduled Job Type", {"method": ["like", f"{APP}.%"]}, pluck="name")
	if ours and frappe.db.table_exists("Scheduled Job Log"):
		frappe.db.delete("Scheduled Job Log", {"scheduled_job_type": ["in", ours]})
	for doctype, field in METHODS.items():
		frappe.db.delete(doctype, {field: ["like", f"{APP}.%"]})


def remove_sidebars(gone: list[str]) -> None:
	"""Of Desk in v16. Frappe has taken the links from their items already; what is left are labels."""
	if not frappe.db.table_exists("Workspace Sidebar"):
		return
	ours = frappe.get_all("Workspace Sidebar", {"app": APP}, pluck="name")
	frappe.db.delete("Workspace Sidebar Item", {"parent": ["in", ours]})
	frappe.db.delete("Workspace Sidebar", {"name": ["in", ours]})
	frappe.db.sql(
		"delete from `tabWorkspace Sidebar Item` where coalesce(link_to, '') = '' and label in %s",
		(tuple(gone),),
	)


def remove_references(gone: list[str]) -> None:
	remove_prepared_reports(gone)
	for reference in references():
		if frappe.db.get_value("DocType", reference.doctype, "issingle"):
			value = {"field": reference.kind, "value": ["in", gone]}
			frappe.db.delete("Singles", {"doctype": reference.doctype, **value})
		elif reference.doctype != "File" and _has_columns(reference.doctype, reference.kind, reference.name):
			_remove_or_clear(reference, {reference.kind: ["in", gone]})
			if reference.name:  # what is about the DocType itself
				_remove_or_clear(reference, {reference.kind: "DocType", reference.name: ["in", gone]})
	for table, column in COLUMNS.items():
		if _is_there(table):
			frappe.db.sql(f"delete from `{table}` where `{column}` in %s", (tuple(gone),))


def references() -> Iterator[Reference]:
	"""Every field of any DocType of the site, other apps' too, that names a DocType."""
	names = {(field.parent, field.options): field.fieldname for field in _fields(fieldtype="Dynamic Link")}
	links = _fields(fieldtype="Link", options="DocType")
	texts = [field for like in TEXTS for field in _fields(fieldtype="Data", fieldname=["like", like])]
	kinds = {(field.parent, field.fieldname) for field in (*links, *texts)}
	for doctype, kind in sorted(kinds | names.keys()):
		yield Reference(doctype, kind, names.get((doctype, kind)))


def _remove_or_clear(reference: Reference, whose: dict) -> None:
	if reference.doctype in GO:
		_remove(reference.doctype, whose)
	else:
		cleared = {reference.kind: None} | ({reference.name: None} if reference.name else {})
		frappe.db.set_value(reference.doctype, whose, cleared, update_modified=False)


def _remove(doctype: str, whose: dict) -> None:
	"""Rows, with what their own tables hold."""
	tables = [field.options for field in frappe.get_meta(doctype).get_table_fields()]
	names = frappe.get_all(doctype, whose, pluck="name") if tables else []
	for table in tables if names else []:
		frappe.db.delete(table, {"parenttype": doctype, "parent": ["in", names]})
	frappe.db.delete(doctype, whose)


def remove_prepared_reports(gone: list[str]) -> None:
	"""What reports on our DocTypes have shown: each is a file."""
	if not frappe.db.table_exists("Report"):
		return
	reports = frappe.get_all("Report", {"ref_doctype": ["in", gone]}, pluck="name")
	prepared = reports and frappe.get_all("Prepared Report", {"report_name": ["in", reports]}, pluck="name")
	for name in prepared or []:
		frappe.delete_doc("Prepared Report", name, force=True, delete_permanently=True)


def remove_role_if_unused(role: str) -> None:
	"""With those who have it, unless something beside our DocTypes asks for it."""
	if not any(
		_asks_for(role, field.parent, field.fieldname) for field in _fields(fieldtype="Link", options="Role")
	):
		frappe.db.delete("Has Role", {"role": role})
		frappe.db.delete("Role", {"name": role})


def _asks_for(role: str, doctype: str, field: str) -> bool:
	holders = {"parenttype": ["not in", ["User", "Role Profile"]]} if doctype == "Has Role" else {}
	if frappe.db.get_value("DocType", doctype, "issingle"):
		return bool(frappe.db.exists("Singles", {"doctype": doctype, "field": field, "value": role}))
	return _has_columns(doctype, field) and bool(frappe.db.exists(doctype, {field: role, **holders}))


def remove_files(gone: list[str]) -> None:
	"""Rows, and what is on disk unless another row needs it; each for good, as a disk knows no rollback."""
	for name in frappe.get_all("File", {"attached_to_doctype": ["in", gone]}, pluck="name"):
		file = frappe.get_doc("File", name)
		file.attached_to_doctype = file.attached_to_name = None  # there is nothing left to comment on
		file.run_method("on_trash")
		frappe.db.delete("File", {"name": name})
		frappe.db.commit()  # nosemgrep: see above


def _fields(**wanted) -> list:
	"""Fields of all DocTypes of the site, standard and custom ones."""
	columns = ["fieldname", "options"]
	found = frappe.get_all("DocField", wanted, ["parent", *columns])
	if frappe.db.table_exists("Custom Field"):
		found += frappe.get_all("Custom Field", wanted, ["dt as parent", *columns])
	return found


def _has_columns(doctype: str, *columns: str | None) -> bool:
	"""Some DocTypes have no table, and some fields no column yet."""
	there = frappe.db.get_table_columns(doctype) if frappe.db.table_exists(doctype) else []
	return {column for column in columns if column}.issubset(there)


def _is_there(table: str) -> bool:
	schema = "database()" if frappe.db.db_type == "mariadb" else "current_schema()"
	return bool(
		frappe.db.sql(
			f"select 1 from information_schema.tables where table_schema = {schema} and table_name = %s",
			(table,),
		)
	)
