"""Every door through which somebody could create a job or set its status. Each swallows the refusal: tests
look at what is stored afterwards."""

import csv
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import frappe

from dartwing_jobs.tests.browser import Browser

LABELS = {
	"name": "ID",
	"job_type": "Job Type",
	"organization": "Organization",
	"status": "Status",
	"priority": "Priority",
	"request_id": "Request ID",
}


def save(browser: Browser, field: str, edits: list[tuple[str, str]]) -> None:
	for job_name, value in edits:
		job = frappe.get_doc("Background Job", job_name)
		job.set(field, value)
		attempt(browser.user, job.save)


def save_without_validation(browser: Browser, field: str, edits: list[tuple[str, str]]) -> None:
	for job_name, value in edits:
		job = frappe.get_doc("Background Job", job_name)
		job.set(field, value)
		job.flags.ignore_validate = True
		job.flags.ignore_permissions = True
		attempt(browser.user, job.save)


def db_set(browser: Browser, field: str, edits: list[tuple[str, str]]) -> None:
	for job_name, value in edits:
		job = frappe.get_doc("Background Job", job_name)
		attempt(browser.user, lambda job=job, value=value: job.db_set(field, value))


def resource(browser: Browser, field: str, edits: list[tuple[str, str]]) -> None:
	for job_name, value in edits:
		browser.put(f"/api/resource/Background Job/{quote(job_name)}", **{field: value})


def client_set_value(browser: Browser, field: str, edits: list[tuple[str, str]]) -> None:
	for job_name, value in edits:
		arguments = {"doctype": "Background Job", "name": job_name, "fieldname": field, "value": value}
		browser.call("frappe.client.set_value", **arguments)


def bulk_edit(browser: Browser, field: str, edits: list[tuple[str, str]]) -> None:
	method = "frappe.desk.doctype.bulk_update.bulk_update.submit_cancel_or_update_docs"
	for job_name, value in edits:
		arguments = {"doctype": "Background Job", "docnames": [job_name], "data": {field: value}}
		browser.call(method, action="update", **arguments)


def data_import(browser: Browser, field: str, edits: list[tuple[str, str]]) -> None:
	run_import(browser.user, "Update Existing Records", ["name", field], edits)


EDIT_DOORS_WITH_PERMISSIONS = [save, resource, client_set_value, bulk_edit, data_import]
EDIT_DOORS = [*EDIT_DOORS_WITH_PERMISSIONS, save_without_validation, db_set]


def insert(browser: Browser, jobs: list[dict]) -> None:
	for job in jobs:
		attempt(browser.user, lambda job=job: frappe.get_doc({"doctype": "Background Job", **job}).insert())


def resource_post(browser: Browser, jobs: list[dict]) -> None:
	for job in jobs:
		browser.post("/api/resource/Background Job", **job)


def client_insert(browser: Browser, jobs: list[dict]) -> None:
	for job in jobs:
		browser.call("frappe.client.insert", doc={"doctype": "Background Job", **job})


def import_insert(browser: Browser, jobs: list[dict]) -> None:
	fields = list(jobs[0])
	run_import(browser.user, "Insert New Records", fields, [[job[field] for field in fields] for job in jobs])


CREATE_DOORS = [insert, resource_post, client_insert, import_insert]


def attempt(user: str, action: Callable[[], object]) -> None:
	"""Does it as that user, and keeps what was allowed."""
	frappe.set_user(user)
	try:
		action()
		frappe.db.commit()
	except Exception:
		frappe.db.rollback()
	finally:
		frappe.set_user("Administrator")


def run_import(user: str, import_type: str, fields: list[str], rows: list) -> None:
	from frappe.core.doctype.data_import.importer import Importer

	with tempfile.TemporaryDirectory() as folder:
		path = Path(folder) / "rows.csv"
		with path.open("w", newline="") as file:
			csv.writer(file).writerows([[LABELS[field] for field in fields], *rows])
		# console: the importer then reads a path instead of an uploaded File
		importer = Importer("Background Job", file_path=str(path), import_type=import_type, console=True)
		# an import of its own: Frappe skips what the log says of another one without a name
		importer.data_import.name = frappe.generate_hash(length=10)
		attempt(user, importer.import_data)


def echo(**arguments) -> dict:
	"""A method that shows what it was called with."""
	return arguments
