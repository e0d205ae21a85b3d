"""A function that an app wants run at certain times, and when it ran last."""

from datetime import datetime, timedelta
from random import randint
from typing import Any

import frappe
from croniter import CroniterBadCronError, croniter
from frappe import _
from frappe.model.document import Document
from frappe.utils import get_datetime, now_datetime
from frappe.utils.background_jobs import enqueue, is_job_enqueued

CRON = {"Yearly": "0 0 1 1 *", "Annual": "0 0 1 1 *", "Monthly": "0 0 1 * *", "Weekly": "0 0 * * 0"}
CRON |= {"Daily": "0 0 * * *", "Hourly": "0 * * * *"}


class ScheduledJobType(Document):
	def autoname(self) -> None:
		self.name = ".".join(self.method.split(".")[-2:])

	def validate(self) -> None:
		if self.frequency != "Cron":
			return
		try:
			croniter(self.cron_format or "")
		except CroniterBadCronError:
			frappe.throw(_("{0} is not a cron expression").format(self.cron_format))

	@property
	def rq_job_id(self) -> str:
		return f"scheduled_job::{self.method}"

	def enqueue(self, force: bool = False) -> bool:
		if not (force or self.is_event_due()) or is_job_enqueued(self.rq_job_id):
			return False
		queue = "long" if "Long" in self.frequency else "default"
		enqueue(run_scheduled_job, queue=queue, job_type=self.method, job_id=self.rq_job_id)
		return True

	def is_event_due(self, current_time: datetime | None = None) -> bool:
		return self.get_next_execution() <= (current_time or now_datetime())

	def get_next_execution(self) -> datetime:
		"""Missed runs are not made up for: the next one counts from the last."""
		last = get_datetime(self.last_execution or self.creation)
		jitter = randint(1, 600) if "Long" in self.frequency else 0
		return croniter(self._cron(), last).get_next(datetime) + timedelta(seconds=jitter)

	def execute(self) -> None:
		self.db_set("last_execution", now_datetime(), update_modified=False)
		frappe.db.commit()
		try:
			frappe.get_attr(self.method)()
			frappe.db.commit()
		except Exception:
			frappe.db.rollback()
			frappe.log_error(title=f"Scheduled job {self.method}"[:140])
			frappe.db.commit()

	def _cron(self) -> str:
		if self.frequency == "All":
			return f"*/{(frappe.get_conf().scheduler_interval or 240) // 60} * * * *"
		return self.cron_format or CRON[self.frequency.removesuffix(" Long")]


def run_scheduled_job(job_type: str) -> None:
	frappe.get_doc("Scheduled Job Type", {"method": job_type}).execute()


def sync_jobs(hooks: dict | None = None) -> None:
	"""One row per function named in `scheduler_events`; rows of functions no longer named go."""
	wanted = list(_events(hooks or frappe.get_hooks("scheduler_events", {})))
	for event in wanted:
		if not frappe.db.exists("Scheduled Job Type", event):
			frappe.db.delete("Scheduled Job Type", {"name": ".".join(event["method"].split(".")[-2:])})
			frappe.get_doc({"doctype": "Scheduled Job Type", **event}).insert()
	methods = [event["method"] for event in wanted]
	for row in frappe.get_all("Scheduled Job Type", fields=["name", "method"]):
		if row.method not in methods:
			frappe.delete_doc("Scheduled Job Type", row.name)


def _events(hooks: dict[str, Any]) -> Any:
	for kind, named in hooks.items():
		if kind == "cron":
			for cron_format, methods in named.items():
				yield from ({"method": m, "frequency": "Cron", "cron_format": cron_format} for m in methods)
		else:
			frequency = kind.replace("_", " ").title()
			yield from ({"method": method, "frequency": frequency} for method in named)
