"""The life of a document: load, insert, save, delete, and the events in between."""

from typing import Any

import frappe
from frappe import _
from frappe.model.base_document import BaseDocument, differ, get_controller, typed
from frappe.model.naming import set_new_name, validate_name
from frappe.utils.data import cstr, now


def get_doc(*args: Any, **kwargs: Any) -> "Document":
	first = args[0] if args else kwargs
	if isinstance(first, BaseDocument):
		return first
	return get_controller(first if isinstance(first, str) else first["doctype"])(*args, **kwargs)


class Document(BaseDocument):
	def __init__(self, *args: Any, for_update: bool = False, **kwargs: Any):
		self.doctype, self.name, self.flags = None, None, frappe._dict(for_update=for_update)
		if args and isinstance(args[0], str):
			self.doctype, self.name = args[0], args[0] if len(args) == 1 else args[1]
			self.load_from_db()
		else:
			super().__init__(args[0] if args else kwargs)

	def __getattr__(self, name: str) -> Any:
		raise frappe.exceptions.NotOfferedAttribute(f"{type(self).__name__}.{name}")

	def load_from_db(self) -> "Document":
		locking = {"for_update": self.flags.for_update}
		super().__init__(self._load_single(**locking) if self.meta.issingle else self._load_row(**locking))
		for df in self.meta.get_table_fields():
			rows = frappe.db.get_values(*self._rows_of(df), "*", order_by="idx asc", **locking)
			self.set(df.fieldname, rows)
		return self

	reload = load_from_db

	def _load_single(self, for_update: bool) -> dict:
		values = frappe.db.get_singles_dict(self.doctype, for_update=for_update)
		values = values or frappe.new_doc(self.doctype, as_dict=True)
		values.update({df.fieldname: typed(df, values.get(df.fieldname)) for df in self.meta.fields})
		return values.update(name=self.doctype, __islocal=None, __unsaved=None)

	def _load_row(self, for_update: bool) -> dict:
		order = {} if isinstance(self.name, dict | list) else {"order_by": None}
		row = frappe.db.get_value(self.doctype, self.name, "*", as_dict=True, for_update=for_update, **order)
		if not row:
			text = _("{0} {1} does not exist").format(_(self.doctype), self.name)
			frappe.throw(text, frappe.DoesNotExistError)
		return row

	def _rows_of(self, df: Any) -> tuple[str, dict]:
		return df.options, {"parent": self.name, "parenttype": self.doctype, "parentfield": df.fieldname}

	def has_permission(self, permtype: str = "read", *, user: str | None = None, throw: bool = False) -> bool:
		if self.flags.ignore_permissions:
			return True
		return frappe.permissions.has_permission(self.doctype, permtype, self, user, throw)

	def check_permission(self, permtype: str = "read") -> None:
		self.has_permission(permtype, throw=True)

	def insert(
		self,
		ignore_permissions: bool | None = None,
		ignore_links: bool | None = None,
		ignore_if_duplicate: bool = False,
		ignore_mandatory: bool | None = None,
		set_name: str | None = None,
	) -> "Document":
		given = {"ignore_permissions": ignore_permissions, "ignore_links": ignore_links}
		given["ignore_mandatory"] = ignore_mandatory
		self.flags.update({flag: value for flag, value in given.items() if value is not None})
		for row in self._all_rows():
			row.set("__islocal", True)
		self._set_defaults()
		self._set_user_and_timestamp()
		self._validate_links()
		self.check_permission("create")
		self.run_method("before_insert")
		self.set_new_name(set_name=set_name)
		self._check_and_write(ignore_if_duplicate)
		self.run_method("after_insert")
		self._finish()
		return self

	def save(self, ignore_permissions: bool | None = None, ignore_version: bool | None = None) -> "Document":
		if ignore_permissions is not None:
			self.flags.ignore_permissions = ignore_permissions
		if self.is_new() or not self.name:
			return self.insert()
		self._set_defaults()
		self.check_permission("write")
		self._set_user_and_timestamp()
		self._check_if_latest()
		self._validate_links()
		self._check_and_write()
		self._finish()
		return self

	def _check_and_write(self, ignore_if_duplicate: bool = False) -> None:
		self.run_method("before_validate")
		if not self.flags.ignore_validate:
			self.run_method("validate")
			self.run_method("before_save")
		self._validate()
		if self.meta.issingle:
			self._write_single()
		elif self.is_new():
			self.db_insert(ignore_if_duplicate)
		else:
			self.db_update()
		for df in self.meta.get_table_fields():
			self._write_children(df)

	def _write_single(self) -> None:
		frappe.db.delete("Singles", {"doctype": self.doctype})
		for row in self.get_valid_dict().items():
			query = "insert into `tabSingles` (doctype, field, value) values (%s, %s, %s)"
			frappe.db.sql(query, (self.doctype, *row))
		frappe.db.value_cache.pop(self.doctype, None)

	def _write_children(self, df: Any) -> None:
		doctype, link = self._rows_of(df)
		kept = [row.name for row in self.get(df.fieldname) if not row.is_new()]
		frappe.db.delete(doctype, link | ({"name": ["not in", kept]} if kept else {}))
		for row in self.get(df.fieldname):
			row.parent = self.name
			row.db_update()

	def get_doc_before_save(self) -> "Document | None":
		return self.get("_doc_before_save")

	def has_value_changed(self, fieldname: str) -> bool:
		previous = self.get_doc_before_save()
		return not previous or differ(previous.get(fieldname), self.get(fieldname))

	def set_new_name(self, force: bool = False, set_name: Any = None, set_child_names: bool = True) -> None:
		if self.flags.name_set and not force:
			return
		self.flags.name_set = True
		is_asked_for = (self.meta.autoname or "").lower() == "prompt"
		if set_name := set_name or (is_asked_for and self.get("__newname")):
			self.name = validate_name(self.doctype, set_name)
		else:
			set_new_name(self)
		for row in self.get_all_children() if set_child_names else ():
			set_new_name(row)

	def _set_user_and_timestamp(self) -> None:
		if self.docstatus:
			raise frappe.NotOfferedError("submitting a document")
		self._original_modified, self.modified, self.modified_by = self.modified, now(), frappe.session.user
		flags = frappe.flags
		if self.is_new() and not (flags.in_install or flags.in_patch or flags.in_migrate):
			self.creation, self.owner = self.modified, self.modified_by

	def _set_defaults(self) -> None:
		for row in () if frappe.flags.in_import else self._all_rows():
			defaults = frappe.new_doc(row.doctype, as_dict=True) if row.is_new() else {}
			row.update({key: value for key, value in defaults.items() if row.get(key) is None})

	def _check_if_latest(self) -> None:
		self._doc_before_save = frappe.get_doc(self.doctype, self.name, for_update=True)
		if cstr(self._doc_before_save.modified) != cstr(self._original_modified):
			text = _("{0} {1} was changed after you opened it; reload it first")
			frappe.throw(text.format(_(self.doctype), self.name), frappe.TimestampMismatchError)

	def run_method(self, method: str, *args: Any, **kwargs: Any) -> Any:
		"""The controller's method, then the handlers in hooks; the last answer counts."""
		own, events = getattr(self, method, None), frappe.get_doc_hooks()
		answer = own(*args, **kwargs) if callable(own) else None
		for path in [path for key in (self.doctype, "*") for path in events.get(key, {}).get(method, [])]:
			result = frappe.get_attr(path)(self, method, *args, **kwargs)
			answer = answer if result is None else result
		return answer

	def _finish(self) -> None:
		self.run_method("on_update")
		frappe.clear_document_cache(self.doctype, self.name)
		self.notify_update()
		self.run_method("on_change")
		for key in ("__islocal", "__unsaved"):
			self.__dict__.pop(key, None)

	def notify_update(self) -> None:
		where = {"doctype": self.doctype, "docname": self.name}
		message = {"modified": self.modified, "doctype": self.doctype, "name": self.name}
		frappe.publish_realtime("doc_update", message, **where, after_commit=True)
		frappe.publish_realtime("list_update", message, after_commit=True)

	def db_set(self, fieldname: Any, value: Any = None, update_modified: bool = True) -> None:
		values = dict(fieldname) if isinstance(fieldname, dict) else {fieldname: value}
		values |= {"modified": now(), "modified_by": frappe.session.user} if update_modified else {}
		self.update(values)
		self._doc_before_save = self.get_doc_before_save() or frappe.get_doc(self.doctype, self.name)
		self.run_method("before_change")
		frappe.db.set_value(self.doctype, self.name, values, update_modified=False)
		self.run_method("on_change")

	def apply_fieldlevel_read_permissions(self) -> None:
		"""There is nothing to hide: fields above level 0 are not offered."""

	def delete(self, ignore_permissions: bool = False, force: bool = False) -> None:
		options = {"ignore_permissions": ignore_permissions, "force": force, "flags": self.flags}
		frappe.delete_doc(self.doctype, self.name, **options)
