"""A function that an app wants run at certain times, and when it ran last."""

from collections.abc import Iterator
from datetime import datetime

import frappe
from croniter import croniter
from frappe.model.document import Document
from frappe.utils import get_datetime, now_datetime
from frappe.utils.background_jobs import enqueue, is_job_enqueued

CRON = {"Yearly": "0 0 1 1 *", "Annual": "0 0 1 1 *", "Monthly": "0 0 1 * *", "Weekly": "0 0 * * 0"}
CRON |= {"Daily": "0 0 * * *", "Hourly": "0 * * * *", "All": "*/4 * * * *"}


class ScheduledJobType(Document):
	def autoname(self) -> None:
		self.name = ".".join(self.method.split(".")[-2:])

	def enqueue(self) -> None:
		job_id = f"scheduled_job::{self.method}"
		if self.is_event_due() and not is_job_enqueued(job_id):
			queue = "long" if "Long" in self.frequency else "default"
			enqueue(run_scheduled_job, queue=queue, job_type=self.method, job_id=job_id)

	def is_event_due(self, current_time: datetime | None = None) -> bool:
		"""Missed runs are not made up for: the next one counts from the last."""
		last = get_datetime(self.last_execution or self.creation)
		cron = self.cron_format or CRON[self.frequency.removesuffix(" Long")]
		return croniter(cron, last).get_next(datetime) <= (current_time or now_datetime())


def run_scheduled_job(job_type: str) -> None:
	job = frappe.get_doc("Scheduled Job Type", {"method": job_type})
	job.db_set("last_execution", now_datetime(), update_modified=False)
	frappe.db.commit()
	frappe.get_attr(job_type)()


def sync_jobs() -> None:
	"""One row per function named in `scheduler_events`; rows of functions no longer named go."""
	wanted = list(_events(frappe.get_hooks("scheduler_events", {})))
	for event in wanted:
		if not frappe.db.exists("Scheduled Job Type", event):
			frappe.db.delete("Scheduled Job Type", {"method": event["method"]})
			frappe.get_doc({"doctype": "Scheduled Job Type", **event}).insert()
	frappe.db.delete("Scheduled Job Type", {"method": ["not in", [event["method"] for event in wanted]]})


def _events(hooks: dict) -> Iterator[dict]:
	for kind, value in hooks.items():
		for cron, methods in value.items() if kind == "cron" else [(None, value)]:
			frequency = kind.replace("_", " ").title()
			yield from ({"method": m, "frequency": frequency, "cron_format": cron} for m in methods)
