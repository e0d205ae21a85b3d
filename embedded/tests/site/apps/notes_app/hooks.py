before_install = "notes_app.api.before_install"
after_install = "notes_app.api.after_install"
after_migrate = "notes_app.api.after_migrate"
after_job = "notes_app.api.after_job"
scheduler_events = {"hourly": ["notes_app.api.each_hour"], "cron": {"*/5 * * * *": ["notes_app.api.for_all"]}}
