"""Files that a job makes: private, attached to it, and open to whoever may read it."""

import os

import frappe

# addresses must fit into output_reference
NAME_LENGTH = 40


def attach(job_name: str, file_name: str, content: bytes | str) -> str:
	"""Keeps a file of a job, in the handler's transaction; returns its address."""
	if not content:
		raise ValueError(f"{file_name} is empty; a file needs some content")
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


def delete_of(job_names: list[str]) -> None:
	"""Deletes the files of jobs that are about to go, which nobody will find any more."""
	attached = {"attached_to_doctype": "Background Job", "attached_to_name": ["in", job_names]}
	for name in frappe.get_all("File", filters=attached, pluck="name"):
		frappe.delete_doc("File", name, ignore_permissions=True, force=True)


def _unguessable(file_name: str) -> str:
	"""Who knows an address can ask for it, and names such as export.csv are known to everybody."""
	stem, extension = os.path.splitext(os.path.basename(file_name))
	return f"{stem[:NAME_LENGTH]}-{frappe.generate_hash(length=20)}{extension[:20]}"
