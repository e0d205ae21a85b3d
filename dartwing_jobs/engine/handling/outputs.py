"""What a job gives back: its result as JSON, and private files that are open to its readers."""

import json
import os
from typing import Any

import frappe

from dartwing_jobs import secrets
from dartwing_jobs.engine import database, runs, sanitize, transitions
from dartwing_jobs.errors import ResultNotStorable

# of a longer result the beginning is kept; who needs all of it attaches a file
MOST_BYTES, SHOWN_LENGTH = 64_000, 2_000
# addresses must fit into output_reference
NAME_LENGTH, REFERENCE_LENGTH = 40, 140


def attach(job_name: str, file_name: str, content: bytes | str) -> str:
	"""Keeps a file of a job, in the handler's transaction; returns its address."""
	if not content:
		raise ResultNotStorable(f"{file_name} is empty; a file needs some content")
	if isinstance(content, str):
		content = content.encode(errors="replace")
	file = frappe.get_doc(
		{
			"doctype": "File",
			"file_name": _unguessable(file_name),
			"content": content,
			"is_private": 1,
			"attached_to_doctype": "Background Job",
			"attached_to_name": job_name,
		}
	)
	file.insert(ignore_permissions=True)
	# Frappe lets a file's owner open it for ever, even one who has left the organization
	frappe.db.set_value("File", file.name, "owner", "Administrator", update_modified=False)
	return file.file_url


def stored(result: Any) -> str | None:
	"""A result as it is kept: JSON without secrets, and not too long. Raises if it cannot be JSON."""
	if result is None:
		return None
	text = as_json(result)
	size = len(text.encode())
	if size > MOST_BYTES:
		return as_json({"cut": sanitize.beginning(text, SHOWN_LENGTH), "bytes": size})
	return as_json(sanitize.value(json.loads(text))) if secrets.might_hold_secrets(text) else text


def load(kept: str | None) -> Any:
	return json.loads(kept) if kept else None


def reference(given: str | None) -> str | None:
	"""Where a job's output is, as it is stored: many may read it, so an address must not let them in."""
	if not given:
		return None
	text = sanitize.beginning(str(given), REFERENCE_LENGTH + 1)
	if len(text) > REFERENCE_LENGTH:
		shown = f"output_reference has at most {REFERENCE_LENGTH} characters, and this has more: {text[:40]}…"
		raise ResultNotStorable(f"{shown} Keep the rest in `output`, or attach a file.")
	return text


def delete_of(job_names: list[str]) -> dict[str, Exception]:
	"""Deletes the files of jobs that are about to go, which no user will find any more.

	Returns the jobs that have a file which cannot be deleted, each with the error.
	"""
	attached = {"attached_to_doctype": "Background Job", "attached_to_name": ["in", job_names]}
	failed = {}
	for file in frappe.get_all("File", filters=attached, fields=["name", "attached_to_name"]):
		try:
			with transitions.both_or_neither():
				frappe.delete_doc("File", file.name, ignore_permissions=True, force=True)
		except Exception as error:
			if database.has_lost_transaction(error) or database.is_conflict(error):
				raise
			failed[file.attached_to_name] = error
	return failed


def _unguessable(file_name: str) -> str:
	"""Who knows an address can ask for it, and names such as export.csv are known to everybody."""
	stem, extension = os.path.splitext(os.path.basename(sanitize.storable(file_name)))
	return f"{stem[:NAME_LENGTH]}-{frappe.generate_hash(length=20)}{extension[:20]}"


def as_json(result: Any) -> str:
	"""What JSON does not have is kept as text: its own numbers, objects, halves of characters."""
	try:
		text = _dumped(result)
	except Exception as error:  # circles, keys that are no texts, depth without end, objects without a text
		said = f"A {type(result).__name__} of the handler cannot be kept as JSON: {runs.message_of(error)}."
		raise ResultNotStorable(f"{said} Give back plain values, or attach a file.") from error
	return text.encode(errors="replace").decode()


def _dumped(result: Any) -> str:
	try:
		return json.dumps(result, ensure_ascii=False, default=str, allow_nan=False)
	except ValueError:  # numbers that are none, perhaps
		finite = json.loads(json.dumps(result, default=str), parse_constant=str)
		return json.dumps(finite, ensure_ascii=False)
