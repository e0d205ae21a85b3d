"""Schedules that programs ask for: made the first time, found again, changed only where they differ."""

import hashlib
import json

import frappe
from frappe import _
from frappe.model.document import Document

from dartwing_jobs import parameters as job_parameters
from dartwing_jobs.document import checked
from dartwing_jobs.engine import priorities, schedules, templates
from dartwing_jobs.engine.submit import default_organization
from dartwing_jobs.errors import InvalidJobError, SubmitConflict

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
	organization = organization or default_organization(frappe.session.user)
	if job_type:
		template = _template(name, organization, job_type, parameters).name
	values = {"cron_expression": cron, "job_template": template, **options}
	if overrides is not None:
		values["param_overrides"] = overrides
	return _made_or_changed(schedules.DOCTYPE, {"organization": organization, "schedule_name": name}, values)


def repeat(
	cron: str, job_type: str, parameters: dict | str | None, organization: str | None, **options
) -> Document:
	"""What `submit(..., repeat=)` makes: a schedule named after its unique key, or type and parameters."""
	given = job_parameters.canonical(parameters, _("Parameters"))
	digest = hashlib.sha256(_sorted(given).encode()).hexdigest()
	name = options.pop("unique_key", None) or f"{job_type} {digest[:12]}"
	return schedule(name, cron, job_type=job_type, parameters=given, organization=organization, **options)


def _check(job_type: str | None, template: str | None, parameters, options: dict) -> None:
	if unknown := sorted(set(options) - OPTIONS):
		frappe.throw(_("A schedule has no option {0}.").format(", ".join(unknown)), InvalidJobError)
	if bool(job_type) == bool(template):
		frappe.throw(_("Say what to do: a job type, or a template."), InvalidJobError)
	if template and parameters is not None:
		message = _("Parameters belong to a job type; lay overrides over those of a template.")
		frappe.throw(message, InvalidJobError)


def _template(name: str, organization: str, job_type: str, parameters) -> Document:
	"""The template that belongs to a schedule of this name."""
	values = {"template_name": name, "job_type": job_type, "status": templates.ACTIVE}
	found = {"organization": organization, "name_key": templates.name_key(name)}
	return _made_or_changed(templates.DOCTYPE, found, values | {"default_params": parameters})


def _made_or_changed(doctype: str, identity: dict, values: dict) -> Document:
	if found := frappe.db.get_value(doctype, identity, "name", order_by="creation asc"):
		document = frappe.get_doc(doctype, found)
		if changes := _changes(document, values):
			document.update(changes)
			document.save()
		return document
	document = frappe.get_doc({"doctype": doctype, **identity, **values})
	try:
		# named after what it is: of two who make it at once, one is refused
		return document.insert(set_name=_name(doctype, identity))
	except frappe.DuplicateEntryError as error:
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
		return _sorted(job_parameters.canonical(value, _(field.label)))
	if fieldname == "priority":
		value = priorities.from_value(value)
	if field.fieldtype in ("Check", "Int"):
		value = int(value or 0)
	return str(checked(value, field, fieldname)) if value not in (None, "") else ""


def _sorted(stored: str | None) -> str:
	"""The same for the same parameters, however they were written."""
	return json.dumps(job_parameters.load(stored), sort_keys=True)


def _name(doctype: str, identity: dict) -> str:
	told = "|".join([doctype, *map(str, identity.values())])
	return hashlib.sha256(told.encode()).hexdigest()[:20]
