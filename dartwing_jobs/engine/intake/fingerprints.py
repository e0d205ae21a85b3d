"""Fingerprints: the same input gives the same text, however it was written down. No database here."""

import hashlib
import json
import re
from datetime import date, datetime, timezone
from typing import Any

KEY_LENGTH = 255
# a moment with an offset, as RFC 3339 and ISO 8601 write it
MOMENT = re.compile(
	r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d)(:\d\d)?(?:\.(\d{1,6}))?(?:[Zz]|([+-]\d\d):?(\d\d))", re.ASCII
)


def stable_key(
	job_type: str, organization: str, parameters: dict | None, project_id: str | None = None
) -> str:
	"""The idempotency key of this work, always the same: <job type>:<organization>:<project?>:<hash>."""
	whole = [job_type, organization, project_id, parameters or {}]
	return _key(job_type, organization, project_id, ending=digest(whole))


def notification_key(
	organization: str, recipient: str, template: str, payload: dict | None, schedule_bucket: Any = None
) -> str:
	"""The idempotency key of one message to one recipient, to be sent once in each `schedule_bucket`."""
	# the recipient is an address of a person: it is in the hash, and not to be read in the key
	whole = [organization, recipient, template, digest(payload or {}), schedule_bucket]
	return _key("notification", organization, ending=digest(whole))


def key_of_its_own(job) -> str:
	"""The key of a job that was given none: it ends in the job's own number, and nothing else has it."""
	return _key(job.job_type, job.organization, job.project_id, ending=job.job_id)


def job_hash(job, parameters: str | None) -> str:
	"""What makes two submissions the same to the deduplication window; priority and limits do not."""
	who = [job.job_type, job.organization, job.project_id, job.owner_user]
	when = [_as_text(job.scheduled_utc), job.depends_on]
	return digest([*who, *when, _loaded(parameters)])


def params_hash(job, parameters: str | None) -> str:
	"""What must be the same when an idempotency key is used again."""
	return digest([job.job_type, job.project_id, _loaded(parameters)])


def digest(value: Any) -> str:
	"""SHA-256 of the normalized value: sorted JSON, moments in UTC."""
	text = json.dumps(normalized(value), sort_keys=True, separators=(",", ":"), default=str)
	return hashlib.sha256(text.encode()).hexdigest()


def exact_digest(texts: list[str]) -> str:
	"""SHA-256 of texts as they are: two that differ by a byte have two."""
	return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


def normalized(value: Any) -> Any:
	if isinstance(value, dict):
		return {str(key): normalized(item) for key, item in value.items()}
	if isinstance(value, list | tuple):
		return [normalized(item) for item in value]
	if isinstance(value, str):
		return _normalized_text(value)
	return _as_text(value) if isinstance(value, date) else value


def _normalized_text(text: str) -> str:
	found = MOMENT.fullmatch(text)
	if not found:
		return text
	day, minute, second, fraction, hours, minutes = found.groups()
	offset = f"{hours}:{minutes}" if hours else "+00:00"
	written = f"{day}T{minute}{second or ':00'}.{(fraction or '').ljust(6, '0')}{offset}"
	try:
		return _as_text(datetime.fromisoformat(written))
	except (ValueError, OverflowError):
		return text  # the 31st of June is no moment


def _as_text(moment: date | str | None) -> str | None:
	if not isinstance(moment, date):
		return moment
	if isinstance(moment, datetime) and moment.tzinfo:
		moment = moment.astimezone(timezone.utc)
	return moment.isoformat()


def _key(*parts: str | None, ending: str) -> str:
	"""The ending alone tells keys apart: the rest is for people, and may be cut."""
	front = ":".join(part for part in parts if part)
	return f"{front[: KEY_LENGTH - len(ending) - 1]}:{ending}"


def _loaded(parameters: str | dict | None) -> dict:
	return json.loads(parameters) if isinstance(parameters, str) else parameters or {}
