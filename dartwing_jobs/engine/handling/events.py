"""Audit events of handlers: what they did to the world, by a name and with fields of their own.

They are rows of the job's log beside the engine's. Unlike notes none is ever dropped or cut: what cannot be
kept is an error of the handler.
"""

import json
import re
from typing import Any

from dartwing_jobs.engine import sanitize
from dartwing_jobs.errors import PermanentError

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,139}", re.ASCII)
# names of the engine's events begin so
RESERVED = "job."
MOST_BYTES = 16_000
# between two checkpoints, for they wait in memory
MOST_EVENTS = 1000


def check_name(name: str) -> None:
	if not isinstance(name, str) or not NAME.fullmatch(name):
		shown = repr(name)[:60]
		raise PermanentError(f"The name of an event is a word such as EMAIL_SENT, not {shown}.")
	if name.lower().startswith(RESERVED):
		raise PermanentError(
			f"{name[:60]} is no event of a handler: names with {RESERVED} are the engine's own."
		)


def storable(fields: dict | None) -> dict:
	"""Fields as the log keeps them: as JSON has them, and without secrets."""
	if not isinstance(fields, dict | None):
		raise PermanentError(f"The fields of an event must be a dict, not {type(fields).__name__}.")
	kept = sanitize.value(_as_json_has_it(fields or {}))
	size = len(json.dumps(kept))
	if size > MOST_BYTES:
		raise PermanentError(f"The fields of an event have {size} bytes; at most {MOST_BYTES} are kept.")
	return kept


def check_number(waiting: int) -> None:
	if waiting >= MOST_EVENTS:
		raise PermanentError(f"{waiting} events wait to be written; call checkpoint() before there are more.")


def _as_json_has_it(value: Any) -> Any:
	try:
		plain = json.loads(json.dumps(value, default=str), parse_constant=str)
	except (TypeError, ValueError, RecursionError) as error:  # keys that are no texts, circles
		raise PermanentError(f"The fields of an event cannot be written as JSON: {error}") from error
	return _cleaned(plain)


def _cleaned(value: Any) -> Any:
	if isinstance(value, str):
		return sanitize.storable(value)
	if isinstance(value, dict):
		return {sanitize.storable(key): _cleaned(one) for key, one in value.items()}
	return [_cleaned(one) for one in value] if isinstance(value, list) else value
