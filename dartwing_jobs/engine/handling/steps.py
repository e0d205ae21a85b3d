"""Steps that a job has done, with their results: a later attempt does not do them again."""

import hashlib
import json
from datetime import datetime
from typing import Any, NamedTuple

import frappe

from dartwing_jobs.engine import rows, sanitize, statements
from dartwing_jobs.engine.handling import outputs
from dartwing_jobs.errors import ResultNotStorable

DOCTYPE = "Job Step"
SHOWN_LENGTH = 140
# the next attempt needs all of a result, and servers refuse packets of more than 16 megabytes
MOST_CHARACTERS = 4_000_000


class Step(NamedTuple):
	"""What came out of a step, as JSON has it: the first attempt sees the same as the next."""

	result: Any


def find(job_name: str, key: str) -> Step | None:
	stored = frappe.db.get_value(DOCTYPE, {"background_job": job_name, "key_hash": _digest(key)}, "result")
	return None if stored is None else Step(json.loads(stored))


def remember(job, key: str, result: Any, now: datetime) -> Step:
	"""Writes a step in the handler's transaction."""
	stored = outputs.as_json(result)
	if len(stored) > MOST_CHARACTERS:
		said = f"The result of a step has {len(stored)} characters of JSON, and {MOST_CHARACTERS} at most."
		raise ResultNotStorable(f"{said} Attach it as a file, and give back its address.")
	row = rows.new(
		job.owner_user,
		now,
		background_job=job.name,
		organization=job.organization,
		step_key=sanitize.storable(key[:SHOWN_LENGTH]),
		key_hash=_digest(key),
		attempt=job.attempt,
		result=stored,
	)
	statements.insert(DOCTYPE, [row])
	return Step(json.loads(stored))


def hand_over(from_job: str, to_job: str) -> None:
	"""A successor takes over what its predecessor has done, in the transaction that makes it."""
	statements.execute(
		"update `tabJob Step` set background_job = %s where background_job = %s", (to_job, from_job)
	)


def _digest(key: str) -> str:
	"""Databases compare texts in their own ways, digests alike."""
	if not key or not isinstance(key, str):
		raise ValueError("A step needs a key: a text that is the same in every attempt")
	return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()
