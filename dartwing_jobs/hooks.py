"""What Frappe asks of this app: a table of contents, no logic."""

app_name = "dartwing_jobs"
app_title = "Dartwing Jobs"
app_publisher = "Dartwing Jobs contributors"
app_description = "Durable, visible, multi-tenant background jobs for Frappe"
app_email = "maintainers@dartwing-jobs.invalid"
app_license = "mit"

after_install = "dartwing_jobs.install.after_install"
after_migrate = "dartwing_jobs.install.after_migrate"
after_uninstall = "dartwing_jobs.install.after_uninstall"

fixtures = [
	{"doctype": "Role", "filters": [["name", "in", ["Dartwing Admin", "Dartwing User"]]]},
	{"doctype": "Job Type", "filters": [["name", "=", "sample_job"]]},
]

permission_query_conditions = {
	"Background Job": "dartwing_jobs.tenancy.query_conditions",
	"Job Execution Log": "dartwing_jobs.tenancy.query_conditions",
	"Job Group": "dartwing_jobs.tenancy.query_conditions",
	"Job Idempotency Key": "dartwing_jobs.tenancy.query_conditions",
	"Job Run": "dartwing_jobs.tenancy.query_conditions",
	"Job Schedule": "dartwing_jobs.tenancy.query_conditions",
	"Job Template": "dartwing_jobs.tenancy.query_conditions",
}

has_permission = {
	"Background Job": "dartwing_jobs.tenancy.has_permission",
	"Job Execution Log": "dartwing_jobs.tenancy.has_permission",
	"Job Group": "dartwing_jobs.tenancy.has_permission",
	"Job Idempotency Key": "dartwing_jobs.tenancy.has_permission",
	"Job Run": "dartwing_jobs.tenancy.has_permission",
	"Job Schedule": "dartwing_jobs.tenancy.has_permission",
	"Job Template": "dartwing_jobs.tenancy.has_permission",
}

doc_events = {
	"DocShare": {"validate": "dartwing_jobs.tenancy.refuse_sharing"},
}

override_whitelisted_methods = {
	"frappe.client.get_count": "dartwing_jobs.overrides.get_count",
	"frappe.client.validate_link": "dartwing_jobs.overrides.validate_link",
	"frappe.desk.search.get_link_title": "dartwing_jobs.overrides.get_link_title",
}

# Frappe's link check is per linking DocType. Jobs and what belongs to them never stop somebody from deleting
# an organization, a user, a template or a group; Job Type and Job Queue check their jobs themselves.
ignore_links_on_delete = [
	"Background Job",
	"Job Execution Log",
	"Job Group",
	"Job Idempotency Key",
	"Job Run",
	"Job Schedule",
]
