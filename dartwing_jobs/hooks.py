"""What Frappe asks of this app: a table of contents, no logic."""

app_name = "dartwing_jobs"
app_title = "Dartwing Jobs"
app_publisher = "Dartwing Jobs contributors"
app_description = "Durable, visible, multi-tenant background jobs for Frappe"
app_email = "maintainers@dartwing-jobs.invalid"
app_license = "mit"

after_install = "dartwing_jobs.install.after_install"
after_app_install = "dartwing_jobs.install.after_app_install"
after_migrate = "dartwing_jobs.install.after_migrate"
before_uninstall = "dartwing_jobs.uninstall.before_uninstall"
after_uninstall = "dartwing_jobs.uninstall.after_uninstall"

fixtures = [
	{"doctype": "Role", "filters": [["name", "in", ["Dartwing Admin", "Dartwing User"]]]},
	{"doctype": "Job Type", "filters": [["name", "=", "sample_job"]]},
]

permission_query_conditions = {
	"Background Job": "dartwing_jobs.tenancy.query_conditions",
	"File": "dartwing_jobs.references.file_conditions",
	"Job Execution Log": "dartwing_jobs.tenancy.query_conditions",
	"Job Group": "dartwing_jobs.tenancy.query_conditions",
	"Job Idempotency Key": "dartwing_jobs.tenancy.query_conditions",
	"Job Organization Policy": "dartwing_jobs.tenancy.query_conditions",
	"Job Run": "dartwing_jobs.tenancy.query_conditions",
	"Job Schedule": "dartwing_jobs.tenancy.query_conditions",
	"Job Schedule Fire": "dartwing_jobs.tenancy.query_conditions",
	"Job Step": "dartwing_jobs.tenancy.query_conditions",
	"Job Template": "dartwing_jobs.tenancy.query_conditions",
}

# where Desk draws fields as HTML, this makes them text; it runs as Desk loads a DocType, without any assets
doctype_list_js = {
	"Background Job": "public/js/plain_text.js",
	"Job Category": "public/js/plain_text.js",
	"Job Engine Settings": "public/js/plain_text.js",
	"Job Execution Log": "public/js/plain_text.js",
	"Job Group": "public/js/plain_text.js",
	"Job Idempotency Key": "public/js/plain_text.js",
	"Job Metric": "public/js/plain_text.js",
	"Job Organization Policy": "public/js/plain_text.js",
	"Job Queue": "public/js/plain_text.js",
	"Job Reservation": "public/js/plain_text.js",
	"Job Run": "public/js/plain_text.js",
	"Job Schedule": "public/js/plain_text.js",
	"Job Schedule Fire": "public/js/plain_text.js",
	"Job Step": "public/js/plain_text.js",
	"Job Template": "public/js/plain_text.js",
	"Job Trouble": "public/js/plain_text.js",
	"Job Turnstile": "public/js/plain_text.js",
	"Job Type": "public/js/plain_text.js",
}

has_permission = {
	"Background Job": "dartwing_jobs.tenancy.has_permission",
	"File": "dartwing_jobs.references.may_use_file",
	"Job Execution Log": "dartwing_jobs.tenancy.has_permission",
	"Job Group": "dartwing_jobs.tenancy.has_permission",
	"Job Idempotency Key": "dartwing_jobs.tenancy.has_permission",
	"Job Organization Policy": "dartwing_jobs.tenancy.has_permission",
	"Job Run": "dartwing_jobs.tenancy.has_permission",
	"Job Schedule": "dartwing_jobs.tenancy.has_permission",
	"Job Schedule Fire": "dartwing_jobs.tenancy.has_permission",
	"Job Step": "dartwing_jobs.tenancy.has_permission",
	"Job Template": "dartwing_jobs.tenancy.has_permission",
}

auth_hooks = ["dartwing_jobs.scraper.admit"]
after_request = ["dartwing_jobs.patience.tell"]

scheduler_events = {
	"cron": {"* * * * *": ["dartwing_jobs.engine.sweep.sweep"]},
	"hourly": ["dartwing_jobs.engine.alerts.call_for_all"],
	"hourly_long": ["dartwing_jobs.engine.retention.clean_up"],
}

dartwing_job_handlers = ["dartwing_jobs.engine.alerts.tell"]

doc_events = {
	"Address": {"validate": "dartwing_jobs.references.check_links"},
	"Comment": {"validate": "dartwing_jobs.references.check"},
	"Communication": {"validate": "dartwing_jobs.references.check"},
	"Contact": {"validate": "dartwing_jobs.references.check_links"},
	"DocShare": {"validate": "dartwing_jobs.references.refuse"},
	"Document Follow": {"validate": "dartwing_jobs.references.refuse"},
	"File": {"validate": "dartwing_jobs.references.check"},
	"Kanban Board": {"validate": "dartwing_jobs.references.refuse"},
	"Organization": {"validate": "dartwing_jobs.document.check_texts"},
	"Tag Link": {"validate": "dartwing_jobs.references.refuse"},
	"ToDo": {"validate": "dartwing_jobs.references.check"},
	"Workflow": {"validate": "dartwing_jobs.references.refuse"},
}

override_whitelisted_methods = {
	"frappe.client.get_count": "dartwing_jobs.overrides.get_count",
	"frappe.client.validate_link": "dartwing_jobs.overrides.validate_link",
	"frappe.client.validate_link_and_fetch": "dartwing_jobs.overrides.validate_link_and_fetch",
	"frappe.core.api.file.get_attached_images": "dartwing_jobs.overrides.get_attached_images",
	"frappe.desk.doctype.dashboard_chart.dashboard_chart.get": "dartwing_jobs.overrides.get_chart",
	"frappe.desk.doctype.tag.tag.get_tagged_docs": "dartwing_jobs.overrides.get_tagged_docs",
	"frappe.desk.form.document_follow.get_follow_users": "dartwing_jobs.overrides.get_follow_users",
	"frappe.desk.form.utils.get_next": "dartwing_jobs.overrides.get_next",
	"frappe.desk.listview.get_group_by_count": "dartwing_jobs.overrides.get_group_by_count",
	"frappe.desk.search.search_link": "dartwing_jobs.overrides.search_link",
	"frappe.desk.search.search_widget": "dartwing_jobs.overrides.search_widget",
	"frappe.desk.treeview.get_all_nodes": "dartwing_jobs.overrides.get_all_nodes",
	"frappe.email.relink": "dartwing_jobs.overrides.relink",
	"frappe.model.document.unlock_document": "dartwing_jobs.overrides.unlock_document",
	"frappe.model.mapper.map_docs": "dartwing_jobs.overrides.map_docs",
	"frappe.utils.file_manager.add_attachments": "dartwing_jobs.overrides.add_attachments",
	"frappe.utils.goal.get_monthly_goal_graph_data": "dartwing_jobs.overrides.get_monthly_goal_graph_data",
	"frappe.workflow.doctype.workflow.workflow.get_workflow_state_count": (
		"dartwing_jobs.overrides.get_workflow_state_count"
	),
}

# Frappe's link check is per linking DocType. Jobs and what belongs to them never stop somebody from deleting
# an organization, a user, a template or a group; Job Type and Job Queue check their jobs themselves.
ignore_links_on_delete = [
	"Background Job",
	"Job Execution Log",
	"Job Group",
	"Job Idempotency Key",
	"Job Organization Policy",
	"Job Run",
	"Job Schedule",
	"Job Schedule Fire",
	"Job Step",
]
