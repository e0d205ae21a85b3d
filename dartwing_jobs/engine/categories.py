"""Categories of work and what each brings along: queue, retries, backoff, key lifetime, scheduling."""

from typing import NamedTuple

GENERAL = "General"
NOTIFICATION = "Notification"
AUDIT_ENRICHMENT = "Audit Enrichment"
PLANNING = "Planning"
IMPORT_EXPORT = "Import/Export"
MAINTENANCE = "Maintenance"


class Category(NamedTuple):
	queue: str
	max_retries: int | None = None  # None: the field's default stays
	backoff_base_seconds: int = 5
	backoff_cap_seconds: int = 300
	key_lifetime_days: int = 7
	allow_schedule: bool = False


CATEGORIES = {
	GENERAL: Category("q:default", allow_schedule=True),
	NOTIFICATION: Category("q:notifications", max_retries=9, backoff_cap_seconds=1800, allow_schedule=True),
	AUDIT_ENRICHMENT: Category("q:default"),
	PLANNING: Category("q:planning", max_retries=2, backoff_cap_seconds=120, key_lifetime_days=30),
	IMPORT_EXPORT: Category("q:exports", max_retries=4, backoff_cap_seconds=600, key_lifetime_days=30),
	MAINTENANCE: Category("q:maintenance", allow_schedule=True),
}
