app_name = "notes_app"
app_title = "Notes"

before_install = "notes_app.steps.before_install"
after_install = "notes_app.steps.after_install"
before_migrate = "notes_app.steps.before_migrate"
after_migrate = "notes_app.steps.after_migrate"
before_uninstall = "notes_app.steps.before_uninstall"
after_uninstall = "notes_app.steps.after_uninstall"
before_job = "notes_app.steps.before_job"
after_job = "notes_app.steps.after_job"

scheduler_events = {
	"hourly": ["notes_app.jobs.each_hour"],
	"cron": {"*/5 * * * *": ["notes_app.jobs.each_five_minutes"]},
}
