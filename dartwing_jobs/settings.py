"""Reads Job Engine Settings; a value that was never saved is its field's default."""

import frappe
from frappe.utils import cint

DOCTYPE = "Job Engine Settings"


def is_online() -> bool:
	return bool(_number("online"))


def max_parameter_bytes() -> int:
	return _number("max_parameter_bytes")


def _number(fieldname: str) -> int:
	value = frappe.get_cached_doc(DOCTYPE).get(fieldname)
	return cint(frappe.get_meta(DOCTYPE).get_field(fieldname).default if value is None else value)
