"""Brings documents from JSON files into the database."""

import hashlib
import os
from collections.abc import Callable
from typing import Any

import frappe
from frappe.utils.data import get_datetime, now


def read_doc_from_file(path: str) -> Any:
	if not os.path.exists(path):
		raise OSError(f"{path} missing")
	return frappe.get_file_json(path)


def calculate_hash(path: str) -> str:
	with open(path, "rb") as stream:
		return hashlib.md5(stream.read(), usedforsecurity=False).hexdigest()


def import_file_by_path(
	path: str,
	force: bool = False,
	data_import: bool = False,
	pre_process: Callable | None = None,
	ignore_version: bool | None = None,
	reset_permissions: bool = False,
) -> bool:
	docs = read_doc_from_file(path)
	for doc in docs if isinstance(docs, list) else [docs]:
		stored = frappe.db.get_value(doc["doctype"], doc["name"], "modified")
		is_stored_newer = bool(stored) and get_datetime(doc.get("modified")) <= get_datetime(stored)
		if stored and not force and _is_unchanged(doc, path, is_stored_newer):
			continue
		import_doc(doc, data_import, pre_process, ignore_version, reset_permissions, path)
		_stamp(doc, path, is_stored_newer)
	return True


def _is_unchanged(doc: dict, path: str, is_stored_newer: bool) -> bool:
	if doc["doctype"] != "DocType":
		return is_stored_newer
	return frappe.db.get_value("DocType", doc["name"], "migration_hash") == calculate_hash(path)


def _stamp(doc: dict, path: str, is_stored_newer: bool) -> None:
	modified = doc.get("modified")
	if doc["doctype"] == "DocType":
		frappe.db.set_value(
			"DocType", doc["name"], "migration_hash", calculate_hash(path), update_modified=False
		)
		modified = now() if is_stored_newer else modified
	if modified:
		frappe.db.set_value(doc["doctype"], doc["name"], "modified", modified, update_modified=False)


def import_doc(
	docdict: dict,
	data_import: bool = False,
	pre_process: Callable | None = None,
	ignore_version: bool | None = None,
	reset_permissions: bool = False,
	path: str | None = None,
) -> Any:
	frappe.flags.in_import = True
	doc = frappe.get_doc({**docdict, "__islocal": 1})
	doc.run_method("before_import")
	doc.flags.ignore_version = ignore_version
	if pre_process:
		pre_process(doc)
	if frappe.db.exists(doc.doctype, doc.name):
		frappe.delete_doc(doc.doctype, doc.name, force=1, for_reload=True)
	doc.flags.ignore_links = True
	if not data_import:
		doc.flags.update(ignore_validate=True, ignore_permissions=True, ignore_mandatory=True)
	doc.insert()
	frappe.flags.in_import = False
	return doc
