"""Cron expressions: five fields that fire at least once."""

from datetime import datetime

import frappe
from croniter import CroniterBadCronError, CroniterBadDateError, croniter
from frappe import _

from dartwing_jobs.errors import InvalidJobError

# every fifth of a leap day that falls on one given weekday: the rarest dates repeat within this many years
YEARS_TO_SEARCH = 50


def check(expression: str, now: datetime) -> None:
	"""Raises when the expression is malformed or can never fire."""
	if len(expression.split()) != 5:
		message = _(
			"{0} is not a cron expression: write minute, hour, day, month, weekday, such as 0 9 * * MON-FRI."
		)
		frappe.throw(message.format(frappe.bold(expression)), InvalidJobError)
	try:
		croniter(expression, now, max_years_between_matches=YEARS_TO_SEARCH).get_next(datetime)
	except CroniterBadDateError:
		frappe.throw(
			_("The cron expression {0} never fires.").format(frappe.bold(expression)), InvalidJobError
		)
	except (CroniterBadCronError, ValueError) as e:
		message = _("{0} is not a valid cron expression: {1}.")
		frappe.throw(message.format(frappe.bold(expression), e), InvalidJobError)
