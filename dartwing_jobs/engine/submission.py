"""What becomes of what somebody submits: defaults filled in, rules checked. One set of rules for every door.

`job` is a Background Job document, or a plain row on its way to become one.
"""

import uuid

import frappe
from frappe import _
from frappe.utils import cint

from dartwing_jobs import clock, tenancy
from dartwing_jobs.engine import statements
from dartwing_jobs.engine.groups import memberships
from dartwing_jobs.engine.intake import payload
from dartwing_jobs.engine.intake.frozen import shipped_fields
from dartwing_jobs.engine.observing import tracing
from dartwing_jobs.engine.rules import policies, priorities, queue_rules
from dartwing_jobs.errors import InvalidJobError

# a job's field: the job type's field that it takes its value from
FROM_JOB_TYPE = {
	"priority": "default_priority",
	"timeout_seconds": "default_timeout",
	"max_retries": "max_retries",
}
PARENT = """select job.depends_on, its_group.mode from `tabBackground Job` job
	left join `tabJob Group` its_group on its_group.name = job.job_group where job.name = %s"""
LINKS_WITHIN_ORGANIZATION = ("depends_on", "retry_of", "job_template", "job_schedule", "job_group")


def set_submitter(job) -> None:
	"""The owner is who submits; Frappe's own `owner` says the same, so that if_owner works."""
	user = frappe.local.session.user
	job.owner_user = job.owner_user or user
	if not tenancy.may_submit_as(job.owner_user, user):
		message = _("You cannot submit a job in the name of {0}.")
		frappe.throw(message.format(job.owner_user), frappe.PermissionError)
	job.owner = job.owner_user


def fill_in(job, job_type) -> None:
	"""What the submitter left open: a value that equals the field's default yields to the job type's."""
	for fieldname, source in FROM_JOB_TYPE.items():
		if _is_default(job, fieldname) and job_type.get(source) not in (None, ""):
			setattr(job, fieldname, job_type.get(source))
	job.job_queue = job.job_queue or job_type.job_queue or policies.category_of(job_type).job_queue
	job.job_id = _checked_id(job.job_id) if job.job_id else str(uuid.uuid4())
	job.traceparent = job.traceparent or tracing.current_traceparent()
	payload.fill_in(job)
	job.created_at = clock.now()
	if job.job_group:
		memberships.join(job)


def type_of(job):
	return type_named(job.job_type)


def type_named(name: str):
	messages = len(frappe.local.message_log)
	try:
		return frappe.get_cached_doc("Job Type", name)
	except frappe.DoesNotExistError:
		del frappe.local.message_log[messages:]  # said better below
	return frappe.throw(_("Job Type {0} was not found.").format(name), InvalidJobError)


def check(job, job_type) -> None:
	"""Raises when this cannot become a job."""
	tenancy.check_organization_is_active(job.organization)
	if not job_type.is_enabled:
		frappe.throw(_("Job Type {0} is disabled.").format(job.job_type), InvalidJobError)
	queue_rules.check(job.job_queue, job_type, bool(job.job_schedule))
	check_limits(job)
	job.unique_key = job.unique_key or None
	for fieldname in LINKS_WITHIN_ORGANIZATION:
		tenancy.check_same_organization(job, fieldname)
	if job.job_template:
		_check_template(job)
	check_dependency(job)


def check_limits(job) -> None:
	if job.priority not in priorities.ALL:
		message = _("Priority must be one of {0}, not {1}.")
		frappe.throw(message.format(", ".join(priorities.ALL), job.priority), InvalidJobError)
	if cint(job.timeout_seconds) <= 0:
		frappe.throw(_("Timeout must be at least one second."), InvalidJobError)


def check_dependency(job) -> None:
	"""Walks up the parents: a job that waits for itself would wait for ever.

	Members of a sequential group wait for nobody but each other, in order: behind them there is no circle.
	"""
	seen, parent = {job.name}, job.depends_on
	while parent:
		if parent in seen:
			message = _("Job {0} cannot depend on {1}: that would be a circle.")
			frappe.throw(message.format(job.name, job.depends_on), InvalidJobError)
		seen.add(parent)
		rows = statements.fetch(PARENT, (parent,))
		is_in_order = rows and rows[0].mode == memberships.SEQUENTIAL
		parent = rows[0].depends_on if rows and not is_in_order else None


def _is_default(job, fieldname: str) -> bool:
	value = job.get(fieldname)
	return value in (None, "") or str(value) == shipped_fields()[fieldname].get("default")


def _check_template(job) -> None:
	"""What a job says of its template is to be true."""
	statements.arrive()  # whether it is for this organization
	fields = ["template_name", "status", "job_type"]
	row = frappe.db.get_value("Job Template", job.job_template, fields, as_dict=True)
	if row.status != "Active":
		message = _("Job Template {0} is archived; no new jobs can be made from it.")
		frappe.throw(message.format(row.template_name), InvalidJobError)
	if row.job_type != job.job_type:
		message = _("Job Template {0} makes jobs of type {1}, not {2}.")
		frappe.throw(message.format(row.template_name, row.job_type, job.job_type), InvalidJobError)


def _checked_id(job_id: str) -> str:
	try:
		return str(uuid.UUID(job_id))
	except ValueError:
		return frappe.throw(_("Job ID must be a UUID, not {0}.").format(job_id), InvalidJobError)
