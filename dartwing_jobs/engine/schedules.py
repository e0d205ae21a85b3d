"""Schedules: what people and programs do with them. When they fire, `ticks` makes their jobs."""

from datetime import datetime

import frappe

from dartwing_jobs import clock
from dartwing_jobs.engine import bell, fires, queue_rules, statements
from dartwing_jobs.engine.queues import MAINTENANCE_QUEUE

DOCTYPE = "Job Schedule"


def disable_for_template(template: str, reason: str) -> list[str]:
	"""Disables the schedules of a template that can no longer be used; returns their names."""
	enabled = statements.fetch(
		f"""select name, organization from `tab{DOCTYPE}` where job_template = %s and enabled = 1
		order by name""",
		(template,),
	)
	for schedule in enabled:
		disable(schedule, reason)
	return [schedule.name for schedule in enabled]


def disable(schedule, reason: str) -> None:
	"""In the caller's transaction; a line among its fires tells why. An open form must not undo it."""
	columns = {"enabled": 0, "next_fire_at": None, "disabled_reason": reason}
	changed = {"modified": clock.now(), "modified_by": frappe.session.user}
	statements.update(DOCTYPE, schedule.name, columns | changed)
	fires.record_now(schedule, fires.DISABLED, reason)
	frappe.clear_document_cache(DOCTYPE, schedule.name)


def next_due() -> datetime | None:
	"""When the next schedule of the site fires, in UTC; None when none will."""
	return statements.fetch(f"select min(next_fire_at) as due from `tab{DOCTYPE}`")[0].due


def queue_of_next() -> str:
	"""Where the next fire's job will wait: its worker is the one to wake for it."""
	rows = statements.fetch(
		f"""select template.job_type from `tab{DOCTYPE}` schedule
		join `tabJob Template` template on template.name = schedule.job_template
		where schedule.next_fire_at is not null order by schedule.next_fire_at, schedule.name limit 1"""
	)
	return queue_of(rows[0].job_type) if rows else MAINTENANCE_QUEUE


def queue_of(job_type: str) -> str:
	if not frappe.db.exists("Job Type", job_type):
		return MAINTENANCE_QUEUE
	return queue_rules.queue_of_scheduled(frappe.get_cached_doc("Job Type", job_type))


def wake_workers_after_commit(schedule) -> None:
	"""If it fires soon, a worker is to wait for that."""
	job_type = frappe.db.get_value("Job Template", schedule.job_template, "job_type")
	bell.ring_when_due_after_commit(queue_of(job_type), schedule.next_fire_at)
