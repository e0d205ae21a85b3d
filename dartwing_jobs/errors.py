"""What goes wrong, as classes: callers tell errors apart by class, never by text."""

import frappe


class InvalidJobError(frappe.ValidationError):
	"""What was submitted cannot become a job, or not this way."""


class FrozenFieldError(frappe.ValidationError):
	"""Somebody tried to change what only the engine changes."""


class EngineOwnedError(frappe.ValidationError):
	"""Somebody tried to write, change or delete a record that only the engine writes."""
