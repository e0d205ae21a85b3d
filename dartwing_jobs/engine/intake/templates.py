"""Templates: a job's type and parameters, to be used again with overrides."""

import hashlib

import frappe
from frappe import _
from frappe.utils import cint, cstr

from dartwing_jobs import parameters, tenancy
from dartwing_jobs.engine import statements
from dartwing_jobs.engine.submit import organization_for, submit
from dartwing_jobs.messages import throw

DOCTYPE = "Job Template"
ACTIVE, ARCHIVED = "Active", "Archived"
TABLE = f"`tab{DOCTYPE}`"
COLUMNS = ("name", "template_name", "job_type", "organization", "status", "description", "default_params")


def submit_from_template(
	template: str, overrides: dict | str | None = None, organization: str | None = None, **options
):
	"""Submits a job of the template's type with its parameters, merged with the overrides; returns the job.

	In the template's organization; for a global one, in the one that is named or the caller's only one.
	Options are those of `submit`.
	"""
	if organization:
		organization = organization_for(organization, frappe.session.user)
	found = _to_submit_from(template, organization)
	laid_over = parameters.load(parameters.canonical(overrides, "Overrides"))
	given = merged(parameters.load(found.default_params), laid_over)
	wanted = organization or found.organization
	return submit(found.job_type, given, wanted, job_template=found.name, **options)


def find(filters: dict, limit: int, cursor: tuple | None = None) -> list:
	"""Templates that this user may read or make jobs from, newest first, from the cursor on."""
	conditions, values = _visible_to(frappe.session.user)
	for name, value in filters.items():
		conditions.append(f"{TABLE}.{name} = %s")
		values.append(value)
	if cursor:
		conditions.append(f"({TABLE}.creation < %s or ({TABLE}.creation = %s and {TABLE}.name < %s))")
		values += [cursor[0], *cursor]
	return statements.fetch(
		f"""select {", ".join(COLUMNS)}, creation, modified from {TABLE}
		where {" and ".join(conditions)} order by creation desc, name desc limit {cint(limit)}""",
		values,
	)


def refuse_missing(template: str) -> None:
	throw(_("Job Template {0} was not found.").format(template), frappe.DoesNotExistError)


def name_key(template_name: str | None) -> str:
	"""Alike for names that only capitals tell apart, on every database."""
	return hashlib.sha256(cstr(template_name).strip().casefold().encode()).hexdigest()


def merged(defaults: dict, overrides: dict) -> dict:
	"""Defaults with overrides laid over them, by RFC 7396; `docs/templates.md` has the table.

	Objects merge key by key at every depth, null takes a key away, anything else replaces what was there.
	What is not overridden is shared with the defaults, not copied.
	"""
	result = dict(defaults)
	unmerged = [(result, overrides)]
	while unmerged:  # no recursion: parameters of any depth must be refused by their check, not by Python
		target, patch = unmerged.pop()
		for key, value in patch.items():
			if value is None:
				target.pop(key, None)
			elif isinstance(value, dict):
				below = target.get(key)
				target[key] = dict(below) if isinstance(below, dict) else {}
				unmerged.append((target[key], value))
			else:
				target[key] = value
	return result


def _to_submit_from(template: str, organization: str | None):
	"""A template for this user and organization; the same words for one that is not, and for none.

	Whether it is active, and its type enabled, is for `submit` to say.
	"""
	columns = ", ".join(COLUMNS)
	(row,) = statements.fetch(f"select {columns} from {TABLE} where name = %s", (template,)) or [None]
	is_elsewhere = row and row.organization and organization not in (None, row.organization)
	if row is None or is_elsewhere or not tenancy.may_submit_in(row.organization, frappe.session.user):
		refuse_missing(template)
	return row


def _visible_to(user: str) -> tuple[list[str], list]:
	"""SQL for what somebody may read as a document, or make jobs from."""
	if tenancy.is_unrestricted(user):
		return ["1 = 1"], []
	types = _types_to_submit(user)
	usable = f"""{tenancy.rows_to_submit_in(user, DOCTYPE)} and {TABLE}.status = '{ACTIVE}'
		and {TABLE}.job_type in ({", ".join(["%s"] * len(types)) or "null"})"""
	return [f"({tenancy.query_conditions(user, DOCTYPE)} or ({usable}))"], types


def _types_to_submit(user: str) -> list[str]:
	"""The enabled job types that somebody may submit, wherever they may submit at all."""
	organizations = tenancy.permitted_organizations(user, "Background Job")
	rows = statements.fetch("select name, requires_permission from `tabJob Type` where is_enabled = 1")
	needed = {row.requires_permission for row in rows} if organizations else ()
	granted = {one for one in needed if _is_granted(user, organizations[0], one)}
	return [row.name for row in rows if row.requires_permission in granted]


def _is_granted(user: str, organization: str, required: str | None) -> bool:
	doctype = (required or "").rpartition(":")[0]
	if doctype and not frappe.db.exists("DocType", doctype):
		return False  # nobody may; and one such type must not empty everybody's list
	return not tenancy.reason_not_to_submit(user, organization, required)
