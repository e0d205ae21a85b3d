"""What becomes of what somebody submits: defaults filled in, rules checked. One set of rules for every door.

`job` is a Background Job document, or a plain row on its way to become one.
"""

import uuid

import frappe
from frappe import _
from frappe.utils import cint, get_datetime

from dartwing_jobs import clock, parameters, settings, tenancy
from dartwing_jobs.document import shown
from dartwing_jobs.engine import database, statements
from dartwing_jobs.engine.groups import memberships
from dartwing_jobs.engine.intake import bounds, payload
from dartwing_jobs.engine.intake.frozen import shipped_fields
from dartwing_jobs.engine.observing import tracing
from dartwing_jobs.engine.rules import policies, priorities, queue_rules, routes
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.messages import throw

# a job's field: the job type's field that it takes its value from
FROM_JOB_TYPE = {
	"priority": "default_priority",
	"timeout_seconds": "default_timeout",
	"max_retries": "max_retries",
}
# who waits for whom, so many steps up. Only who is Pending waits for anybody. Members of sequential groups
# wait only for each other, in order: behind them there is no circle
MOST_PARENTS = 100
PARENTS = f"""with recursive parents (name, depends_on, step) as (
	select name, depends_on, 1 from `tabBackground Job` where name = %s and status = 'Pending'
	union all
	select job.name, job.depends_on, parents.step + 1 from parents
	join `tabBackground Job` child on child.name = parents.name
	join `tabBackground Job` job on job.name = parents.depends_on
	left join `tabJob Group` its_group on its_group.name = child.job_group
	where parents.step < {MOST_PARENTS} and job.status = 'Pending'
	and coalesce(its_group.mode, '') <> '{memberships.SEQUENTIAL}')
	select name, depends_on from parents order by step"""
LINKS_WITHIN_ORGANIZATION = ("depends_on", "retry_of", "job_template", "job_schedule", "job_group")


def set_submitter(job, job_type) -> None:
	"""The owner is who submits; Frappe's own `owner` says the same, so that if_owner works.

	Raises when they may not have work of this kind done in this organization.
	"""
	user = frappe.local.session.user
	job.owner_user = job.owner_user or user
	if not tenancy.may_submit_as(job.owner_user, user):
		message = _("You cannot submit a job in the name of {0}.")
		throw(message.format(job.owner_user), frappe.PermissionError)
	if job.owner_user != user:
		job.owner_user = tenancy.user_as_stored(job.owner_user)
	job.owner = job.owner_user
	job.job_type = job_type.name
	job.organization = tenancy.organization_as_stored(job.organization, job.owner_user)
	if reason := tenancy.reason_not_to_submit(job.owner_user, job.organization, job_type.requires_permission):
		throw(reason, frappe.PermissionError)


def fill_in(job, job_type) -> None:
	"""What the submitter left open: a value that equals the field's default yields to the job type's."""
	for fieldname, source in FROM_JOB_TYPE.items():
		if _is_default(job, fieldname) and job_type.get(source) not in (None, ""):
			setattr(job, fieldname, job_type.get(source))
	job.job_queue = _queue_of(job, job_type)
	job.job_id = _checked_id(job.job_id) if job.job_id else str(uuid.uuid4())
	job.traceparent = job.traceparent or tracing.current_traceparent()
	payload.fill_in(job)
	job.created_at, job.created_utc = clock.now(), clock.utc_now()
	job.scheduled_utc = clock.as_utc(get_datetime(job.scheduled_for)) if job.scheduled_for else None
	if job.job_group:
		memberships.join(job)


def type_of(job):
	return type_named(job.job_type)


def type_named(name: str):
	messages = len(frappe.local.message_log)
	try:
		found = frappe.get_cached_doc("Job Type", name)
		# in other letters it is cached, too, and such a copy is never refreshed
		return found if found.name == name else _type_in_other_letters(name)
	except frappe.DoesNotExistError:
		del frappe.local.message_log[messages:]  # said better below
	return throw(_("Job Type {0} was not found.").format(name), InvalidJobError)


def check(job, job_type) -> None:
	"""Raises when this cannot become a job, but for its grounds."""
	if not job_type.is_enabled:
		throw(_("Job Type {0} is disabled.").format(job.job_type), InvalidJobError)
	queue_rules.check(job.job_queue, job_type, bool(job.job_schedule))
	check_time(job, job_type)
	check_limits(job)
	bounds.check(job, job_type)
	check_place(job)
	job.unique_key = job.unique_key or None
	for fieldname in LINKS_WITHIN_ORGANIZATION:
		tenancy.check_same_organization(job, fieldname)
	if job.job_template:
		_check_template(job)
	check_dependency(job)


def check_limits(job) -> None:
	if job.priority not in priorities.ALL:
		message = _("Priority must be one of {0}, not {1}.")
		throw(message.format(", ".join(priorities.ALL), job.priority), InvalidJobError)
	if cint(job.timeout_seconds) <= 0:
		throw(_("Timeout must be at least one second."), InvalidJobError)


def check_time(job, job_type) -> None:
	"""Only some kinds of work may be put off: who gives others a time has mistaken their type."""
	if job.scheduled_for and not job_type.allow_schedule:
		message = _(
			"Jobs of type {0} may not be scheduled. Leave {1} out, or have it allowed on the Job Type."
		)
		throw(message.format(job_type.name, "scheduled_for"), InvalidJobError)


def check_edited(job, before) -> None:
	"""The same for what may be edited while a job waits; what was granted before is left as it is."""
	check_limits(job)
	if job.scheduled_utc != before.scheduled_utc:
		check_time(job, type_of(job))
	changed = tuple(name for name in bounds.BOUNDED if str(before.get(name)) != str(job.get(name)))
	if changed:
		bounds.check(job, type_of(job), changed)


def check_place(job) -> None:
	if job.position and not job.job_group:
		throw(_("A position is a place in a group: name the job_group, too."), InvalidJobError)
	known = shipped_fields()["on_parent_failure"].options.split("\n")
	if job.on_parent_failure not in known:
		message = _("On Parent Failure must be one of {0}, not {1}.")
		throw(message.format(", ".join(known), shown(job.on_parent_failure)), InvalidJobError)


def storable_parameters(job_type, many: list, label: str = "Parameters") -> list[str | None]:
	"""Sets of parameters as they are stored: of bounded size, without secrets, as the type's schema says."""
	most_bytes = settings.max_parameter_bytes()
	stored = [parameters.canonical(one, label, most_bytes) for one in many]
	parameters.check_secrets(job_type, stored)
	if job_type.parameters_schema:
		for one in stored:
			parameters.check_schema(job_type, one)
	return stored


def check_dependency(job) -> None:
	"""A job that waits for itself would wait for ever. One question, however long the line of parents is.

	No door makes a circle: no job can wait for a name that is new. This finds what was written past us.
	"""
	if not job.depends_on:
		return
	parents = statements.fetch(PARENTS, (job.depends_on,))
	names = [job.name, *(parent.name for parent in parents)]
	if len(set(names)) < len(names):
		message = _("Job {0} cannot depend on {1}: that would be a circle.")
		throw(message.format(job.name, job.depends_on), InvalidJobError)


def _type_in_other_letters(name: str):
	stored = database.stored_name("Job Type", name)
	if stored is None:
		raise frappe.DoesNotExistError
	return frappe.get_cached_doc("Job Type", stored)


def _queue_of(job, job_type) -> str:
	wanted = job.job_queue or job_type.job_queue or policies.category_of(job_type).job_queue
	return routes.stored_name(wanted) or _refuse_queue(wanted)


def _refuse_queue(job_queue: str) -> str:
	message = _("Job Queue {0} was not found: leave the queue out, or name one that exists.")
	return throw(message.format(shown(job_queue)), InvalidJobError)


def check_grounds(job) -> None:
	"""Raises unless its organization works and its queue is still there."""
	if statements.value(*groundless(job)):
		refuse_groundless(job)


def groundless(job) -> tuple[str, tuple]:
	"""SQL that holds if its organization does not work, or its queue is gone; with its values."""
	has_no_queue = f"not exists (select 1 from `tabJob Queue` where {database.is_just('name')})"
	values = (job.organization, job.organization, job.job_queue, job.job_queue)
	return f"({tenancy.is_not_active()} or {has_no_queue})", values


def refuse_groundless(job) -> None:
	tenancy.refuse_if_inactive(job.organization)
	routes.forget()  # what this process remembers is not true any more
	_refuse_queue(job.job_queue)


def _is_default(job, fieldname: str) -> bool:
	value = job.get(fieldname)
	return value in (None, "") or str(value) == shipped_fields()[fieldname].get("default")


def _check_template(job) -> None:
	"""What a job says of its template is to be true."""
	fields = ["template_name", "status", "job_type"]
	row = frappe.db.get_value("Job Template", job.job_template, fields, as_dict=True)
	if row.status != "Active":
		message = _("Job Template {0} is archived; no new jobs can be made from it.")
		throw(message.format(row.template_name), InvalidJobError)
	if row.job_type != job.job_type:
		message = _("Job Template {0} makes jobs of type {1}, not {2}.")
		throw(message.format(row.template_name, row.job_type, job.job_type), InvalidJobError)


def _checked_id(job_id: str) -> str:
	try:
		return str(uuid.UUID(job_id))
	except ValueError:
		return throw(_("Job ID must be a UUID, not {0}.").format(job_id), InvalidJobError)
