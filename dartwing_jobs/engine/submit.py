"""Submitting: a row and its first log row in the caller's transaction, and a ring after the commit."""

import uuid

import frappe
from frappe import _
from frappe.model.document import Document

from dartwing_jobs import parameters as job_parameters
from dartwing_jobs import tenancy
from dartwing_jobs.engine import bell, log, naming, states
from dartwing_jobs.errors import InvalidJobError

# what a submitter may say about a job beside its type, organization and parameters
OPTIONS = frozenset(
	{
		"priority",
		"scheduled_for",
		"depends_on",
		"on_parent_failure",
		"timeout_seconds",
		"max_retries",
		"owner_user",
		"job_queue",
		"project_id",
		"request_id",
		"correlation_id",
		"traceparent",
		"job_id",
		"retry_of",
	}
)
ROWS_AT_ONCE = 1000


def submit(
	job_type: str, parameters: dict | str | None = None, organization: str | None = None, **options
) -> Document:
	"""Submits one job and returns it. It runs once the caller's transaction has been committed."""
	job = _new_job(job_type, organization, options)
	job.input_parameters = parameters
	return job.insert(ignore_permissions=True)


def submit_many(
	job_type: str, many_parameters: list[dict], organization: str | None = None, **options
) -> list[str]:
	"""Submits a job for each set of parameters, with the same checks, in a few statements."""
	first = _new_job(job_type, organization, options)
	first.check_input()
	first.set_submitter()
	first.before_validate()
	first.validate_submission()
	names = naming.next_job_names(len(many_parameters))
	_insert_jobs(first, names, [job_parameters.canonical(one, _("Parameters")) for one in many_parameters])
	bell.ring_after_commit(first.job_queue)
	return names


def default_organization(user: str) -> str:
	"""The organization of somebody who has just one."""
	organizations = tenancy.permitted_organizations(user, "Background Job")
	if len(organizations) != 1:
		frappe.throw(_("Say for which organization the job is."), InvalidJobError)
	return organizations[0]


def _new_job(job_type: str, organization: str | None, options: dict) -> Document:
	if unknown := sorted(set(options) - OPTIONS):
		frappe.throw(_("A job has no option {0}.").format(", ".join(unknown)), InvalidJobError)
	user = options.get("owner_user") or frappe.session.user
	organization = organization or default_organization(user)
	job = frappe.new_doc("Background Job", job_type=job_type, organization=organization, **options)
	if reason := tenancy.reason_not_to_submit(user, organization, _required_permission(job_type)):
		frappe.throw(reason, frappe.PermissionError)
	return job


def _required_permission(job_type: str) -> str | None:
	return frappe.db.get_value("Job Type", job_type, "requires_permission")


def _insert_jobs(first: Document, names: list[str], stored_parameters: list[str | None]) -> None:
	now, user = first.created_at, frappe.session.user
	common = first.get_valid_dict(convert_dates_to_str=False)
	common |= {"owner": first.owner_user, "creation": now, "modified": now, "modified_by": user}
	columns = list(common)
	rows, logs = [], []
	for name, one in zip(names, stored_parameters, strict=True):
		job = frappe._dict(common, name=name, input_parameters=one, job_id=str(uuid.uuid4()))
		rows.append([job[column] for column in columns])
		logs.append(
			log.row(
				job, states.CREATION.event, None, states.PENDING, now=job.created_at, actor=job.owner_user
			)
		)
	frappe.db.bulk_insert("Background Job", columns, rows, chunk_size=ROWS_AT_ONCE)
	log.insert_rows(logs)
