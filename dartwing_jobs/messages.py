"""What is said to people. Desk draws messages as HTML: here, and nowhere else, they become text."""

import html
from typing import NoReturn

import frappe


def throw(message: str, error: type[Exception] = frappe.ValidationError) -> NoReturn:
	"""Raises an error that says this. What is drawn of it is escaped; who catches it reads it as it is."""
	try:
		frappe.throw(html.escape(message), error)
	except error as refusal:
		refusal.args = (message,)
		raise


def tell(message: str, **look) -> None:
	"""Says this to the user, beside the answer."""
	frappe.msgprint(html.escape(message), **look)
