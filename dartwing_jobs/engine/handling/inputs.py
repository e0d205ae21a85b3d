"""Files that a job is given: known by their checksums from the moment it is submitted."""

import hashlib
import json
from collections.abc import Iterator

import frappe
from frappe import _

from dartwing_jobs import parameters
from dartwing_jobs.engine import statements
from dartwing_jobs.engine.rules.categories import IMPORT_EXPORT
from dartwing_jobs.errors import InputChanged, InvalidJobError
from dartwing_jobs.messages import throw

ADDRESSES = ("/files/", "/private/files/")
CHUNK = 1 << 20


def remember(jobs: list, job_type) -> None:
	"""Before jobs are written: the checksum of each file that they name, if their owner may read it."""
	if job_type.category != IMPORT_EXPORT:
		return
	known: dict[str, str] = {}
	for job in jobs:
		addresses = sorted(set(_addresses(parameters.load(job.input_parameters))))
		for address in addresses:
			if address not in known:
				known[address] = _checksum(_readable_file(address, job.owner_user))
		job.input_checksums = json.dumps({one: known[one] for one in addresses}) if addresses else None


def check(job, job_type) -> None:
	"""Before an attempt: raises when a file is no longer what the job was submitted with."""
	if job_type.category != IMPORT_EXPORT:
		return
	(row,) = statements.fetch("select input_checksums from `tabBackground Job` where name = %s", (job.name,))
	for address, expected in parameters.load(row.input_checksums).items():
		if _stored_checksum(address) != expected:
			raise InputChanged(f"Input {address} was changed since the job was submitted")


def _addresses(value) -> Iterator[str]:
	if isinstance(value, dict | list):
		for one in value.values() if isinstance(value, dict) else value:
			yield from _addresses(one)
	elif isinstance(value, str) and value.startswith(ADDRESSES):
		yield value


def _readable_file(address: str, user: str):
	"""One of the File documents of an address that this user may read."""
	for file in _files(address):
		if frappe.has_permission("File", "read", doc=file, user=user):
			return file
	message = _("Input {0} was not found, or {1} may not read it.")
	return throw(message.format(address, user), InvalidJobError)


def _files(address: str) -> list:
	names = frappe.get_all("File", filters={"file_url": address.split("?")[0]}, pluck="name")
	return [frappe.get_doc("File", name) for name in names]


def _stored_checksum(address: str) -> str | None:
	"""None when the file, or all that is known of it, is gone."""
	files = _files(address)
	try:
		return _checksum(files[0]) if files else None
	except FileNotFoundError:
		return None


def _checksum(file) -> str:
	digest = hashlib.sha256()
	with open(file.get_full_path(), "rb") as stream:
		while chunk := stream.read(CHUNK):
			digest.update(chunk)
	return digest.hexdigest()
