"""What was changed between two sets of parameters, for the log: short, and without secrets."""

import json
from collections.abc import Iterator

from dartwing_jobs.engine import sanitize

MOST_CHANGES = 100
LONGEST_VALUE = 500
NOTHING = object()


def between(old: dict, new: dict) -> list[dict]:
	"""Changes as {path, from, to}: no `from` where something was added, no `to` where it was removed.

	Paths are JSON Pointers. Secrets are masked, long values cut; of very many changes the rest is counted.
	"""
	changes = list(_changes((), old, new))
	shown = [_shown(*change) for change in changes[:MOST_CHANGES]]
	return [*shown, {"more": len(changes) - MOST_CHANGES}] if len(changes) > MOST_CHANGES else shown


def _changes(path: tuple, old, new) -> Iterator[tuple]:
	if isinstance(old, dict) and isinstance(new, dict):
		for key in dict.fromkeys([*old, *new]):
			yield from _changes((*path, key), old.get(key, NOTHING), new.get(key, NOTHING))
	elif isinstance(old, list) and isinstance(new, list):
		for index in range(max(len(old), len(new))):
			yield from _changes((*path, index), _item(old, index), _item(new, index))
	elif not _same(old, new):
		yield path, old, new


def _item(values: list, index: int):
	return values[index] if index < len(values) else NOTHING


def _same(old, new) -> bool:
	"""As JSON tells values apart: true is not 1."""
	return type(old) is type(new) and old == new


def _shown(path: tuple, old, new) -> dict:
	key = next((part for part in reversed(path) if isinstance(part, str)), "")
	values = {"from": old, "to": new}
	told = {name: _fit(key, value) for name, value in values.items() if value is not NOTHING}
	return {"path": "".join(f"/{_escaped(part)}" for part in path), **told}


def _escaped(part: str | int) -> str:
	return str(part).replace("~", "~0").replace("/", "~1")


def _fit(key: str, value):
	text = json.dumps({key: value}, ensure_ascii=False, default=str)
	if sanitize.text(text) != text:
		return sanitize.MASK
	if len(text) <= LONGEST_VALUE:
		return value
	return f"{json.dumps(value, ensure_ascii=False, default=str)[:LONGEST_VALUE]}…"
