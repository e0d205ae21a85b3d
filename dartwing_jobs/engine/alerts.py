"""Tells people about dead letters: on the jobs' own log, by Frappe's notifications, by a signed webhook.

An alert is a job: durable, retried, one for all dead letters of a type in an organization that nobody was
told of yet. A dead letter is told of when its log says so; until then, whoever looks finds it.
"""

import html
import json
import urllib.request
from datetime import datetime, timedelta, timezone

import frappe
from frappe import _
from frappe.utils import get_url_to_form

from dartwing_jobs import clock, parameters, settings, tenancy
from dartwing_jobs.engine import database, log, statements, states
from dartwing_jobs.engine.burials import ALERT
from dartwing_jobs.engine.handling.handlers import job_handler
from dartwing_jobs.engine.observing import reports
from dartwing_jobs.engine.rules.categories import NOTIFICATION
from dartwing_jobs.engine.signatures import sign, verify
from dartwing_jobs.engine.submit import submit
from dartwing_jobs.errors import InvalidJobError, PermanentError

__all__ = ["call", "call_for_all", "call_for_recent", "tell", "verify"]

ALERTED = "job.alerted"
SECRET = "dartwing_alert_secret"
TIMEOUT_SECONDS = 10
# one alert tells of so many; the next one of the rest
MOST_JOBS = 5000
MOST_NAMED = 100
LONGEST_ERROR = 300
# alerts and the sweep of every minute look back so far, more than a change of the clocks; every hour a duty
# looks back for ever
RECENT = timedelta(hours=3)
FOR_EVER = timedelta(days=36500)
COLUMNS = ("name", "status", "attempt", "retry_count", "moves", *log.FROM_THE_JOB)
TOLD_OF = ("error_message", "error_type", "created_at", "started_at", "completed_at")
# by type and moment: that is how old ones are passed over. Counted: for "not exists" PostgreSQL may read the
# whole log
UNTOLD = f"""from `tabBackground Job` force index (idx_job_type_status)
	where job_type = %s and status = %s and modified > %s and discarded_at is null and 0 = (
	select count(*) from `tabJob Execution Log` told
	where told.background_job = `tabBackground Job`.name and told.event = '{ALERTED}')"""


def call(organization: str, job_type: str, job_name: str, look_back: timedelta = RECENT) -> None:
	"""Has people told, once what there is to tell is committed. Never raises: a sweep calls again."""
	try:
		_call(organization, job_type, job_name, clock.now() - look_back)
	except Exception as error:
		database.rollback()
		reports.to_error_log(f"{job_name}: the alert about this dead letter could not be submitted", error)
		frappe.db.commit()  # nosemgrep: the error's record


def call_for_recent() -> None:
	"""Every minute, with the sweep: for what a process that was killed in between has left untold."""
	_call_for_untold(RECENT)


@reports.masked
def call_for_all() -> None:
	"""Every hour, from the scheduler: the same, however long ago it was."""
	_call_for_untold(FOR_EVER)


@job_handler(
	job_type=ALERT,
	display_name="Alert about Dead Letters",
	description="Tells administrators, and the webhook of Job Engine Settings, about dead letters.",
	category=NOTIFICATION,
	job_queue="q:notifications",
	timeout=120,
	deduplication_window=0,  # two alerts may look alike, and tell of different jobs
	requires_permission="Job Engine Settings:write",
)
def tell(given: dict, context) -> dict | None:
	"""Each step is done once, however often the alert is tried: nobody is told twice."""
	which = context.organization, given["job_type"], clock.parse(given["since"])
	alert = context.idempotent("collect", _collect, *which, context.job_name)
	if alert is None:
		return None  # another alert was quicker
	people = context.idempotent("notify", _notify, alert)
	answer = context.idempotent("post", _post, alert)
	_call_for_rest(*which)
	return {"jobs": alert["count"], "people": people, "webhook": answer}


@database.own_transaction
def _call(organization: str, job_type: str, job_name: str, since: datetime) -> None:
	# in this order: of many that die together only the first needs to know more
	if _one_waits(organization, job_type) or not _is_switched_on():
		return
	try:
		tenancy.check_organization_is_active(organization)
	except InvalidJobError as error:
		_tell_nobody(organization, job_type, since, str(error))
	else:
		_submit(organization, job_type, since, job_name)


def _call_for_rest(organization: str, job_type: str, since: datetime) -> None:
	"""What died while this alert waited to be tried again saw it wait, and called nobody."""
	rest = _untold_jobs(organization, job_type, since, 1)
	if rest and not _one_waits(organization, job_type):
		_submit(organization, job_type, since, rest[0].name)


def _is_switched_on() -> bool:
	"""An administrator may want no alerts. When switched on again, they tell of what is left."""
	return bool(frappe.db.get_value("Job Type", ALERT, "is_enabled"))


def _one_waits(organization: str, job_type: str) -> bool:
	"""An alert that waits will see what is committed by now. One that runs may have looked already."""
	waiting = statements.fetch(
		"""select input_parameters from `tabBackground Job`
		where job_type = %s and organization = %s and status in (%s, %s)""",
		(ALERT, organization, *sorted(states.WAITING)),
	)
	return job_type in [parameters.load(row.input_parameters).get("job_type") for row in waiting]


def _submit(organization: str, job_type: str, since: datetime, job_name: str) -> None:
	given = {"job_type": job_type, "since": since.isoformat(), "job": job_name}
	submit(ALERT, given, organization, owner_user="Administrator", must_submit=True)


def _tell_nobody(organization: str, job_type: str, since: datetime, reason: str) -> None:
	"""An organization that is gone has nobody to tell, and no jobs: the logs must do."""
	jobs = _untold_jobs(organization, job_type, since, MOST_JOBS)
	_mark_as_told(jobs, reason, {})
	frappe.log_error(title=f"Dead letters of type {job_type}", message=f"{len(jobs)} jobs. {reason}")


def _call_for_untold(look_back: timedelta) -> None:
	if not _is_switched_on():
		return
	since = clock.now() - look_back
	for job_type in statements.fetch("select name from `tabJob Type` where name <> %s", (ALERT,)):
		left = statements.fetch(
			f"select organization, max(name) as name {UNTOLD} group by organization",
			(job_type.name, states.DEAD_LETTER, since),
		)
		for row in left:
			call(row.organization, job_type.name, row.name, look_back)


def _collect(organization: str, job_type: str, since: datetime, alert: str) -> dict | None:
	"""Takes what nobody was told of, and says so on its log: no other alert tells of it again."""
	jobs = _untold_jobs(organization, job_type, since, MOST_JOBS, "for update skip locked")
	if not jobs:
		return None
	_mark_as_told(jobs, f"Told by {alert}", {"alert": alert})
	return _described(jobs, alert)


def _untold_jobs(organization: str, job_type: str, since: datetime, most: int, locking: str = "") -> list:
	"""Oldest first."""
	columns = ", ".join(f"`{column}`" for column in (*COLUMNS, *TOLD_OF))
	return statements.fetch(
		f"select {columns} {UNTOLD} and organization = %s order by modified, name limit {most} {locking}",
		(job_type, states.DEAD_LETTER, since, organization),
	)


def _mark_as_told(jobs: list, message: str, details: dict) -> None:
	told = {"now": clock.now(), "message": message, "details": details}
	log.insert_rows([log.row(job, ALERTED, job.status, job.status, **told) for job in jobs])


def _described(jobs: list, alert: str) -> dict:
	"""What an alert says: of the last one everything, of the others that they are there."""
	last = jobs[-1]
	return {
		"event": "job.deadlettered",
		"alert": alert,
		"organization": last.organization,
		"job_type": last.job_type,
		"count": len(jobs),
		"jobs": [job.name for job in reversed(jobs[-MOST_NAMED:])],
		"job": last.name,
		"job_id": last.job_id,
		"error": last.error_message,
		"error_type": last.error_type,
		"attempts": last.attempt,
		"correlation_id": last.correlation_id,
		"created_at": clock.rfc3339(last.created_at),
		"started_at": clock.rfc3339(last.started_at),
		"died_at": clock.rfc3339(last.completed_at),
		"address": get_url_to_form("Background Job", last.name),
	}


def _notify(alert: dict) -> list[str]:
	people = tenancy.admins_of(alert["organization"])
	link = {"document_type": "Background Job", "document_name": alert["job"]}
	for user in people:
		row = {"doctype": "Notification Log", "type": "Alert", "for_user": user, "subject": _subject(alert)}
		frappe.get_doc({**row, **link, "from_user": "Administrator"}).insert(ignore_permissions=True)
	return people


def _subject(alert: dict) -> str:
	if alert["count"] == 1:
		message = _("Job {1} ({2}, {3}) is a dead letter: {4}")
	else:
		message = _("{0} jobs ({2}, {3}) are dead letters; the last one is {1}: {4}")
	told = (alert["count"], alert["job"], alert["job_type"], alert["organization"], alert["error"] or "")
	return message.format(*(html.escape(str(value), quote=False)[:LONGEST_ERROR] for value in told))


def _post(alert: dict) -> int | None:
	"""Sends an alert to the webhook, if there is one; returns the status of its answer."""
	url, secret = settings.alert_webhook_url(), frappe.conf.get(SECRET)
	if not url:
		return None
	if not secret:
		raise PermanentError(f"The webhook has an address, but the site's config has no {SECRET}")
	body, now = json.dumps(alert, ensure_ascii=False).encode(), database.utc_now()
	timestamp = str(int(now.replace(tzinfo=timezone.utc).timestamp()))
	headers = {
		"Content-Type": "application/json",
		"X-Dartwing-Timestamp": timestamp,
		"X-Dartwing-Signature": sign(body, timestamp, secret),
	}
	request = urllib.request.Request(url, body, headers, method="POST")
	with _opener().open(request, timeout=TIMEOUT_SECONDS) as answer:
		return answer.status


def _opener() -> urllib.request.OpenerDirector:
	return urllib.request.build_opener(_NoRedirects)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
	"""What is signed goes to the address that an administrator has set, and to no other."""

	def redirect_request(self, *args, **kwargs) -> None:
		return None
