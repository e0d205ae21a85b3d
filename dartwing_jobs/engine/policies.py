"""What administrators have decided about kinds of work: the site's categories."""

import time

import frappe

from dartwing_jobs.engine import statements
from dartwing_jobs.engine.categories import DEFAULTS, GENERAL, STANDARD_CATEGORIES

CATEGORY = "Job Category"
COLUMNS = ("name", "job_queue", *DEFAULTS)
REMEMBER_SECONDS = 5
_known: dict[str, tuple[float, dict]] = {}


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
	"""A category was changed here: the next question is answered anew."""
	_known.pop(frappe.local.site, None)


def _rows() -> dict:
	"""Remembered for a few seconds: every submit asks, and administrators rarely change them."""
	looked_at, rows = _known.get(frappe.local.site, (0.0, {}))
	if time.monotonic() - looked_at > REMEMBER_SECONDS:
		columns = ", ".join(f"`{column}`" for column in COLUMNS)
		rows = {row.name: row for row in statements.fetch(f"select {columns} from `tab{CATEGORY}`")}
		_known[frappe.local.site] = time.monotonic(), rows
	return rows
