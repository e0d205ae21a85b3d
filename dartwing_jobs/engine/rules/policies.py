"""What administrators have decided: categories, and pauses and limits of organizations and queues."""

import time
from collections.abc import Callable

import frappe

from dartwing_jobs.engine import statements
from dartwing_jobs.engine.rules.categories import DEFAULTS, GENERAL, STANDARD_CATEGORIES

CATEGORY = "Job Category"
COLUMNS = ("name", "job_queue", *DEFAULTS)
REMEMBER_SECONDS = 5
_known: dict[str, tuple[float, dict]] = {}
_known_limits: dict[str, tuple[float, dict[str, int]]] = {}


def category_of(job_type):
	"""The category of a job type, as a row; General for a type that is gone or has none."""
	return category((job_type and job_type.category) or GENERAL) or as_it_comes(GENERAL)


def category(name: str):
	"""A category as the site has it, or else as it comes; None when there is no such category."""
	return _rows().get(name) or (as_it_comes(name) if name in STANDARD_CATEGORIES else None)


def as_it_comes(name: str) -> frappe._dict:
	"""A standard category as a new site gets it."""
	return frappe._dict(DEFAULTS, name=name, **STANDARD_CATEGORIES[name])


def category_names() -> list[str]:
	return sorted(_rows().keys() | STANDARD_CATEGORIES.keys())


def forget() -> None:
	"""A category or a limit was changed here: the next question is answered anew."""
	_known.pop(frappe.local.site, None)
	_known_limits.pop(frappe.local.site, None)


def of_organizations() -> dict:
	"""Pauses and limits by organization, of those that have any: few do."""
	rows = statements.fetch(
		"""select organization, paused, pause_reason, max_running from `tabJob Organization Policy`
		where paused = 1 or max_running > 0"""
	)
	return {row.organization: row for row in rows}


def most_waiting_of(organization: str) -> int:
	"""How many jobs of an organization may wait; 0 when it does not matter."""
	return _limited_organizations().get(organization, 0)


def most_running_in(job_queue: str) -> int:
	rows = statements.fetch("select max_running from `tabJob Queue` where name = %s", (job_queue,))
	return rows[0].max_running if rows else 0


def _rows() -> dict:
	"""The site's categories; every submit asks, and administrators rarely change them."""

	def read() -> dict:
		columns = ", ".join(f"`{column}`" for column in COLUMNS)
		return {row.name: row for row in statements.fetch(f"select {columns} from `tab{CATEGORY}`")}

	return _remembered(_known, read)


def _limited_organizations() -> dict[str, int]:
	"""Most sites have a few of them, or none."""

	def read() -> dict:
		statement = "select organization, max_waiting from `tabJob Organization Policy` where max_waiting > 0"
		return {row.organization: row.max_waiting for row in statements.fetch(statement)}

	return _remembered(_known_limits, read)


def _remembered(known: dict, read: Callable[[], dict]) -> dict:
	looked_at, rows = known.get(frappe.local.site, (0.0, {}))
	if time.monotonic() - looked_at > REMEMBER_SECONDS:
		rows = read()
		known[frappe.local.site] = time.monotonic(), rows
	return rows
