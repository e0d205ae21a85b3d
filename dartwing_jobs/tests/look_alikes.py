"""Reads `corpus/secrets.json` and `corpus/harmless.json`: what is secret, and what only looks like it.

All of it is made up. {"join": […]} stands for one text: who scans this repository for live tokens finds none.
"""

import json
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"


def secrets() -> list[tuple[list[str], dict]]:
	"""The paths at which secrets are, and the parameters that hold them."""
	return [(one["paths"], one["parameters"]) for one in _read("secrets")]


def harmless() -> list[dict]:
	return [one["parameters"] for one in _read("harmless")]


def _read(name: str) -> list[dict]:
	return json.loads((FOLDER / f"{name}.json").read_text(), object_hook=_joined)


def _joined(fields: dict):
	return "".join(fields["join"]) if fields.keys() == {"join"} else fields
