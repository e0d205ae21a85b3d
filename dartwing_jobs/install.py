"""What a site needs beyond DocTypes and fixtures: added when missing, never overwritten."""

import frappe

from dartwing_jobs.engine import job_numbers
from dartwing_jobs.engine.handling import declared
from dartwing_jobs.engine.rules import policies
from dartwing_jobs.engine.rules.categories import STANDARD_CATEGORIES
from dartwing_jobs.engine.rules.queues import STANDARD_QUEUES
from dartwing_jobs.engine.schedules import schedules

ORGANIZATION = {
	"doctype": "DocType",
	"name": "Organization",
	"module": "Dartwing Jobs",
	"custom": 1,
	"autoname": "field:organization_name",
	"naming_rule": "By fieldname",
	"allow_rename": 1,
	"fields": [
		{
			"fieldname": "organization_name",
			"fieldtype": "Data",
			"label": "Organization Name",
			"reqd": 1,
			"unique": 1,
			"in_list_view": 1,
		},
		{
			"fieldname": "status",
			"fieldtype": "Select",
			"label": "Status",
			"options": "Active\nInactive\nDissolved",
			"default": "Active",
			"reqd": 1,
			"in_list_view": 1,
			"in_standard_filter": 1,
		},
	],
	"permissions": [
		{"role": "System Manager", "read": 1, "write": 1, "create": 1, "delete": 1},
		{"role": "Dartwing Admin", "read": 1, "write": 0, "create": 0, "delete": 0},
		{"role": "Dartwing User", "read": 1, "write": 0, "create": 0, "delete": 0},
	],
}


def after_install() -> None:
	add_what_is_missing()


def after_app_install(app_name: str) -> None:
	"""Any app, this one too: whichever of the two comes second finds the other's handlers."""
	declared.sync()


def after_migrate() -> None:
	add_what_is_missing()
	declared.sync()
	schedules.announce_all()


def add_what_is_missing() -> None:
	create_organization_if_missing()
	job_numbers.keep()
	for queue in STANDARD_QUEUES:
		if not frappe.db.exists("Job Queue", queue["queue_name"]):
			frappe.get_doc({"doctype": "Job Queue", **queue}).insert(ignore_permissions=True)
	for name in STANDARD_CATEGORIES:
		if not frappe.db.exists(policies.CATEGORY, name):
			row = {"category_name": name, **policies.as_it_comes(name)}
			frappe.get_doc({"doctype": policies.CATEGORY, **row}).insert(ignore_permissions=True)


def create_organization_if_missing() -> None:
	"""A stand-alone site gets a minimal Organization; an app that brings its own simply takes it over."""
	if frappe.db.exists("DocType", "Organization"):
		return
	frappe.get_doc(ORGANIZATION).insert(ignore_permissions=True)
