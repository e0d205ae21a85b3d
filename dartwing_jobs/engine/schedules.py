"""Schedules: what people and programs do with them. When they fire, `ticks` makes their jobs."""

import frappe

from dartwing_jobs import clock
from dartwing_jobs.engine import fires, statements

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
