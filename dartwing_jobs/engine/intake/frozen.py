"""What is frozen in a job: it starts as Pending and empty, and later only a few fields may be edited."""

import json
from functools import lru_cache

import frappe
from frappe import _
from frappe.utils import cint, flt, get_datetime

from dartwing_jobs.document import checked
from dartwing_jobs.engine import states
from dartwing_jobs.engine.rules import priorities
from dartwing_jobs.errors import FrozenFieldError
from dartwing_jobs.messages import throw

# while the job waits; everything else never
EDITABLE_WHILE_WAITING = frozenset({"priority", "scheduled_for", "max_retries", "timeout_seconds"})
BOOKKEEPING = frozenset({"modified", "modified_by", "idx"})
STANDARD = ("owner", "creation", "docstatus")
# forms show these read-only too, but the controller fills them in at insert
FILLED_AT_INSERT = frozenset(
	{"status", "created_at", "created_utc", "scheduled_utc", "job_hash", "run_at", "input_checksums"}
)
# the controller's own answer to an edit of another field
FOLLOWING = frozenset({"scheduled_utc"})


def check_new(job) -> None:
	"""Jobs are born Pending, with nothing that only the engine can know."""
	if job.status != states.PENDING:
		message = _("A new job is {0}; it cannot be created as {1}.").format(states.PENDING, job.status)
		throw(message, FrozenFieldError)
	for fieldname, field in shipped_fields().items():
		if field.get("read_only") and fieldname not in FILLED_AT_INSERT and job.get(fieldname):
			message = _("{0} is set by the engine; leave it out when you create a job.")
			throw(message.format(_(field["label"])), FrozenFieldError)


def check_changes(job) -> None:
	"""Compares a job that is about to be written with the stored one."""
	_check(job, [field for field in _guarded_fields() if field not in FOLLOWING and _differs(job, field)])


def check_db_set(job, values: dict) -> None:
	changed = [field for field in values if field not in BOOKKEEPING and field in _guarded_fields()]
	_check(job, changed)
	for fieldname in changed:
		checked(values[fieldname], job.meta.get_field(fieldname), fieldname)
	if "priority" in values and values["priority"] not in priorities.ALL:
		throw(_("Priority must be one of {0}.").format(", ".join(priorities.ALL)), FrozenFieldError)


def _check(job, changed: list[str]) -> None:
	if frozen := sorted(set(changed) - EDITABLE_WHILE_WAITING):
		message = _("Job {0} has been submitted: {1} cannot be edited any more.")
		throw(message.format(job.name, ", ".join(frozen)), FrozenFieldError)
	status = frappe.db.get_value("Background Job", job.name, "status")
	if changed and status not in states.WAITING:
		message = _("Job {0} is {1}: {2} can be edited only while it waits.")
		throw(message.format(job.name, status, ", ".join(sorted(changed))), FrozenFieldError)


@lru_cache
def shipped_fields() -> dict[str, dict]:
	"""The fields as the app ships them: a site can change the meta, but not what is frozen.

	What a site adds as custom fields is not among them: those are the site's.
	"""
	path = frappe.get_module_path("Dartwing Jobs", "doctype", "background_job", "background_job.json")
	with open(path) as file:
		fields = json.load(file)["fields"]
	return {
		field["fieldname"]: frappe._dict(field)
		for field in fields
		if not field["fieldtype"].endswith("Break")
	}


def _guarded_fields() -> list[str]:
	return [*STANDARD, *shipped_fields()]


def _differs(job, fieldname: str) -> bool:
	stored = job.get_doc_before_save() or frappe.get_doc("Background Job", job.name)
	fieldtype = shipped_fields().get(fieldname, {}).get("fieldtype", "Data")
	return _comparable(job.get(fieldname), fieldtype) != _comparable(stored.get(fieldname), fieldtype)


def _comparable(value, fieldtype: str):
	if fieldtype in ("Int", "Check"):
		return cint(value)
	if fieldtype == "Percent":
		return flt(value)
	if value in (None, ""):
		return None
	if fieldtype == "JSON":
		return frappe.parse_json(value)
	return get_datetime(value) if fieldtype == "Datetime" else str(value)
