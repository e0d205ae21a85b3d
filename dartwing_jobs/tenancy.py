"""Who may see and do what: the one place that knows organizations, owners and roles."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import frappe
from frappe import _

from dartwing_jobs.engine import database, statements
from dartwing_jobs.engine.quoting import is_one_of, quoted
from dartwing_jobs.errors import InvalidJobError, SubmitConflict
from dartwing_jobs.messages import throw

ORGANIZATION = "Organization"
ADMIN_ROLE = "Dartwing Admin"
USER_ROLE = "Dartwing User"
SYSTEM_MANAGER = "System Manager"
# an organization that works, by the columns that its table may have
SIGNS_OF_LIFE = {"status": "coalesce(status, '') in ('', 'Active')", "disabled": "coalesce(disabled, 0) = 0"}
# the word for one that does not, by the same columns
WORDS = {"status": "status", "disabled": "'disabled'"}

# names of users and organizations that a process remembers as they are spelled
MOST_SPELLINGS = 10_000

# where an empty organization means: for all of them, to read
SHARED_DOCTYPES = frozenset({"Job Template"})
READING = frozenset({"read", "select", "print", "email", "report", "export"})
# where a Dartwing User sees the rows that are their own
OWNED_DOCTYPES = frozenset({"Background Job"})
TENANT_DOCTYPES = frozenset(
	{
		"Background Job",
		"Job Execution Log",
		"Job Group",
		"Job Idempotency Key",
		"Job Organization Policy",
		"Job Run",
		"Job Schedule",
		"Job Schedule Fire",
		"Job Step",
		"Job Template",
	}
)


def is_unrestricted(user: str) -> bool:
	return _is_unrestricted(user, frappe.get_roles(user))


def permitted_organizations(user: str, doctype: str) -> list[str]:
	"""The organizations that User Permissions open to this user; none given means none."""
	from frappe.permissions import get_user_permissions

	rows = get_user_permissions(user).get(ORGANIZATION, [])
	return [row["doc"] for row in rows if row.get("applicable_for") in (None, "", doctype)]


def query_conditions(user: str | None = None, doctype: str | None = None) -> str:
	"""The hook permission_query_conditions: SQL that leaves only the rows this user may see."""
	user = user or frappe.session.user
	if is_unrestricted(user):
		return ""
	rows = _rows_of_organizations(doctype, permitted_organizations(user, doctype))
	roles = frappe.get_roles(user)
	if ADMIN_ROLE in roles:
		return rows
	if USER_ROLE in roles and doctype in OWNED_DOCTYPES:
		return f"({rows} and {_column(doctype, 'owner_user')} = {quoted(user)})"
	return "1=0"


def has_permission(doc, ptype: str = "read", user: str | None = None, debug: bool = False) -> bool:
	"""The hook has_permission: it can only deny, and it answers True or False, never None."""
	user = user or frappe.session.user
	return is_unrestricted(user) or all(_may(user, ptype, row) for row in _as_sent_and_as_stored(doc))


def may_submit_as(owner_user: str, user: str) -> bool:
	"""A job runs with its owner's rights: nobody submits in another's name but a System Manager."""
	granted = getattr(frappe.local, "dartwing_owner_of_replay", None)
	return owner_user in (user, granted) or is_unrestricted(user)


@contextmanager
def replaying_for(owner_user: str) -> Iterator[None]:
	"""Inside, a job may be submitted in its owner's name: only for what they have submitted, unchanged."""
	frappe.local.dartwing_owner_of_replay = owner_user
	try:
		yield
	finally:
		frappe.local.dartwing_owner_of_replay = None


def admins_of(organization: str) -> list[str]:
	"""Who is to be told what happens in an organization: its admins, or else the System Managers."""
	return _enabled_users(ADMIN_ROLE, organization) or _enabled_users(SYSTEM_MANAGER)


def may_act_on(job, user: str) -> bool:
	"""Whether somebody may follow and cancel a job: its owner or an admin, inside the organization."""
	row = frappe._dict(doctype="Background Job", organization=job.organization, owner_user=job.owner_user)
	return is_unrestricted(user) or _may(user, "read", row)


def may_act_on_group(group, user: str) -> bool:
	"""The same for a group: whoever made it, or an admin, inside the organization."""
	return may_act_on(frappe._dict(organization=group.organization, owner_user=group.owner), user)


def group_conditions(user: str) -> str:
	"""SQL that leaves only the groups that this user may follow, in a query that calls them `job_group`."""
	if is_unrestricted(user):
		return "1=1"
	rows = is_one_of("job_group.organization", permitted_organizations(user, "Background Job"))
	roles = frappe.get_roles(user)
	if ADMIN_ROLE in roles:
		return rows
	return f"({rows} and job_group.owner = {quoted(user)})" if USER_ROLE in roles else "1=0"


def reason_not_to_submit(user: str, organization: str, requires_permission: str | None) -> str | None:
	"""Why this user may not have work of this kind done in this organization; None if they may."""
	roles = frappe.get_roles(user)
	if _is_unrestricted(user, roles):
		return None
	if organization not in permitted_organizations(user, "Background Job"):
		return f"Permission denied: {user} is not in organization {organization}"
	if not requires_permission:
		has_role = ADMIN_ROLE in roles or USER_ROLE in roles
		return None if has_role else f"Permission denied: {user} has no Dartwing role"
	doctype, _colon, ptype = requires_permission.rpartition(":")
	if not frappe.has_permission(doctype, ptype, user=user):
		return f"Permission denied: {user} has no {ptype} permission for {doctype}"
	return None


def reason_not_to_run(user: str, organization: str, requires_permission: str | None) -> str | None:
	"""Why a job of this owner may not run now; None if it may."""
	(found,) = statements.fetch(
		f"""select (select enabled from `tabUser` where name = %s) as enabled,
		(select {_why_inactive(frappe.local.site)} from `tab{ORGANIZATION}` where name = %s) as inactive""",
		(user, organization),
	)
	if found.inactive is None:
		return "Organization not found"
	if found.inactive:
		return f"Organization {organization} is {found.inactive}"
	if not found.enabled:
		return f"Permission denied: user {user} is disabled or gone"
	return reason_not_to_submit(user, organization, requires_permission)


def may_submit_in(organization: str | None, user: str) -> bool:
	"""Whether somebody may have work done in this organization at all; in none means: somewhere."""
	if not organization or is_unrestricted(user):
		return True
	return organization in permitted_organizations(user, "Background Job")


def rows_to_submit_in(user: str, doctype: str) -> str:
	"""SQL for the rows of those organizations in which this user may have work done."""
	return _rows_of_organizations(doctype, permitted_organizations(user, "Background Job"))


def user_as_stored(user: str) -> str:
	"""A user's name as the database has it; as it was typed when there is no such user."""
	return _spelling("User", user) or user


def organization_as_stored(organization: str | None, user: str) -> str | None:
	"""An organization's name as the database has it, for those who may have work done there.

	Others learn nothing: for them it stays as it was typed.
	"""
	stored = _spelling(ORGANIZATION, organization) if organization else None
	is_as_typed = stored in (None, organization)
	return stored if not is_as_typed and may_submit_in(stored, user) else organization


def _spelling(doctype: str, name: str) -> str | None:
	try:
		return _remembered_spelling(frappe.local.site, doctype, str(name))
	except LookupError:  # not remembered: it may be made the next moment
		return None


@lru_cache(maxsize=MOST_SPELLINGS)
def _remembered_spelling(_site: str, doctype: str, name: str) -> str:
	stored = database.stored_name(doctype, name)
	if stored is None:
		raise LookupError(name)
	return stored


def check_organization_is_active(organization: str) -> None:
	"""Raises when the organization is gone or has stopped working."""
	if statements.value(is_not_active(), (organization,) * 2):
		refuse_if_inactive(organization)


def refuse_if_inactive(organization: str) -> None:
	why = f"select name, {_why_inactive(frappe.local.site)} as why from `tab{ORGANIZATION}` where name = %s"
	found = statements.fetch(why, (organization,))
	if not found:
		throw(_("Organization {0} was not found.").format(organization), InvalidJobError)
	if found[0].name != organization:
		_remembered_spelling.cache_clear()
		message = _("Organization {0} is called {1} now; roll back and try again.")
		raise SubmitConflict(message.format(organization, found[0].name))
	if not found[0].why:
		return
	message = _("Organization {0} is {1}; only active organizations can have new jobs.")
	throw(message.format(organization, _(found[0].why)), InvalidJobError)


def is_not_active() -> str:
	"""SQL that holds for an organization that must not have new jobs; takes its name twice."""
	return _is_not_active(frappe.local.site)


@lru_cache
def _is_not_active(site: str) -> str:
	signs = " and ".join([database.is_just("name"), *(SIGNS_OF_LIFE[sign] for sign in _signs(site))])
	return f"not exists (select 1 from `tab{ORGANIZATION}` where {signs})"


@lru_cache
def _why_inactive(site: str) -> str:
	"""SQL for the word that says why an organization does not work; an empty one if it does."""
	cases = " ".join(f"when not ({SIGNS_OF_LIFE[sign]}) then {WORDS[sign]}" for sign in _signs(site))
	return f"case {cases} else '' end" if cases else "''"


@lru_cache
def _signs(_site: str) -> list[str]:
	"""Another app's Organization may have either of the columns that tell, or none."""
	columns = frappe.db.get_table_columns(ORGANIZATION)
	return [sign for sign in SIGNS_OF_LIFE if sign in columns]


def check_same_organization(doc, fieldname: str) -> None:
	"""Raises when a link leads into another organization, in the words for a link that leads nowhere.

	A link that leads home gets its name as the database has it.
	"""
	name = doc.get(fieldname)
	if not name:
		return
	field = frappe.get_meta(doc.doctype).get_field(fieldname)
	found = statements.fetch(
		f"select name, organization from `tab{field.options}` where name = %s", (str(name),)
	)
	if not found or not _leads_home(found[0].organization, doc, field):
		throw(_("Could not find {0}").format(f"{_(field.label)}: {name}"), frappe.LinkValidationError)
	doc.update({fieldname: found[0].name})


def _leads_home(organization: str | None, doc, field) -> bool:
	if not organization:
		return field.options in SHARED_DOCTYPES
	return organization == doc.organization


def _is_unrestricted(user: str, roles: list[str]) -> bool:
	return user == "Administrator" or SYSTEM_MANAGER in roles


def _enabled_users(role: str, organization: str | None = None) -> list[str]:
	member = """ and exists (select 1 from `tabUser Permission` where `user` = `tabUser`.name and allow = %s
		and for_value = %s and (applicable_for is null or applicable_for in ('', 'Background Job')))"""
	rows = statements.fetch(
		f"""select name from `tabUser` where enabled = 1 and exists (select 1 from `tabHas Role`
		where parenttype = 'User' and parent = `tabUser`.name and role = %s)
		{member if organization else ""} order by name""",
		(role, ORGANIZATION, organization) if organization else (role,),
	)
	return [row.name for row in rows]


def _rows_of_organizations(doctype: str, organizations: list[str]) -> str:
	column = _column(doctype, "organization")
	conditions = []
	if organizations:
		conditions.append(is_one_of(column, organizations))
	if doctype in SHARED_DOCTYPES:
		conditions.append(f"{column} is null or {column} = ''")
	return f"({' or '.join(conditions)})" if conditions else "1=0"


def _as_sent_and_as_stored(doc) -> list:
	"""A document that a client sends says what it likes of itself; the stored row does not."""
	sent = frappe._dict(doctype=doc.doctype, organization=doc.get("organization"), owner_user=_owner(doc))
	fields = ["organization", "owner_user"] if doc.doctype in OWNED_DOCTYPES else ["organization"]
	stored = doc.get("name") and frappe.db.get_value(doc.doctype, doc.name, fields, as_dict=True)
	return [sent, frappe._dict(stored, doctype=doc.doctype)] if stored else [sent]


def _owner(doc) -> str | None:
	return doc.get("owner_user") or doc.get("owner")


def _may(user: str, ptype: str, row) -> bool:
	if not _is_within_organizations(user, ptype, row):
		return False
	roles = frappe.get_roles(user)
	return ADMIN_ROLE in roles or (
		USER_ROLE in roles and row.doctype in OWNED_DOCTYPES and row.owner_user == user
	)


def _is_within_organizations(user: str, ptype: str, row) -> bool:
	if row.organization:
		return row.organization in permitted_organizations(user, row.doctype)
	return row.doctype in SHARED_DOCTYPES and ptype in READING


def _column(doctype: str, fieldname: str) -> str:
	return f"`tab{doctype}`.`{fieldname}`"
