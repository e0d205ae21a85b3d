"""SQL functions for frappe.qb under Frappe's names."""

from pypika.functions import *  # noqa: F403
