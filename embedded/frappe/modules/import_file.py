"""Brings documents from JSON files into the database."""

import hashlib
from typing import Any

import frappe


def import_file_by_path(
	path: str, force: bool = False, data_import: bool = False, reset_permissions: bool = True
) -> None:
	"""A DocType comes in when its file has changed, other records always."""
	with open(path, "rb") as stream:
		digest = hashlib.md5(stream.read(), usedforsecurity=False).hexdigest()
	docs = frappe.get_file_json(path)
	for doc in docs if isinstance(docs, list) else [docs]:
		key, stamps = (doc["doctype"], doc["name"]), {}
		if doc["doctype"] == "DocType":
			stamps["migration_hash"] = digest
			if not force and frappe.db.get_value(*key, "migration_hash") == digest:
				continue
		import_doc(doc, data_import)
		stamps |= {"modified": doc["modified"]} if doc.get("modified") else {}
		if stamps:
			frappe.db.set_value(*key, stamps, update_modified=False)


def import_doc(docdict: dict, data_import: bool = False) -> Any:
	frappe.flags.in_import = True
	doc = frappe.get_doc({**docdict, "__islocal": 1})
	doc.run_method("before_import")
	if frappe.db.exists(doc.doctype, doc.name):
		frappe.delete_doc(doc.doctype, doc.name, force=1, for_reload=True)
	doc.flags.ignore_links = True
	if not data_import:
		doc.flags.update(ignore_validate=True, ignore_permissions=True, ignore_mandatory=True)
	doc.insert()
	frappe.flags.in_import = False
	return doc
