"""Makes what tests need: organizations, people, job types, jobs in any status."""

from types import SimpleNamespace

import frappe

from dartwing_jobs import clock
from dartwing_jobs.engine import states
from dartwing_jobs.engine.order import OUT_OF_LINE

# sample_job remembers for five minutes what was submitted; this type lets tests submit the same at will
REPEATABLE = "repeatable_job"
# an organization's name is data: it must survive SQL, JSON and URLs
AWKWARD = """O'Brien & "Söhne" 100% 日本"""


# jobs that tests wrote to past the engine: their logs cannot know it
planted: set[str] = set()


def make_world() -> SimpleNamespace:
	make_repeatable_type()
	a, b = make_organization(f"A {AWKWARD}"), make_organization("B")
	return SimpleNamespace(
		a=a,
		b=b,
		manager=make_user("manager", ["System Manager"]),
		admin_a=make_user("admin-a", ["Dartwing Admin"], [a]),
		user_a=make_user("user-a", ["Dartwing User"], [a]),
		colleague_a=make_user("colleague-a", ["Dartwing User"], [a]),
		admin_b=make_user("admin-b", ["Dartwing Admin"], [b]),
		user_b=make_user("user-b", ["Dartwing User"], [b]),
		stranger=make_user("stranger", []),
	)


def make_organization(label: str = "Org", **fields) -> str:
	name = f"{label} {frappe.generate_hash(length=8)}"
	return frappe.get_doc({"doctype": "Organization", "organization_name": name, **fields}).insert().name


def make_user(label: str, roles: list[str], organizations: list[str] = ()) -> str:
	user = frappe.get_doc(
		{
			"doctype": "User",
			"email": f"{label}-{frappe.generate_hash(length=8)}@example.com",
			"first_name": label,
			"send_welcome_email": 0,
			"enabled": 1,
			"user_type": "System User",
			"language": "en",
			"roles": [{"role": role} for role in roles],
		}
	)
	# Frappe lets sixty users an hour be made, unless they are imported
	frappe.flags.in_import = True
	user.insert()
	frappe.flags.in_import = False
	for organization in organizations:
		permit(user.name, organization)
	return user.name


def permit(user: str, organization: str) -> None:
	frappe.get_doc(
		{
			"doctype": "User Permission",
			"user": user,
			"allow": "Organization",
			"for_value": organization,
			"apply_to_all_doctypes": 1,
		}
	).insert()


def expel(user: str, organization: str) -> None:
	name = frappe.db.get_value("User Permission", {"user": user, "for_value": organization})
	frappe.delete_doc("User Permission", name)


def make_job_type(**fields):
	name = f"type_{frappe.generate_hash(length=8)}"
	values = {
		"type_name": name,
		"display_name": name,
		"handler_method": "dartwing_jobs.samples.execute_sample_job",
		"deduplication_window": 0,
	}
	return frappe.get_doc({"doctype": "Job Type", **values, **fields}).insert()


def make_repeatable_type() -> None:
	if not frappe.db.exists("Job Type", REPEATABLE):
		make_job_type(type_name=REPEATABLE, default_timeout=60, max_retries=3)


def make_queue(rq_queue: str = "default") -> str:
	"""A queue of its own, so that drains see nothing else."""
	name = f"q:test-{frappe.generate_hash(length=8)}"
	return frappe.get_doc({"doctype": "Job Queue", "queue_name": name, "rq_queue": rq_queue}).insert().name


def make_template(organization: str | None = None, **fields):
	values = {"template_name": f"Template {frappe.generate_hash(length=8)}", "job_type": REPEATABLE}
	return frappe.get_doc(
		{"doctype": "Job Template", "organization": organization, **values, **fields}
	).insert()


def new_job(organization: str, **fields):
	"""A job that is not inserted yet."""
	return frappe.get_doc(
		{"doctype": "Background Job", "job_type": REPEATABLE, "organization": organization, **fields}
	)


def make_job(organization: str, status: str = states.PENDING, **fields):
	"""A job planted in a status, past the engine: tests of doors start from every status."""
	job = new_job(organization, **fields).insert()
	if status != states.PENDING:
		place = {} if status in states.WAITING else {"run_at": None, **OUT_OF_LINE}
		plant(job.name, status=status, **place)
		job.reload()
	return job


def plant(job_name: str, **columns) -> None:
	planted.add(job_name)
	frappe.db.set_value("Background Job", job_name, columns, update_modified=False)


def stored_status(job_name: str) -> str:
	return frappe.db.get_value("Background Job", job_name, "status")


def story(job_name: str) -> list[tuple]:
	"""The moves that a job's log tells, oldest first."""
	rows = frappe.get_all(
		"Job Execution Log",
		filters={"background_job": job_name},
		fields=["from_status", "to_status", "event"],
		order_by="timestamp asc, creation asc",
	)
	return [(row.from_status, row.to_status, row.event) for row in rows]


def set_site_zone(zone: str) -> None:
	"""As the settings' form does, and at once: processes remember the zone for a minute."""
	frappe.db.set_single_value("System Settings", "time_zone", zone)
	frappe.db.commit()
	frappe.clear_document_cache("System Settings", "System Settings")
	if hasattr(frappe.local, "system_settings"):
		del frappe.local.system_settings
	clock._zones.clear()
