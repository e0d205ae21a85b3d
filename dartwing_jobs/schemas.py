"""JSON Schema of a job type's parameters. Imported only for types that have one: its library loads slowly."""

import json
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from frappe import _
from jsonschema import Draft202012Validator, SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.messages import throw

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
ERRORS_SHOWN = 3
# an error quotes the value it is about, and that may be a megabyte
ERROR_LENGTH = 200


def canonical(value: str | dict, label: str) -> str:
	"""A schema, given as text or as a dict, as it is stored; raises unless it can be used."""
	schema = _parse(value, label) if isinstance(value, str) else value
	if not isinstance(schema, dict):
		throw(_("{0} must be a JSON object.").format(label), InvalidJobError)
	_check_schema(schema, label)
	return text(schema)


def text(schema: dict) -> str:
	return json.dumps(schema, ensure_ascii=False, indent=1)


def check(schema_text: str, parameters: dict, job_type: str) -> None:
	"""Raises when parameters do not fit a schema, saying where and how, for the first few places."""
	try:
		found = [_sentence(error) for error in islice(_errors(schema_text, parameters), ERRORS_SHOWN)]
	except (Unresolvable, RecursionError) as error:
		message = _("The parameters schema of Job Type {0} cannot be used: a reference leads nowhere. {1}")
		throw(message.format(job_type, _shortened(str(error))), InvalidJobError)
	if found:
		message = _("The parameters do not fit Job Type {0}. {1}.")
		throw(message.format(job_type, "; ".join(found)), InvalidJobError)


def _errors(schema_text: str, parameters: dict) -> Iterator:
	return _validator(schema_text).iter_errors(parameters)


@lru_cache(maxsize=256)
def _validator(schema_text: str) -> Validator:
	schema = json.loads(schema_text)
	# an empty registry has no way to fetch anything
	return validator_for(schema, default=Draft202012Validator)(schema, registry=Registry())


def _parse(value: str, label: str):
	try:
		return json.loads(value)
	except (ValueError, RecursionError) as error:
		return throw(_("{0} is not valid JSON: {1}.").format(label, error), InvalidJobError)


def _check_schema(schema: dict, label: str) -> None:
	try:
		validator_for(schema, default=Draft202012Validator).check_schema(schema)
	except SchemaError as error:
		message = _("{0} is not a valid JSON Schema. {1}.")
		throw(message.format(label, _sentence(error)), InvalidJobError)
	_check_references(schema, label)


def _check_references(schema: dict, label: str) -> None:
	"""A schema stands alone: checking parameters never reads from anywhere else."""
	resource = Resource.from_contents(schema, default_specification=DRAFT202012)
	resolver = Registry().with_resource("", resource).resolver()
	for reference in _references(schema):
		if not reference.startswith("#"):
			message = _("{0} refers to {1}; references may only lead to places in the same schema (#/...).")
			throw(message.format(label, reference), InvalidJobError)
		try:
			resolver.lookup(reference)
		except Unresolvable:
			message = _("{0} refers to {1}, which is not there.")
			throw(message.format(label, reference), InvalidJobError)


def _references(node) -> Iterator[str]:
	if isinstance(node, dict):
		yield from (node[key] for key in REFERENCES if isinstance(node.get(key), str))
		node = list(node.values())
	if isinstance(node, list):
		for child in node:
			yield from _references(child)


def _sentence(error) -> str:
	"""Where and what, as in `/customer/name: 5 is not of type 'string'`."""
	steps = (str(step).replace("~", "~0").replace("/", "~1") for step in error.absolute_path)
	return f"/{'/'.join(steps)}: {_shortened(error.message)}"


def _shortened(message: str) -> str:
	if len(message) <= ERROR_LENGTH:
		return message
	half = ERROR_LENGTH // 2
	return f"{message[:half]} ... {message[-half:]}"
