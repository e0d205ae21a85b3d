"""Dead letters over HTTP: list, replay, edit and replay, discard, one or many. Times are RFC 3339."""

from dartwing_jobs import clock
from dartwing_jobs.api.arguments import (
	BAR,
	Count,
	Json,
	Name,
	ObjectOfJson,
	PageOfMoments,
	PageSize,
	ParametersOfJob,
	Reason,
	Text,
	Yes,
)
from dartwing_jobs.api.endpoint import endpoint
from dartwing_jobs.api.jobs import shown
from dartwing_jobs.engine import dead_letters


@endpoint("GET", "POST")
def list_dead_letters(
	organization: Name | None = None,
	job_type: Name | None = None,
	error_class: Name | None = None,
	after: Name | None = None,
	before: Name | None = None,
	discarded: Yes = False,
	replayed: Yes = True,
	cursor: PageOfMoments | None = None,
	limit: PageSize = 20,
) -> dict:
	"""A page of the dead letters one may see, newest first; `next` is the `cursor` of the next page.

	Discarded ones are listed if asked for; those that were replayed, unless asked not to.
	"""
	filters = {"organization": organization, "job_type": job_type, "error_class": error_class}
	filters |= {"after": after, "before": before}
	kinds = {"discarded": discarded, "replayed": replayed}
	rows = dead_letters.find(filters, limit + 1, cursor, **kinds)
	page = rows[:limit]
	more = f"{page[-1].completed_at}{BAR}{page[-1].name}" if len(rows) > limit else None
	return {"dead_letters": [_shown(row) for row in page], "next": more}


@endpoint("POST")
def replay(job: Name, reason: Reason | None = None, again: Yes = False) -> dict:
	"""Submits a dead letter again, as it was, and answers with the new job."""
	return shown(dead_letters.replay(job, reason=reason, again=again))


@endpoint("POST")
def edit_and_replay(
	job: Name, parameters: ParametersOfJob, reason: Reason | None = None, again: Yes = False
) -> dict:
	"""Submits a dead letter again with other parameters, and answers with the new job."""
	return shown(dead_letters.replay(job, parameters or {}, reason, again=again))


@endpoint("POST")
def discard(job: Name, reason: Reason) -> dict:
	"""Nothing is to be done about it: it is no longer listed."""
	dead_letters.discard(job, reason)
	return {"job": job}


@endpoint("POST")
def replay_many(
	filters: ObjectOfJson, limit: Count = dead_letters.MOST_AT_ONCE, reason: Reason | None = None
) -> dict:
	"""Replays what the filters find, oldest first; answers with {done, failed, left}."""
	return dead_letters.replay_many(_filters(filters), limit, reason)


@endpoint("POST")
def discard_many(filters: ObjectOfJson, reason: Reason, limit: Count = dead_letters.MOST_AT_ONCE) -> dict:
	"""Discards what the filters find, oldest first; answers as `replay_many`."""
	return dead_letters.discard_many(_filters(filters), reason, limit)


def _shown(row) -> dict:
	decided = {"discarded_by": row.discarded_by, "discard_reason": row.discard_reason}
	decided |= {"discarded_at": clock.rfc3339(row.discarded_at), "replayed_as": row.replayed_as}
	return {**shown(row), **decided}


def _filters(given: dict) -> dict:
	"""Names are a list of texts, everything else is a text."""
	filters = {name: Text().read(name, value) for name, value in given.items() if name != "names" and value}
	if (names := given.get("names")) is not None:
		filters["names"] = [Text().read("names", name) for name in Json(list).read("names", names)]
	return filters
