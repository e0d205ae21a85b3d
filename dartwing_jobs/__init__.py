"""Dartwing Jobs: durable, visible, multi-tenant background jobs for Frappe."""

from importlib import import_module

__version__ = "0.1.0"

# what apps import from here, and where it is (behind a colon: by which name); loaded when asked for, because
# Frappe imports this package for its hooks
PUBLIC = {
	"submit": "engine.submit",
	"submit_many": "engine.submit",
	"schedule": "engine.schedules.recurring",
	"pause_schedule": "engine.schedules.schedules:pause",
	"resume_schedule": "engine.schedules.schedules:resume",
	"trigger_schedule": "engine.schedules.schedules:trigger",
	"upcoming_fires": "engine.schedules.schedules:upcoming",
	"submit_from_template": "engine.intake.templates",
	"status": "api.jobs",
	"cancel": "engine.control",
	"retry": "engine.control",
	"run_now": "engine.control",
	"chain": "engine.successors",
	"replay": "engine.dead_letters",
	"replay_many": "engine.dead_letters",
	"discard": "engine.dead_letters",
	"discard_many": "engine.dead_letters",
	"group": "engine.groups.groups",
	"cancel_group": "engine.groups.groups",
	"group_status": "engine.groups.groups",
	"group_progress": "engine.groups.groups",
	"job_handler": "engine.handling.handlers",
	"stable_key": "engine.intake.fingerprints",
	"notification_key": "engine.intake.fingerprints",
	"Snooze": "engine.handling.context",
	"TransientError": "errors",
	"PermanentError": "errors",
	"InvalidJobError": "errors",
	"KeyConflict": "errors",
	"DuplicateJob": "errors",
	"SubmitConflict": "errors",
	"GroupEnded": "errors",
}


def __getattr__(name: str):
	if name not in PUBLIC:
		raise AttributeError(f"dartwing_jobs has no {name}")
	module, _colon, attribute = PUBLIC[name].partition(":")
	return getattr(import_module(f"dartwing_jobs.{module}"), attribute or name)
