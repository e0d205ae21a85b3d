"""How documents get their names."""

import re

import frappe
from frappe import _
from frappe.utils.data import cint, cstr, now_datetime

DATE_PARTS = {"YY": "%y", "MM": "%m", "DD": "%d", "YYYY": "%Y"}
COUNT = """insert into `tabSeries` (name, current) values (%s, 1)
	on conflict (name) do update set current = `tabSeries`.current + 1 returning current"""


def set_new_name(doc) -> None:
	doc.run_method("before_naming")
	if doc.meta.autoname != "Prompt" and not frappe.flags.in_import:
		doc.name = None
	if doc.meta.issingle:
		doc.name = doc.doctype
	if not doc.name:
		doc.run_method("autoname")
	doc.name = validate_name(doc.doctype, doc.name or _name_from_option(doc))


def _name_from_option(doc) -> str:
	kind, _colon, field = (doc.meta.autoname or "hash").partition(":")
	if kind == "field":
		return cstr(doc.get(field))
	if kind == "naming_series":
		options = doc.meta.get_field("naming_series").options.split("\n")
		doc.naming_series = doc.naming_series or next(filter(None, options))
		return make_autoname(doc.naming_series, doc=doc)
	if kind not in ("hash", "Prompt"):
		raise frappe.NotOfferedError(f"autoname: {kind}")
	return "" if kind == "Prompt" else make_autoname(kind)


def make_autoname(key: str, doctype: str = "", doc=None) -> str:
	if key == "hash":
		return frappe.generate_hash(length=10)
	return parse_naming_series(key if "#" in key else f"{key}.#####", doc=doc)


def parse_naming_series(parts: list[str] | str, doctype: str | None = None, doc=None) -> str:
	name = ""
	for part in parts.split(".") if isinstance(parts, str) else parts:
		if part.startswith("#"):
			name += str(frappe.db.sql(COUNT, (name,))[0][0]).zfill(len(part))
		elif part in DATE_PARTS:
			name += now_datetime().strftime(DATE_PARTS[part])
		elif doc and (part.startswith("{") or doc.get(part) is not None):
			name += cstr(doc.get(part.strip("{}"))).strip()
		else:
			name += part
	return name


def revert_series_if_last(key: str, name: str, doc=None) -> None:
	prefix = parse_naming_series(key.partition(".#")[0], doc=doc)
	query = "update `tabSeries` set current = current - 1 where name = %s and current = %s"
	frappe.db.sql(query, (prefix, cint(name.removeprefix(prefix))))


def validate_name(doctype: str, name: str) -> str:
	name = name.strip()
	is_taken = doctype == name and name != "DocType" and not frappe.get_meta(doctype).issingle
	if is_taken or not name or name.startswith(f"New {doctype}") or re.search("[<>]", name):
		exception = frappe.NameError if name else frappe.ValidationError
		frappe.throw(_('A {0} cannot be called "{1}"').format(doctype, name), exception)
	return name
