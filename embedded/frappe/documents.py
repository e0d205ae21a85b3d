"""frappe.get_doc and its relatives: documents, lists, caches."""

import json
import math
import secrets
from typing import Any

import frappe
from frappe.context import local


def get_meta(doctype: str, cached: bool = True) -> Any:
	return frappe.model.meta.get_meta(doctype, cached=cached)


def get_doc(*args: Any, **kwargs: Any) -> Any:
	doc = frappe.model.document.get_doc(*args, **kwargs)
	# a fresh read makes the cached copy fresh too, as in Frappe
	key = _cache_key(args)
	if key and not kwargs.get("for_update") and frappe.cache.exists(key):
		frappe.cache.set_value(key, doc)
	return doc


def new_doc(
	doctype: str,
	*,
	parent_doc: Any = None,
	parentfield: str | None = None,
	as_dict: bool = False,
	**kwargs: Any,
) -> Any:
	return frappe.model.create_new.get_new_doc(doctype, parent_doc, parentfield, as_dict=as_dict).update(
		kwargs
	)


def get_single(doctype: str) -> Any:
	return get_doc(doctype, doctype)


def get_last_doc(
	doctype: str, filters: Any = None, order_by: str = "creation desc", *, for_update: bool = False
) -> Any:
	names = frappe.get_all(doctype, filters=filters, limit_page_length=1, order_by=order_by, pluck="name")
	if not names:
		raise frappe.DoesNotExistError
	return get_doc(doctype, names[0], for_update=for_update)


def copy_doc(doc: Any, ignore_no_copy: bool = True) -> Any:
	values = json.loads(as_json(doc if isinstance(doc, dict) else doc.as_dict()))
	standard = ("name", "owner", "creation", "modified", "modified_by", "docstatus", "parent", "amended_from")
	rows = [row for value in values.values() if isinstance(value, list) for row in value]
	for row in (values, *rows):
		for key in standard:
			row.pop(key, None)
	new = get_doc({**values, "__islocal": 1})
	for row in () if ignore_no_copy else (new, *new.get_all_children()):
		for df in row.meta.get("fields", {"no_copy": 1}):
			row.set(df.fieldname, None)
	return new


def _cache_key(args: tuple) -> str | None:
	if not args or not isinstance(args[0], str):
		return None
	name = args[0] if len(args) == 1 or args[1] is None else args[1]
	return get_document_cache_key(args[0], name) if isinstance(name, str) else None


def get_document_cache_key(doctype: str, name: str) -> str:
	return f"document_cache::{doctype}::{name}"


def get_cached_doc(*args: Any, **kwargs: Any) -> Any:
	key = _cache_key(args)
	if key and (doc := frappe.cache.get_value(key)):
		return doc
	doc = frappe.model.document.get_doc(*args, **kwargs)
	frappe.cache.set_value(key or get_document_cache_key(doc.doctype, doc.name), doc)
	return doc


def get_cached_value(doctype: str, name: str, fieldname: Any = "name", as_dict: bool = False) -> Any:
	try:
		doc = get_cached_doc(doctype, name)
	except frappe.DoesNotExistError:
		frappe.clear_last_message()
		return None
	if isinstance(fieldname, str):
		if as_dict:
			frappe.throw("A dict needs a list of fields")
		return doc.get(fieldname)
	values = [doc.get(field) for field in fieldname]
	return frappe._dict(zip(fieldname, values, strict=True)) if as_dict else values


def clear_document_cache(doctype: str, name: str | None = None) -> None:
	def clear() -> None:
		if name is None:
			frappe.cache.delete_keys(get_document_cache_key(doctype, ""))
		else:
			frappe.cache.delete_value(get_document_cache_key(doctype, name))

	clear()
	local.db.after_commit.add(clear)
	local.db.after_rollback.add(clear)


def clear_cache(user: str | None = None, doctype: str | None = None) -> None:
	if doctype:
		for kind in ("doctype_meta", "table_columns"):
			frappe.cache.hdel(kind, doctype if kind == "doctype_meta" else f"tab{doctype}")
		frappe.controllers.get(local.site, {}).pop(doctype, None)
		clear_document_cache("DocType", doctype)
		local.new_doc_templates.pop(doctype, None)
	elif user:
		for kind in ("roles", "user_permissions", "defaults"):
			frappe.cache.hdel(kind, user)
	else:
		kept = {key for prefix in _persistent_keys() for key in frappe.cache.get_keys(prefix)}
		frappe.cache.delete_value([k for k in frappe.cache.get_keys("") if k not in kept], make_keys=False)
		local.cache, local.new_doc_templates = {}, {}
		frappe.controllers.pop(local.site, None)
	local.role_permissions = {}


def _persistent_keys() -> list[str]:
	return frappe.get_hooks("persistent_cache_keys") if frappe.cache.exists("app_hooks") else []


def get_list(doctype: str, *args: Any, **kwargs: Any) -> Any:
	return frappe.model.db_query.DatabaseQuery(doctype).execute(*args, **kwargs)


def get_all(doctype: str, *args: Any, **kwargs: Any) -> Any:
	return get_list(doctype, *args, **{**kwargs, "ignore_permissions": True})


def get_value(*args: Any, **kwargs: Any) -> Any:
	return local.db.get_value(*args, **kwargs)


def delete_doc(doctype: str | None = None, name: Any = None, *args: Any, **kwargs: Any) -> Any:
	from frappe.model.delete_doc import delete_doc

	return delete_doc(doctype, name, *args, **kwargs)


def delete_doc_if_exists(doctype: str, name: str, force: int = 0) -> None:
	delete_doc(doctype, name, force=force, ignore_missing=True)


def as_json(obj: Any, indent: int | None = 1, separators: Any = None, ensure_ascii: bool = True) -> str:
	from frappe.utils.response import json_handler

	options = {"indent": indent, "separators": separators or (",", ": "), "ensure_ascii": ensure_ascii}
	try:
		return json.dumps(obj, sort_keys=True, default=json_handler, **options)
	except TypeError:
		return json.dumps(obj, default=json_handler, **options)


def parse_json(val: Any) -> Any:
	val = json.loads(val) if isinstance(val, str) else val
	return frappe._dict(val) if type(val) is dict else val


def generate_hash(txt: str | None = None, length: int = 56) -> str:
	return secrets.token_hex(math.ceil((length or 56) / 2))[: length or 56]
