"""Dead letters over HTTP: list, replay, edit and replay, discard, one or many. Times are RFC 3339."""

from datetime import datetime

import frappe
from frappe import _
from frappe.utils import cint

from dartwing_jobs import clock
from dartwing_jobs.api.jobs import MOST_AT_ONCE, shown
from dartwing_jobs.engine import dead_letters
from dartwing_jobs.engine.dead_letters import Cursor
from dartwing_jobs.errors import InvalidJobError

BAR = "|"


@frappe.whitelist(methods=["GET", "POST"])
def list_dead_letters(
	organization: str | None = None,
	job_type: str | None = None,
	error_class: str | None = None,
	after: str | None = None,
	before: str | None = None,
	discarded: bool | int | str = False,
	replayed: bool | int | str = True,
	cursor: str | None = None,
	limit: int = 20,
) -> dict:
	"""A page of the dead letters one may see, newest first; `next` is the `cursor` of the next page.

	Discarded ones are listed if asked for; those that were replayed, unless asked not to.
	"""
	filters = {"organization": organization, "job_type": job_type, "error_class": error_class}
	filters |= {"after": after, "before": before}
	limit = min(max(cint(limit), 1), MOST_AT_ONCE)
	kinds = {"discarded": _is_yes(discarded), "replayed": _is_yes(replayed)}
	rows = dead_letters.find(filters, limit + 1, _cursor(cursor), **kinds)
	page = rows[:limit]
	more = f"{page[-1].completed_at}{BAR}{page[-1].name}" if len(rows) > limit else None
	return {"dead_letters": [_shown(row) for row in page], "next": more}


@frappe.whitelist(methods=["POST"])
def replay(job: str, reason: str | None = None, again: bool | int | str = False) -> dict:
	"""Submits a dead letter again, as it was, and answers with the new job."""
	return shown(dead_letters.replay(job, reason=reason, again=_is_yes(again)))


@frappe.whitelist(methods=["POST"])
def edit_and_replay(
	job: str, parameters: dict | str, reason: str | None = None, again: bool | int | str = False
) -> dict:
	"""Submits a dead letter again with other parameters, and answers with the new job."""
	return shown(dead_letters.replay(job, parameters or {}, reason, again=_is_yes(again)))


@frappe.whitelist(methods=["POST"])
def discard(job: str, reason: str) -> dict:
	"""Nothing is to be done about it: it is no longer listed."""
	dead_letters.discard(job, reason)
	return {"job": job}


@frappe.whitelist(methods=["POST"])
def replay_many(
	filters: dict | str, limit: int = dead_letters.MOST_AT_ONCE, reason: str | None = None
) -> dict:
	"""Replays what the filters find, oldest first; answers with {done, failed, left}."""
	return dead_letters.replay_many(_filters(filters), limit, reason)


@frappe.whitelist(methods=["POST"])
def discard_many(filters: dict | str, reason: str, limit: int = dead_letters.MOST_AT_ONCE) -> dict:
	"""Discards what the filters find, oldest first; answers as `replay_many`."""
	return dead_letters.discard_many(_filters(filters), reason, limit)


def _shown(row) -> dict:
	decided = {"discarded_by": row.discarded_by, "discard_reason": row.discard_reason}
	decided |= {"discarded_at": clock.rfc3339(row.discarded_at), "replayed_as": row.replayed_as}
	return {**shown(row), **decided}


def _filters(given: dict | str) -> dict:
	filters = frappe.parse_json(given)
	if not isinstance(filters, dict) or not isinstance(filters.get("names", []), list):
		frappe.throw(_("Filters are a JSON object, and names in it a list."), InvalidJobError)
	return filters


def _cursor(text: str | None) -> Cursor | None:
	if not text:
		return None
	moment, _bar, name = text.partition(BAR)
	died_at = clock.parse(moment)
	if not (isinstance(died_at, datetime) and name):
		frappe.throw(_("{0} is not where a page ended.").format(text), InvalidJobError)
	return Cursor(died_at, name)


def _is_yes(value: bool | int | str) -> bool:
	"""Query strings have words only."""
	return value is True or str(value).lower() in ("1", "true", "yes")
