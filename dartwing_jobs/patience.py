"""The header Retry-After: how long somebody is to wait whose request was refused for the moment only."""

from dartwing_jobs.errors import QueueFull, SubmitConflict

# a worker makes room within seconds; who met another transaction can try again at once
SECONDS = {QueueFull.__name__: 5, SubmitConflict.__name__: 1}
STATUSES = frozenset({QueueFull.http_status_code, SubmitConflict.http_status_code})


def tell(response=None, request=None) -> None:
	"""The hook after_request, for every request of the site: nearly all are none of ours."""
	if response is None or response.status_code not in STATUSES or not response.is_json:
		return
	if seconds := SECONDS.get(_error_in(response.json)):
		response.headers.setdefault("Retry-After", str(seconds))


def _error_in(answer: dict) -> str | None:
	"""The class of the error, as either version of Frappe's API names it."""
	errors = answer.get("errors") or [{}]
	return answer.get("exc_type") or errors[0].get("type")
