"""Schedules for tests: made for a moment long ago, so that a tick at that moment finds them and no others."""

from datetime import datetime, timedelta

import frappe

from dartwing_jobs.engine.schedules import ticks
from dartwing_jobs.tests.world import make_template

# a Monday; what other tests leave behind fires long after it
NOON = datetime(2026, 6, 15, 12, 0)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
EVERY_MINUTE, EVERY_DAY = "* * * * *", "0 12 * * *"


def make_schedule(organization: str, next_fire_at: datetime | None = NOON, template=None, **fields):
	"""A committed schedule in UTC whose next fire was announced for a moment; as saved if that is None."""
	template = template or make_template(organization)
	values = {"schedule_name": f"s {frappe.generate_hash(length=8)}", "cron_expression": EVERY_DAY}
	values |= {"time_zone": "UTC", "job_template": template.name, "organization": organization}
	schedule = frappe.get_doc({"doctype": "Job Schedule", **values, **fields}).insert()
	if next_fire_at:
		plant(schedule.name, next_fire_at=next_fire_at)
	frappe.db.commit()
	return schedule


def plant(schedule: str, **columns) -> None:
	"""Writes past the document, as no door lets anybody; committed."""
	frappe.db.set_value("Job Schedule", schedule, columns, update_modified=False)
	frappe.db.commit()


def tick(now: datetime = NOON) -> int:
	frappe.db.commit()
	return ticks.tick(now)


def read(schedule: str):
	frappe.db.rollback()
	return frappe.db.get_value("Job Schedule", schedule, "*", as_dict=True)


def fires_of(schedule: str) -> list[tuple[datetime, str]]:
	"""Fire times and what became of them, in order."""
	return [(row.fire_at, row.outcome) for row in lines_of(schedule)]


def lines_of(schedule: str) -> list:
	frappe.db.rollback()
	filters = {"job_schedule": schedule}
	return frappe.get_all("Job Schedule Fire", filters=filters, fields=["*"], order_by="fire_at asc")


def jobs_of(schedule: str) -> list:
	"""The jobs of a schedule, in the order of their fires."""
	names = [row.background_job for row in lines_of(schedule) if row.background_job]
	return [frappe.get_doc("Background Job", name) for name in names]


def count_jobs(*schedules: str) -> int:
	frappe.db.rollback()
	return frappe.db.count("Background Job", {"job_schedule": ["in", schedules]})


def forget_all() -> None:
	"""No schedule is to fire in the tests that follow."""
	frappe.db.rollback()
	frappe.set_user("Administrator")
	table = frappe.qb.DocType("Job Schedule")
	frappe.qb.update(table).set(table.next_fire_at, None).set(table.enabled, 0).run()
	frappe.db.commit()
