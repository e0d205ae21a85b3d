"""Parameters of jobs: what may be stored as JSON, and how it is stored."""

import json
import math
import re

import frappe
from frappe import _

from dartwing_jobs import secrets, settings
from dartwing_jobs.errors import InvalidJobError, SecretInPayload

# MariaDB's JSON functions stop at 32 levels
MAX_DEPTH = 30
SHOWN_PATH = 140
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def store(doc, fieldname: str) -> None:
	"""Checks a JSON field of a document and writes it back as compact text (None when it is empty)."""
	doc.set(fieldname, canonical(doc.get(fieldname), doc.meta.get_label(fieldname)))


def canonical(value, label: str, most_bytes: int | None = None) -> str | None:
	"""The stored form of parameters given as text or as a dict; the settings say how long it may be.

	`label` is what an error calls them, translated when there is one.
	"""
	most_bytes = most_bytes or settings.max_parameter_bytes()
	if value is None or (isinstance(value, str) and not value.strip()):
		return None
	parsed = _parse(value, label, most_bytes) if isinstance(value, str) else value
	if not isinstance(parsed, dict):
		frappe.throw(
			_('{0} must be a JSON object, such as {{"key": "value"}}.').format(_(label)), InvalidJobError
		)
	_check_tree(parsed, label)
	text = json.dumps(parsed, ensure_ascii=False, separators=(",", ":"), default=str)
	_check_size(text, label, most_bytes)
	return text


def load(value) -> dict:
	"""Parameters as a dict, however the database hands them over."""
	return frappe.parse_json(value) if value else {}


def check_schema(job_type, parameters: str | dict | None) -> None:
	"""Raises when parameters do not fit the schema of their job type, if it has one."""
	if schema := job_type.parameters_schema:
		from dartwing_jobs import schemas

		schemas.check(schema, load(parameters), job_type.name)


def check_secrets(job_type, many_stored: list[str | None]) -> None:
	"""Raises when stored parameters hold secrets that their job type does not expect there."""
	stored = [one for one in many_stored if one]
	# first all at once: nearly always there is nothing, and a thousand small looks take longer than one
	if secrets.might_hold_secrets("\n".join(stored)):
		allowed = [line.strip() for line in (job_type.allowed_secrets or "").splitlines()]
		for one in stored:
			if secrets.might_hold_secrets(one) and (found := secrets.find(json.loads(one), allowed)):
				_refuse_secret(found[0], job_type.name)


def _refuse_secret(path: str, job_type: str) -> None:
	message = _(
		"{0} looks like a secret, and many people may read what a job was given. Keep it in a Password field"
		" or in the site's config and pass its name; or, if it is no secret, list it in Parameters That May"
		" Look Secret of Job Type {1}."
	)
	frappe.throw(message.format(path[:SHOWN_PATH], job_type), SecretInPayload)


def _parse(text: str, label: str, most_bytes: int):
	# before parsing: ten megabytes of brackets should not be built first and refused afterwards
	_check_size(text, label, most_bytes)
	try:
		return json.loads(text)
	except RecursionError:
		_refuse_depth(label)
	except ValueError as e:
		frappe.throw(_("{0} is not valid JSON: {1}.").format(_(label), e), InvalidJobError)


def _check_size(text: str, label: str, limit: int) -> None:
	# lone surrogates are refused later, by name; here they only need a length
	size = len(text.encode(errors="surrogatepass"))
	if size > limit:
		message = _(
			"{0} has {1} bytes; at most {2} bytes are allowed. Store large input as a file and pass its name."
		)
		frappe.throw(message.format(_(label), size, limit), InvalidJobError)


def _check_tree(root: dict, label: str) -> None:
	level, depth = [root], 0
	while level:
		depth += 1
		if depth > MAX_DEPTH:
			_refuse_depth(label)
		level = [child for node in level for child in _checked_children(node, label)]


def _checked_children(node: dict | list, label: str) -> list:
	values = [*node.keys(), *node.values()] if isinstance(node, dict) else list(node)
	for value in values:
		_check_leaf(value, label)
	return [value for value in values if isinstance(value, dict | list)]


def _check_leaf(value, label: str) -> None:
	if isinstance(value, float) and not math.isfinite(value):
		frappe.throw(
			_("{0} contains {1}, which JSON does not have.").format(_(label), value), InvalidJobError
		)
	if isinstance(value, str) and _is_unstorable(value):
		frappe.throw(
			_("{0} contains a character that cannot be stored (NUL or half a surrogate pair).").format(
				_(label)
			),
			InvalidJobError,
		)


def _is_unstorable(text: str) -> bool:
	return UNSTORABLE.search(text) is not None


def _refuse_depth(label: str) -> None:
	frappe.throw(_("{0} is nested more than {1} levels deep.").format(_(label), MAX_DEPTH), InvalidJobError)
