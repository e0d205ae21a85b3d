"""The attribute dictionary that Frappe returns rows and settings in."""

from frappe.types.frappedict import _dict

__all__ = ["_dict"]
