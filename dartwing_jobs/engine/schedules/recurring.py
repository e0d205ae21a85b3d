"""Schedules that programs ask for: made the first time, found again, changed only where they differ."""

import hashlib
import json

import frappe
from frappe import _
from frappe.model.document import Document

from dartwing_jobs import parameters as job_parameters
from dartwing_jobs import tenancy
from dartwing_jobs.document import checked
from dartwing_jobs.engine import database, submission
from dartwing_jobs.engine.intake import templates
from dartwing_jobs.engine.rules import priorities
from dartwing_jobs.engine.schedules import fire_times, schedules
from dartwing_jobs.engine.submit import organization_for
from dartwing_jobs.errors import InvalidJobError, SubmitConflict
from dartwing_jobs.messages import throw

# what may be said of a schedule beside its name, its times and what it does
OPTIONS = frozenset(
	{
		"time_zone",
		"priority",
		"enabled",
		"missed_run_policy",
		"overlap_policy",
		"jitter_seconds",
		"start_at",
		"end_at",
	}
)


def schedule(
	name: str,
	cron: str,
	*,
	job_type: str | None = None,
	parameters: dict | str | None = None,
	template: str | None = None,
	overrides: dict | str | None = None,
	organization: str | None = None,
	**options,
) -> Document:
	"""Makes a Job Schedule of this name in an organization, or changes the one that is there; returns it.

	It fires a template; or jobs of a type with these parameters, for which a template of the same name is
	made. The same call again changes nothing, and an option that is not given stays as somebody has set it.
	"""
	_check(job_type, template, parameters, options)
	organization = organization_for(organization, frappe.session.user)
	if job_type:
		job_type = submission.type_named(job_type).name
	key = _key(organization, name)
	if job_type:
		template = _template(name, organization, job_type, parameters, key).name
	else:
		template = database.stored_name(templates.DOCTYPE, template) or template
	values = {"cron_expression": cron, "job_template": template, **options}
	if job_type or overrides is not None:
		values["param_overrides"] = overrides  # who names a type says all of it: what others laid over goes
	found = _found({"program_key": key}) or _found({"organization": organization, "schedule_name": name})
	if found:
		document = frappe.get_doc(schedules.DOCTYPE, found)
		# parameters that others may have written must not run with all rights
		is_lent = parameters is None and tenancy.is_unrestricted(frappe.session.user)
		document.flags.keeps_run_as = is_lent
		return _changed(document, _on_its_wall(document, values))
	named = {"doctype": schedules.DOCTYPE, "organization": organization, "schedule_name": name}
	document = frappe.get_doc({**named, **values})
	document.flags.program_key = key
	return _made(document)


def repeat(
	cron: str, job_type: str, parameters: dict | str | None, organization: str | None, **options
) -> Document:
	"""What `submit(..., repeat=)` makes: a schedule named after its unique key, or type and parameters."""
	given = job_parameters.canonical(parameters, "Parameters")
	digest = hashlib.sha256(_sorted(given).encode()).hexdigest()
	job_type = submission.type_named(job_type).name
	name = options.pop("unique_key", None) or f"{job_type} {digest[:12]}"
	return schedule(
		name, cron, job_type=job_type, parameters=given or {}, organization=organization, **options
	)


def _check(job_type: str | None, template: str | None, parameters, options: dict) -> None:
	if unknown := sorted(set(options) - OPTIONS):
		throw(_("A schedule has no option {0}.").format(", ".join(unknown)), InvalidJobError)
	if bool(job_type) == bool(template):
		throw(_("Say what to do: a job type, or a template."), InvalidJobError)
	if template and parameters is not None:
		message = _("Parameters belong to a job type; lay overrides over those of a template.")
		throw(message, InvalidJobError)


def _template(name: str, organization: str, job_type: str, parameters, key: str) -> Document:
	"""The template that belongs to a schedule of this name."""
	filters = {"organization": organization, "name_key": templates.name_key(name)}
	values = {"job_type": job_type, "default_params": parameters}
	if found := frappe.db.get_value(templates.DOCTYPE, filters, "name"):
		document = frappe.get_doc(templates.DOCTYPE, found)
		document.check_permission("write")
		_check_may_use(document, values, key)
		given = values if parameters is not None else {"job_type": job_type}
		return _changed(document, given)
	named = {"doctype": templates.DOCTYPE, "organization": organization, "template_name": name}
	return _made(frappe.get_doc({**named, **values}))


def _check_may_use(template: Document, values: dict, key: str) -> None:
	"""Somebody else may have made a template of this name for other work, or put it away."""
	if template.status != templates.ACTIVE:
		message = _("Job Template {0} is archived. Make it active again, or choose another name.")
		throw(message.format(template.template_name), InvalidJobError)
	is_own = _found({"program_key": key, "job_template": template.name})
	if not is_own and _changes(template, values):
		message = _("There is a Job Template {0} for other work. Choose another name, or name that template.")
		throw(message.format(template.template_name), InvalidJobError)


def _found(filters: dict) -> str | None:
	return frappe.db.get_value(schedules.DOCTYPE, filters, "name", order_by="creation asc")


def _changed(document: Document, values: dict) -> Document:
	document.check_permission("write")  # also when nothing differs: it is shown to whoever asks
	if changes := _changes(document, values):
		document.update(changes)
		document.save()
	return document


def _on_its_wall(document: Document, values: dict) -> dict:
	"""The window as the schedule stores it: an offset is not to be read on the site's wall."""
	zone = values.get("time_zone") or fire_times.zone_of(document)
	given = {name: values[name] for name in ("start_at", "end_at") if values.get(name)}
	return values | {name: fire_times.on_the_wall(value, zone) for name, value in given.items()}


def _made(document: Document) -> Document:
	"""Of two who make the same at once, an index refuses one: it will find the other's."""
	shown = len(frappe.local.message_log)
	try:
		return document.insert()
	except frappe.ValidationError as error:
		if not any(isinstance(one, frappe.UniqueValidationError) for one in (error, error.__context__)):
			raise
		del frappe.local.message_log[shown:]
		message = _("The same schedule is being made by somebody else. Roll back and try again.")
		raise SubmitConflict(message) from error


def _changes(document: Document, values: dict) -> dict:
	"""What of these values is not so already."""
	return {
		name: value
		for name, value in values.items()
		if _as_stored(document, name, value) != _as_stored(document, name, document.get(name))
	}


def _as_stored(document: Document, fieldname: str, value) -> str:
	field = document.meta.get_field(fieldname)
	if field.fieldtype == "JSON":
		return _sorted(job_parameters.canonical(value, field.label))
	if fieldname == "priority":
		value = priorities.from_value(value)
	if field.fieldtype in ("Check", "Int"):
		value = int(value or 0)
	return str(checked(value, field, fieldname)) if value not in (None, "") else ""


def _sorted(stored: str | None) -> str:
	"""The same for the same parameters, however they were written."""
	return json.dumps(job_parameters.load(stored), sort_keys=True)


def _key(organization: str, name: str) -> str:
	return hashlib.sha256(f"{organization}|{name}".encode()).hexdigest()
