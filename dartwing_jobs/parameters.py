"""Parameters of jobs: what may be stored as JSON, and how it is stored."""

import json
import math
import re
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal

import frappe
from frappe import _

from dartwing_jobs import secrets, settings
from dartwing_jobs.errors import InvalidJobError, SecretInPayload
from dartwing_jobs.messages import throw

# MariaDB's JSON functions stop at 32 levels
MAX_DEPTH = 30
SHOWN_PATH = 140
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# Python writes no longer numbers (it would take too long), and no database reads them
MOST_DIGITS = 4000
LARGEST_NUMBER = 10**MOST_DIGITS
# what JSON has, as Python has it; a tuple is written as a list
TREES = (dict, list, tuple)
LEAVES = (str, int, float, type(None))
# made once: there are many to write, and most are short
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


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
		throw(_('{0} must be a JSON object, such as {{"key": "value"}}.').format(_(label)), InvalidJobError)
	_check_tree(parsed, label)
	text = _encode(parsed)
	_check_size(text, label, most_bytes)
	return text


def load(value) -> dict:
	"""Parameters as a dict, however the database hands them over."""
	# not by `frappe.parse_json`, which rounds large numbers on v16
	parsed = json.loads(value) if isinstance(value, str) and value else value
	return frappe._dict(parsed or {})


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
	throw(message.format(_shown(path), job_type), SecretInPayload)


def _parse(text: str, label: str, most_bytes: int):
	# before parsing: ten megabytes of brackets should not be built first and refused afterwards
	_check_size(text, label, most_bytes)
	try:
		return json.loads(text)
	except RecursionError:
		_refuse_depth(label)
	except ValueError as e:
		throw(_("{0} is not valid JSON: {1}.").format(_(label), e), InvalidJobError)


def _check_size(text: str, label: str, limit: int) -> None:
	# lone surrogates are refused later, by name; here they only need a length
	size = len(text.encode(errors="surrogatepass"))
	if size > limit:
		message = _(
			"{0} has {1} bytes; at most {2} bytes are allowed. Store large input as a file and pass its name."
		)
		throw(message.format(_(label), size, limit), InvalidJobError)


def _check_tree(root: dict, label: str) -> None:
	level, depth = [root], 0
	while level:
		depth += 1
		if depth > MAX_DEPTH:
			_refuse_depth(label)
		level = [child for node in level for child in _checked_children(node, root, label)]


def _checked_children(node: dict | list | tuple, root: dict, label: str) -> list:
	if isinstance(node, dict):
		for key in node:
			if not isinstance(key, str):
				_refuse_key(node, key, root, label)
			_check_leaf(key, root, label)
		node = node.values()
	trees = []
	for value in node:
		if isinstance(value, TREES):
			trees.append(value)
		else:
			_check_leaf(value, root, label)
	return trees


def _check_leaf(value, root: dict, label: str) -> None:
	"""`root`: what it stands in, to say where. That is looked for only when there is something to say."""
	if isinstance(value, str):
		if UNSTORABLE.search(value):
			message = _("{0} contains a character that cannot be stored (NUL or half a surrogate pair).")
			throw(message.format(_(label)), InvalidJobError)
	elif not isinstance(value, LEAVES):
		_refuse_type(value, root, label)
	elif isinstance(value, float) and not math.isfinite(value):
		message = _("{0} is {1}, which JSON does not have. Give a number, a text or null.")
		throw(message.format(_where(value, root, label), value), InvalidJobError)
	elif isinstance(value, int) and not -LARGEST_NUMBER < value < LARGEST_NUMBER:
		message = _("{0} is a number of more than {1} digits. Give it as text.")
		throw(message.format(_where(value, root, label), MOST_DIGITS), InvalidJobError)


def _refuse_type(value, root: dict, label: str) -> None:
	message = _("{0} is a {1}, which JSON does not have. {2}")
	kind = type(value).__name__[:SHOWN_PATH]
	sentence = message.format(_where(value, root, label), kind, _what_to_give(value))
	throw(sentence, InvalidJobError)


def _what_to_give(instead_of) -> str:
	if isinstance(instead_of, datetime | date | time):
		return _("Give it as text: value.isoformat().")
	if isinstance(instead_of, Decimal):
		return _("Give it as text (str(value)) if every digit counts, otherwise as a number (float(value)).")
	if isinstance(instead_of, set | frozenset):
		return _("Give it as a list, in an order that stays the same: sorted(value).")
	if isinstance(instead_of, bytes | bytearray | memoryview):
		return _("Give it as text, or store it as a file and pass its name.")
	return _("Give what the job needs of it as text, numbers, lists and objects.")


def _refuse_key(node: dict, key, root: dict, label: str) -> None:
	message = _("{0} has the key {1}, a {2}; keys of JSON are texts. Give str(key).")
	kind = type(key).__name__[:SHOWN_PATH]
	shown = _shown(repr(key))
	throw(message.format(_where(node, root, label), shown, kind), InvalidJobError)


def _where(value, root: dict, label: str) -> str:
	"""The path of a value, such as parameters.items[3].when."""
	start = frappe.scrub(label)
	return _shown(next((path for path, found in _walk(root, start, 1) if found is value), start))


def _walk(node, path: str, depth: int) -> Iterator[tuple[str, object]]:
	yield path, node
	if depth > MAX_DEPTH + 1:
		return
	if isinstance(node, dict):
		for key, child in node.items():
			yield from _walk(child, f"{path}.{key}", depth + 1)
	elif isinstance(node, list | tuple):
		for place, child in enumerate(node):
			yield from _walk(child, f"{path}[{place}]", depth + 1)


def _shown(given: str) -> str:
	"""What was given, as a part of a message: short, no secret."""
	return secrets.mask(given)[:SHOWN_PATH]


def _refuse_depth(label: str) -> None:
	throw(_("{0} is nested more than {1} levels deep.").format(_(label), MAX_DEPTH), InvalidJobError)
