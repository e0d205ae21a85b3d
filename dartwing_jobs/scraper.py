"""Who may scrape the metrics: System Managers, and whoever shows the token of the site's configuration."""

import hmac

import frappe
from frappe import _

from dartwing_jobs import tenancy
from dartwing_jobs.messages import throw

METHOD = "dartwing_jobs.api.metrics.prometheus"
PATHS = frozenset(f"/api{version}/method/{METHOD}" for version in ("", "/v1", "/v2"))
# nobody's name: no roles, no rights
SCRAPER = "dartwing-metrics-scraper"


def admit() -> None:
	"""The hook auth_hooks: Frappe turns away a bearer that nobody knows."""
	if frappe.session.user not in ("", "Guest") or not _is_for_metrics() or _shown() is None:
		return
	if not shows_token():
		refuse()
	form = frappe.local.form_dict
	frappe.set_user(SCRAPER)
	frappe.local.form_dict = form  # what was sent goes with the user


def check() -> None:
	"""Raises unless this request may see the metrics."""
	if not (shows_token() or tenancy.is_unrestricted(frappe.session.user)):
		refuse()


def shows_token() -> bool:
	token, shown = frappe.conf.get("dartwing_metrics_token"), _shown()
	return bool(token and shown) and hmac.compare_digest(str(token).encode(), shown.encode())


def refuse() -> None:
	throw(_("Metrics are for System Managers and for those who have the token."), frappe.PermissionError)


def _is_for_metrics() -> bool:
	"""This one method, and no way to name another."""
	request = frappe.local.request
	return request.method == "GET" and request.path in PATHS and "cmd" not in frappe.local.form_dict


def _shown() -> str | None:
	request = getattr(frappe.local, "request", None)
	kind, _space, token = (request.headers.get("Authorization", "") if request else "").partition(" ")
	return token if kind.lower() == "bearer" and token else None
