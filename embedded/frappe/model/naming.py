"""How documents get their names."""

import base64
import re
import secrets
import time
from collections.abc import Callable
from typing import Any

import frappe
from frappe import _
from frappe.utils.data import cint, cstr, now_datetime

DATE_PARTS = {"YY": "%y", "MM": "%m", "DD": "%d", "YYYY": "%Y", "WW": "%V"}


def set_new_name(doc: Any) -> None:
	doc.run_method("before_naming")
	autoname = doc.meta.autoname or ""
	if autoname.lower() != "prompt" and not frappe.flags.in_import:
		doc.name = None
	if autoname == "autoincrement" and not doc.meta.issingle:
		doc.name = frappe.db.get_next_sequence_val(doc.doctype)
		return
	if doc.meta.issingle:
		doc.name = doc.doctype
	if not doc.name:
		doc.run_method("autoname")
	if not doc.name and autoname:
		_name_from_option(autoname, doc)
	doc.name = validate_name(doc.doctype, doc.name or make_autoname("hash", doc.doctype))


def _name_from_option(autoname: str, doc: Any) -> None:
	kind = autoname.lower()
	if kind.startswith("field:"):
		doc.name = cstr(doc.get(autoname[6:])).strip()
		if not doc.name:
			frappe.throw(_("{0} is needed").format(doc.meta.get_label(autoname[6:])))
	elif kind.startswith("naming_series:"):
		set_name_by_naming_series(doc)
	elif kind.startswith("prompt"):
		frappe.throw(_("Give the document a name"))
	elif kind.startswith("format:"):
		text = autoname.partition(":")[2]
		doc.name = re.sub(r"\{([^{}]+)\}", lambda match: parse_naming_series([match[1]], doc=doc), text)
	elif "#" in autoname:
		doc.name = make_autoname(autoname, doc=doc)


def set_name_by_naming_series(doc: Any) -> None:
	doc.naming_series = doc.naming_series or get_default_naming_series(doc.doctype)
	if not doc.naming_series:
		frappe.throw(_("A naming series is needed"))
	doc.name = make_autoname(f"{doc.naming_series}.#####", "", doc)


def get_default_naming_series(doctype: str) -> str | None:
	return next(filter(None, frappe.get_meta(doctype).get_naming_series_options()), None)


def make_autoname(key: str = "", doctype: str = "", doc: Any = "", *, ignore_validate: bool = False) -> str:
	if key == "hash":
		stamp = (int(time.time() * 10) % 32**4).to_bytes(5, "big")
		letters = (
			base64.b32hexencode(stamp).decode()[-4:]
			+ base64.b32hexencode(secrets.token_bytes(6)).decode()[:6]
		)
		return letters.lower()
	if not ignore_validate and not re.match(r"^[\w\- \/.#{}]+$", key, re.UNICODE):
		frappe.throw(_("The naming series {0} has characters that are not allowed").format(key))
	return parse_naming_series(key if "#" in key else f"{key}.#####", doctype, doc)


def parse_naming_series(
	parts: list[str] | str,
	doctype: str | None = None,
	doc: Any = None,
	number_generator: Callable[[str, int], str] | None = None,
) -> str:
	name, numbered, today = "", False, now_datetime()
	for part in filter(None, parts.split(".") if isinstance(parts, str) else parts):
		if part.startswith("#"):
			name += "" if numbered else (number_generator or getseries)(name, len(part))
			numbered = True
		else:
			name += _expanded(part, doc, today)
	return name


def _expanded(part: str, doc: Any, today: Any) -> str:
	if part in DATE_PARTS:
		return today.strftime(DATE_PARTS[part])
	if part == "timestamp":
		return str(today)
	missing = object()
	if doc and (part.startswith("{") or doc.get(part, missing) is not missing):
		value = doc.get(part.strip("{}"))
		return value if isinstance(value, str) else cstr(value).strip()
	return part


def getseries(key: str, digits: int) -> str:
	series = frappe.qb.DocType("Series")
	current = frappe.qb.from_(series).where(series.name == key).for_update().select("current").run()
	if current:
		frappe.db.sql("update `tabSeries` set current = current + 1 where name = %s", (key,))
		return str(current[0][0] + 1).zfill(digits)
	frappe.db.sql("insert into `tabSeries` (name, current) values (%s, 1)", (key,))
	return "1".zfill(digits)


def revert_series_if_last(key: str, name: str, doc: Any = None) -> None:
	prefix, hashes = key, ""
	if ".#" in key:
		prefix, hashes = key.rsplit(".", 1)
		if "#" not in hashes:
			name, prefix = name.replace(hashes, ""), re.sub("#+", "", prefix)
	prefix = parse_naming_series(prefix, doc=doc) if "." in prefix else prefix
	series = frappe.qb.DocType("Series")
	current = frappe.qb.from_(series).where(series.name == prefix).for_update().select("current").run()
	if current and current[0][0] == cint(name.replace(prefix, "")):
		frappe.db.sql("update `tabSeries` set current = current - 1 where name = %s", (prefix,))


def validate_name(doctype: str, name: Any) -> Any:
	if not name:
		frappe.throw(_("{0} has no name").format(doctype))
	if isinstance(name, int):
		frappe.throw(_("A name must be text"), frappe.NameError)
	if name.startswith(f"New {doctype}"):
		frappe.throw(_("{0} was not named").format(doctype), frappe.NameError)
	name = name.strip()
	if doctype == name and name != "DocType" and not frappe.get_meta(doctype).issingle:
		frappe.throw(_("A {0} cannot be called {1}").format(doctype, name), frappe.NameError)
	if re.search("[<>]", name):
		frappe.throw(_("A name cannot contain < or >"), frappe.NameError)
	return name


def append_number_if_name_exists(
	doctype: str, value: str, fieldname: str = "name", separator: str = "-", filters: dict | None = None
) -> str:
	if not frappe.db.exists(doctype, {**(filters or {}), fieldname: value}):
		return value
	last = frappe.db.sql(
		f"""select "{fieldname}" from `tab{doctype}` where "{fieldname}" ~ %s
		order by length("{fieldname}") desc, "{fieldname}" desc limit 1""",
		f"^{re.escape(value)}{separator}\\d+$",
	)
	return f"{value}{separator}{cint(last[0][0].rsplit(separator, 1)[1]) + 1 if last else 1}"
