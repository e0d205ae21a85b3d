"""Whitelisted methods of Frappe that answer without asking who may see: for our DocTypes they ask first.

Every other DocType, and every System Manager, gets Frappe's own answer.
"""

import json
from collections.abc import Callable

import frappe
from frappe import _, client
from frappe.desk import reportview, search

from dartwing_jobs.tenancy import TENANT_DOCTYPES, is_unrestricted


@frappe.whitelist()
def get_count(doctype: str, filters=None, debug=False, cache=False) -> int:
	"""Counts the rows that the user may see; Frappe's counts them all."""
	if doctype not in TENANT_DOCTYPES:
		return client.get_count(doctype, filters, debug, cache)
	frappe.local.form_dict = frappe._dict(doctype=doctype, filters=filters or {}, fields=[])
	return reportview.get_count()


@frappe.whitelist()
def validate_link(doctype: str, docname: str, fields=None) -> dict:
	"""Whether a name exists, for those who may read it; Frappe needs no more than read on the DocType."""
	if doctype in TENANT_DOCTYPES and not frappe.get_list(doctype, filters={"name": docname}, limit=1):
		return frappe._dict(name=None)
	return client.validate_link(doctype, docname, fields)


@frappe.whitelist()
def search_link(**arguments):
	return _search(search.search_link, arguments)


@frappe.whitelist()
def search_widget(**arguments):
	return _search(search.search_widget, arguments)


@frappe.whitelist()
def get_chart(**arguments):
	"""Heatmaps count without asking; the other charts ask."""
	if chart := arguments.get("chart_name"):
		text = frappe.get_doc("Dashboard Chart", chart).as_json()
	else:
		text = json.dumps(arguments, default=str)
	if "Heatmap" in text:
		_refuse_if_ours(text)
	return frappe.call("frappe.desk.doctype.dashboard_chart.dashboard_chart.get", **arguments)


@frappe.whitelist()
def add_attachments(**arguments):
	"""Hangs files on another document, whose readers may then open them: only what the user may read."""
	for file in frappe.parse_json(arguments.get("attachments") or "[]"):
		frappe.has_permission("File", "read", doc=file, throw=True)
	return frappe.call("frappe.utils.file_manager.add_attachments", **arguments)


def closed(path: str) -> Callable:
	"""A method that reads any table, or calls any other, as its caller says: closed where ours is named."""

	def ask_first(**arguments):
		_refuse_if_ours(json.dumps(arguments, default=str))
		return frappe.call(path, **arguments)

	return frappe.whitelist()(ask_first)


def about(path: str, doctype_argument: str, name_argument: str) -> Callable:
	"""A method about one document that does not ask whether it may be read."""

	def ask_first(**arguments):
		doctype, name = arguments.get(doctype_argument), arguments.get(name_argument)
		if doctype in TENANT_DOCTYPES:
			frappe.has_permission(doctype, "read", doc=name, throw=True)
		return frappe.call(path, **arguments)

	return frappe.whitelist()(ask_first)


get_all_nodes = closed("frappe.desk.treeview.get_all_nodes")
get_attached_images = closed("frappe.core.api.file.get_attached_images")
get_follow_users = closed("frappe.desk.form.document_follow.get_follow_users")
get_monthly_goal_graph_data = closed("frappe.utils.goal.get_monthly_goal_graph_data")
get_next = about("frappe.desk.form.utils.get_next", "doctype", "value")
get_tagged_docs = closed("frappe.desk.doctype.tag.tag.get_tagged_docs")
get_workflow_state_count = closed("frappe.workflow.doctype.workflow.workflow.get_workflow_state_count")
map_docs = closed("frappe.model.mapper.map_docs")
relink = closed("frappe.email.relink")
unlock_document = about("frappe.model.document.unlock_document", "doctype", "name")


def _search(method: Callable, arguments: dict):
	"""A link field may be told to ignore User Permissions; ours are not that kind of link."""
	if arguments.get("doctype") in TENANT_DOCTYPES:
		arguments["ignore_user_permissions"] = False
	return frappe.call(method, **arguments)


def _refuse_if_ours(text: str) -> None:
	if any(doctype in text for doctype in TENANT_DOCTYPES) and not is_unrestricted(frappe.session.user):
		frappe.throw(_("This cannot be asked about the jobs of an organization."), frappe.PermissionError)
