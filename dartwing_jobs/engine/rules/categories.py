"""Categories of work and what each brings along: queue, retries, backoff, key lifetime, rules.

These six are made when a site lacks them. What counts are the rows that the site has: `policies.py`.
"""

GENERAL = "General"
NOTIFICATION = "Notification"
AUDIT_ENRICHMENT = "Audit Enrichment"
PLANNING = "Planning"
IMPORT_EXPORT = "Import/Export"
MAINTENANCE = "Maintenance"

DEFAULTS = {
	"max_retries": 4,  # five attempts
	"backoff_base_seconds": 5,
	"backoff_cap_seconds": 300,
	"key_lifetime_days": 7,
	"allow_schedule": 0,
	"restricts_writes": 0,
	"best_effort": 0,
	"rate_limit": 0,
	"rate_window_seconds": 60,
}
STANDARD_CATEGORIES = {
	GENERAL: {
		"job_queue": "q:default",
		"allow_schedule": 1,
		"description": "What follows a user's write.",
	},
	NOTIFICATION: {
		"job_queue": "q:notifications",
		"max_retries": 9,
		"backoff_cap_seconds": 1800,
		"allow_schedule": 1,
		"best_effort": 1,
		"description": "Mail, messages and other notifications. They never fail the work that they tell of.",
	},
	AUDIT_ENRICHMENT: {
		"job_queue": "q:default",
		"restricts_writes": 1,
		"description": "Completes audit records. Writes nothing but those.",
	},
	PLANNING: {
		"job_queue": "q:planning",
		"max_retries": 2,
		"backoff_cap_seconds": 120,
		"key_lifetime_days": 30,
		"restricts_writes": 1,
		"description": "Computes proposals, as files to look at. Writes only what its type may.",
	},
	IMPORT_EXPORT: {
		"job_queue": "q:exports",
		"backoff_cap_seconds": 600,
		"key_lifetime_days": 30,
		"description": "Long work on files. What comes in is checked against its checksum.",
	},
	MAINTENANCE: {
		"job_queue": "q:maintenance",
		"allow_schedule": 1,
		"rate_limit": 60,
		"description": "Scheduled housekeeping, at most one start a second of each type.",
	},
}
