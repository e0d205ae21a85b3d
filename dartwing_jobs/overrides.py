"""Whitelisted methods of Frappe that answer without asking who may see: for our DocTypes they ask first.

Every other DocType, and every System Manager, gets Frappe's own answer.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import frappe
from frappe import _, client
from frappe.desk import reportview, search

from dartwing_jobs.engine import statements
from dartwing_jobs.messages import throw
from dartwing_jobs.tenancy import TENANT_DOCTYPES, is_unrestricted

# a DocType's table, in the name of a column
TABLE = re.compile(r"`tab([^`]+)`")
# where a chart names tables
CHARTED = ("document_type", "filters_json", "based_on", "value_based_on")
WORD_JOINER = "\u2060"
# as many as Frappe answers with
MOST_ASSIGNED = 50


@frappe.whitelist()
def get_count(doctype: str, filters=None, debug=False, cache=False) -> int:
	"""Counts the rows that the user may see; Frappe's counts them all."""
	if doctype not in TENANT_DOCTYPES:
		return client.get_count(doctype, filters, debug, cache)
	frappe.local.form_dict = frappe._dict(doctype=doctype, filters=filters or {}, fields=[])
	return reportview.get_count()


@frappe.whitelist()
def get_group_by_count(doctype: str, current_filters: str, field: str) -> list[dict]:
	"""Frappe counts by assignment whatever the rows are; by any other field it asks."""
	is_asked_about_ours = field == "assigned_to" and doctype in TENANT_DOCTYPES
	if is_asked_about_ours and not is_unrestricted(frappe.session.user):
		return _count_assigned(doctype, frappe.parse_json(current_filters or "[]"))
	path = "frappe.desk.listview.get_group_by_count"
	return frappe.call(path, doctype=doctype, current_filters=current_filters, field=field)


def _count_assigned(doctype: str, filters: list) -> list[dict]:
	"""Of the rows that the user may see, how many are whose to do."""
	if not isinstance(filters, list):
		_refuse()
	assigned = {"reference_type": doctype, "status": ["!=", "Cancelled"]}
	tasks = frappe.get_all("ToDo", assigned, ["reference_name", "allocated_to"])
	among = [doctype, "name", "in", sorted({task.reference_name for task in tasks if task.reference_name})]
	seen = (
		frappe.get_list(doctype, filters=[*filters, among], pluck="name", limit=len(tasks)) if tasks else []
	)
	counted = Counter(task.allocated_to for task in tasks if task.reference_name in {*seen})
	return [{"name": user, "count": number} for user, number in counted.most_common(MOST_ASSIGNED)]


@frappe.whitelist()
def validate_link(doctype: str, docname: str, fields=None) -> dict:
	"""Whether a name exists, for those who may read it; Frappe needs no more than read on the DocType."""
	if doctype in TENANT_DOCTYPES and not frappe.get_list(doctype, filters={"name": docname}, limit=1):
		return frappe._dict(name=None)
	return client.validate_link(doctype, docname, fields)


@frappe.whitelist()
def validate_link_and_fetch(**arguments):
	"""What newer releases have instead."""
	return frappe.call(client.validate_link_and_fetch, **_within_permissions(arguments))


@frappe.whitelist()
def search_link(**arguments):
	return _search(search.search_link, arguments)


@frappe.whitelist()
def search_widget(**arguments):
	return _search(search.search_widget, arguments)


@frappe.whitelist()
def get_chart(**arguments):
	"""Heatmaps count without asking. Other charts ask, but what one user was shown is kept for all."""
	ours = [chart for chart in _charts(frappe._dict(arguments)) if _is_about_ours(chart, arguments)]
	if any(chart.type == "Heatmap" for chart in ours) and not is_unrestricted(frappe.session.user):
		_refuse()
	arguments |= {"refresh": 1} if ours else {}
	answer = frappe.call("frappe.desk.doctype.dashboard_chart.dashboard_chart.get", **arguments)
	return _with_plain_labels(answer) if ours else answer


def _is_about_ours(chart, arguments: dict) -> bool:
	texts = list(_texts([chart.get(field) for field in CHARTED] + [arguments.get("filters")]))
	return _is_ours([*texts, *(table for text in texts for table in TABLE.findall(text))])


def _with_plain_labels(answer):
	"""Desk draws the labels of a chart as HTML."""
	if not isinstance(answer, dict) or not isinstance(answer.get("labels"), list):
		return answer
	return {**answer, "labels": list(map(_untagged, answer["labels"]))}


def _charts(arguments: dict) -> list:
	"""The chart as it is sent, and the stored one under whose name results are kept."""
	sent = frappe._dict(frappe.parse_json(arguments.chart) or {})
	name = str(arguments.chart_name or sent.name)
	stored = frappe.db.exists("Dashboard Chart", name) and frappe.get_doc("Dashboard Chart", name)
	return [sent, stored] if stored else [sent]


@frappe.whitelist()
def add_attachments(**arguments):
	"""Hangs files on another document, whose readers may then open them: only what the user may read."""
	for file in frappe.parse_json(arguments.get("attachments") or "[]"):
		frappe.has_permission("File", "read", doc=file, throw=True)
	return frappe.call("frappe.utils.file_manager.add_attachments", **arguments)


@frappe.whitelist()
def relink(**arguments):
	"""Moves a mail to another document: neither to one of ours nor away from it."""
	now_at = frappe.db.get_value("Communication", arguments.get("name"), "reference_doctype")
	_refuse_if_ours(_texts([now_at, arguments.get("reference_doctype")]))
	return frappe.call("frappe.email.relink", **arguments)


@frappe.whitelist()
def unlock_document(doctype: str | None = None, name: str | None = None, args: str | None = None):
	if args and not doctype and not name:  # as older clients say it
		given = frappe.parse_json(args)
		doctype, name = given.get("doctype"), given.get("name")
	_check_readable(doctype, name)
	return frappe.call("frappe.model.document.unlock_document", doctype=doctype, name=name)


def closed(path: str, *doctype_arguments: str) -> Callable:
	"""A method that reads any table of which these arguments give the name: closed for ours."""

	def ask_first(**arguments):
		_refuse_if_ours(_texts([arguments.get(name) for name in doctype_arguments]))
		return frappe.call(path, **arguments)

	return frappe.whitelist()(ask_first)


def calling(path: str, method_argument: str) -> Callable:
	"""A method that calls any other as its caller says: closed where ours is named, and it calls no other
	than its caller could."""

	def ask_first(**arguments):
		_refuse_if_ours(_texts(arguments))
		method = str(arguments.get(method_argument))
		last_word = frappe.get_hooks("override_whitelisted_methods").get(method, [method])[-1]
		return frappe.call(path, **arguments | {method_argument: last_word})

	return frappe.whitelist()(ask_first)


def about(path: str, doctype_argument: str, name_argument: str) -> Callable:
	"""A method about one document that does not ask whether it may be read."""

	def ask_first(**arguments):
		_check_readable(arguments.get(doctype_argument), arguments.get(name_argument))
		return frappe.call(path, **arguments)

	return frappe.whitelist()(ask_first)


get_all_nodes = calling("frappe.desk.treeview.get_all_nodes", "tree_method")
get_attached_images = closed("frappe.core.api.file.get_attached_images", "doctype")
get_follow_users = closed("frappe.desk.form.document_follow.get_follow_users", "doctype")
get_monthly_goal_graph_data = closed(
	"frappe.utils.goal.get_monthly_goal_graph_data", "doctype", "goal_doctype"
)
get_next = about("frappe.desk.form.utils.get_next", "doctype", "value")
get_tagged_docs = closed("frappe.desk.doctype.tag.tag.get_tagged_docs", "doctype")
get_workflow_state_count = closed(
	"frappe.workflow.doctype.workflow.workflow.get_workflow_state_count", "doctype"
)
map_docs = calling("frappe.model.mapper.map_docs", "method")


def _search(method: Callable, arguments: dict):
	found = frappe.call(method, **_within_permissions(arguments))
	return list(map(_as_text, found)) if arguments.get("doctype") in TENANT_DOCTYPES else found


def _within_permissions(arguments: dict) -> dict:
	"""A link field may be told to ignore User Permissions; ours are not that kind of link."""
	is_ours = arguments.get("doctype") in TENANT_DOCTYPES
	return arguments | {"ignore_user_permissions": False} if is_ours else arguments


def _check_readable(doctype: str | None, name: str | None) -> None:
	if doctype in TENANT_DOCTYPES:
		frappe.has_permission(doctype, "read", doc=name, throw=True)


def _texts(value: object) -> Iterator[str]:
	"""Every text in what a caller says, and in the JSON that a text is: a method may read it at any depth."""
	unread = [value]
	while unread:
		one = unread.pop()
		if isinstance(one, dict):
			unread += [*one.keys(), *one.values()]
		elif isinstance(one, list | tuple):
			unread += one
		elif isinstance(one, str):
			yield one
			unread += _parsed(one)


def _parsed(text: str) -> list:
	try:
		return [json.loads(text)]
	except (ValueError, RecursionError):
		return []


def _refuse_if_ours(texts: Iterable[str]) -> None:
	if not is_unrestricted(frappe.session.user) and _is_ours(texts):
		_refuse()


def _refuse() -> None:
	throw(_("This cannot be asked about the jobs of an organization."), frappe.PermissionError)


def _is_ours(texts: Iterable[str]) -> bool:
	"""Whether one of the texts is the name of a DocType of ours, as the database compares names."""
	names = {_storable(text) for text in texts}
	places = ", ".join(["%s"] * len(names)) or "null"
	found = statements.fetch(f"select name from `tabDocType` where name in ({places})", [*names])
	return not TENANT_DOCTYPES.isdisjoint(row.name for row in found)


def _storable(text: str) -> str:
	"""Without what databases refuse, or pass over when they compare."""
	return text.encode(errors="ignore").decode().replace("\0", "")


def _as_text(found):
	"""Desk of v15 draws what is found as HTML. The name comes first: a click gives it to the field."""
	if isinstance(found, dict):
		return {key: value if key in ("name", "value") else _untagged(value) for key, value in found.items()}
	return [found[0], *map(_untagged, found[1:])]


def _untagged(value):
	"""Not escaped: v16 does that itself. No tag begins with a word joiner, which has no width."""
	return value.replace("<", f"<{WORD_JOINER}") if isinstance(value, str) else value
