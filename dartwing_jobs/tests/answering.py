"""Handlers that give something back, for tests of what becomes of it."""

import math
from pathlib import Path

import dartwing_jobs
from dartwing_jobs import job_handler


def where_this_is() -> str:
	"""The folder of the app that a process has loaded."""
	return str(Path(dartwing_jobs.__file__).parent)


@job_handler
def give_back(parameters: dict, context):
	return parameters["value"]


@job_handler
def say_in_context(parameters: dict, context) -> str:
	context.output["pages"] = 3
	return "what the context says goes first"


@job_handler
def give_back_what_json_lacks(parameters: dict, context) -> dict:
	return {"not a number": math.nan, "object": {1}, "half a character": "\ud800", "nothing": "a\x00b"}


@job_handler
def give_back_much(parameters: dict, context) -> list:
	return ["ä" * 100] * 10_000


@job_handler
def give_back_secrets(parameters: dict, context) -> dict:
	return {
		"login": {"user": "ann", "password": "hunter2-hunter2"},
		"headers": [{"name": "Authorization", "value": "Bearer abcdefghijklmnop1234567890"}],
		"note": "asked https://ann:hunter2-hunter2@example.com/x and was let in",
		"rows": 7,
	}
