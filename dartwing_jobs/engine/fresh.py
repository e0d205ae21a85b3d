"""A clean Frappe for each job in a process that runs many: nothing of the one before is left."""

from collections.abc import Iterator
from contextlib import contextmanager

import frappe


@contextmanager
def fresh_frappe(user: str) -> Iterator[None]:
	"""New flags, messages, caches and user, on the connection that is open already."""
	_renew(user)
	try:
		yield
	finally:
		_renew("Administrator")


def _renew(user: str) -> None:
	site, db = frappe.local.site, frappe.local.db
	db.rollback()  # and with it every callback that a handler left behind
	db.value_cache.clear()
	frappe.init(site, force=True)
	frappe.local.db = db
	frappe.set_user(user)
