"""Text that runs as a script wherever it is drawn as HTML, planted into every field that holds text."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import frappe
from frappe.utils import now_datetime

MODULE = "Dartwing Jobs"
TEXT_TYPES = frozenset({"Data", "Text", "Small Text", "Long Text", "Text Editor", "Code", "JSON", "Link"})
# breaks out of attributes, of tags, and of what removes tags that are closed; it says where it ran
PAYLOAD = """'"><img src onerror=ran(`{0}`)> &lt; <img src onerror=ran(`{0}`) """
SHORT_PAYLOAD = "<img src onerror=ran(1)>"
# Frappe refuses < and > in names, but no quotes
NAME = """x" onclick=ran(`{0}`) y='"""
# what the pages of a browser need to hear of it
RECORDER = "window.heard = []; window.ran = (where) => heard.push(String(where));"
LISTENERS = """() => [...document.querySelectorAll("body *")]
	.filter((element) => [...element.attributes].some((a) => /^on/.test(a.name) && /ran[(]/.test(a.value)))
	.map((element) => element.outerHTML.slice(0, 300))"""


def our_doctypes() -> list[str]:
	"""Organization is the site's own."""
	return frappe.get_all("DocType", filters={"module": MODULE, "custom": 0}, pluck="name", order_by="name")


def text_fields(doctype: str) -> list:
	return [field for field in frappe.get_meta(doctype).fields if field.fieldtype in TEXT_TYPES]


@contextmanager
def planted_everywhere(organization: str) -> Iterator[dict[str, str]]:
	"""One row of each DocType, past all checks, while the block lasts; yields their names."""
	kept = {doctype: _singles(doctype) for doctype in our_doctypes()}
	names = {doctype: plant(doctype, organization) for doctype in our_doctypes()}
	frappe.db.commit()
	try:
		yield names
	finally:
		frappe.db.rollback()
		for doctype, name in names.items():
			_take_away(doctype, name, kept[doctype])
		frappe.db.commit()
		frappe.clear_cache()


def plant(doctype: str, organization: str) -> str:
	meta = frappe.get_meta(doctype)
	if meta.issingle:
		_write_singles(doctype, {field.fieldname: planted_text(field) for field in text_fields(doctype)})
		return doctype
	name = organization if meta.autoname == "field:organization" else NAME.format(frappe.scrub(doctype))
	values = {field.fieldname: _value(field, organization) for field in meta.fields if _is_stored(field)}
	values |= {"name": name, "owner": "Administrator", "modified_by": "Administrator", "docstatus": 0}
	values |= {"creation": now_datetime(), "modified": now_datetime()}
	columns = ", ".join(f"`{column}`" for column in values)
	marks = ", ".join(["%s"] * len(values))
	frappe.db.sql(f"insert into `tab{doctype}` ({columns}) values ({marks})", list(values.values()))
	if meta.track_changes:
		_plant_version(doctype, name)
	return name


def planted_text(field) -> str:
	payload = PAYLOAD.format(f"{frappe.scrub(field.parent)}.{field.fieldname}")
	if field.fieldtype == "Link":
		return NAME.format(frappe.scrub(field.options))
	if field.fieldtype == "JSON" or (field.fieldtype == "Code" and field.options == "JSON"):
		return json.dumps({payload: payload})
	longest = field.length or (140 if field.fieldtype == "Data" else 1000)
	return payload if len(payload) <= longest else SHORT_PAYLOAD


def _plant_version(doctype: str, name: str) -> None:
	"""What Desk tells at the foot of a form: that every text was changed, from one to another."""
	changes = [[field.fieldname, planted_text(field), planted_text(field)] for field in text_fields(doctype)]
	version = {"doctype": "Version", "ref_doctype": doctype, "docname": name}
	frappe.get_doc({**version, "data": json.dumps({"changed": changes})}).insert(ignore_permissions=True)


def _take_away(doctype: str, name: str, singles: dict) -> None:
	if frappe.get_meta(doctype).issingle:
		_write_singles(doctype, singles)
		return
	frappe.db.delete(doctype, {"name": name})
	frappe.db.delete("Version", {"ref_doctype": doctype, "docname": name})


def _singles(doctype: str) -> dict:
	stored = frappe.db.get_singles_dict(doctype)
	names = [field.fieldname for field in text_fields(doctype)]
	return {name: stored[name] for name in names if stored.get(name) is not None}


def _write_singles(doctype: str, values: dict) -> None:
	for field in text_fields(doctype):
		frappe.db.delete("Singles", {"doctype": doctype, "field": field.fieldname})
	for fieldname, value in values.items():
		row = (doctype, fieldname, value)
		frappe.db.sql("insert into `tabSingles` (`doctype`, `field`, `value`) values (%s, %s, %s)", row)


def _is_stored(field) -> bool:
	return field.fieldtype in (*TEXT_TYPES, "Select", "Int", "Check", "Datetime", "Percent", "Float")


def _value(field, organization: str):
	if field.fieldname == "organization":
		return organization
	if field.fieldtype in TEXT_TYPES:
		return planted_text(field)
	if field.fieldtype == "Select":
		return field.default or next(filter(None, field.options.split("\n")))
	return now_datetime() if field.fieldtype == "Datetime" else 0
