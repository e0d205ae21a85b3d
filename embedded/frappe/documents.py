"""frappe.get_doc and its relatives: documents, lists, caches."""

import json
import math
import secrets
from typing import Any

import frappe
from frappe.context import local
from frappe.model.create_new import new_doc as new_doc
from frappe.model.db_query import get_all as get_all
from frappe.model.db_query import get_list as get_list
from frappe.model.delete_doc import delete_doc as delete_doc
from frappe.model.document import get_doc
from frappe.model.meta import get_meta as get_meta


def get_single(doctype: str) -> Any:
	return get_doc(doctype, doctype)


def get_last_doc(doctype: str, filters: Any = None, order_by: str = "creation desc") -> Any:
	names = get_all(doctype, filters=filters, limit=1, order_by=order_by, pluck="name")
	return get_doc(doctype, names[0] if names else None)


def get_cached_doc(doctype: str, name: str | None = None) -> Any:
	name = name or doctype
	return frappe.cache.get_value(f"document_cache::{doctype}::{name}", lambda: get_doc(doctype, name))


def clear_document_cache(doctype: str, name: str | None = None) -> None:
	"""Forgets all documents of the DocType: now, and what others read until the transaction ends."""

	def clear() -> None:
		frappe.cache.delete_keys(f"document_cache::{doctype}::")

	clear()
	local.db.after_commit.add(clear)
	local.db.after_rollback.add(clear)


def clear_cache(user: str | None = None, doctype: str | None = None) -> None:
	if doctype:
		frappe.cache.hdel("doctype_meta", doctype)
		frappe.cache.hdel("table_columns", f"tab{doctype}")
		frappe.controllers.get(local.site, {}).pop(doctype, None)
	elif not user:
		frappe.cache.delete_keys("")
		local.cache = {}
		frappe.controllers.pop(local.site, None)


def as_json(obj: Any, indent: int | None = 1) -> str:
	from frappe.utils.response import json_handler

	return json.dumps(obj, indent=indent, sort_keys=True, default=json_handler, separators=(",", ": "))


def parse_json(val: Any) -> Any:
	val = json.loads(val) if isinstance(val, str) else val
	return frappe._dict(val) if type(val) is dict else val


def generate_hash(length: int = 56) -> str:
	return secrets.token_hex(math.ceil(length / 2))[:length]
