"""The life of a document: load, insert, save, delete, and the events in between."""

from collections.abc import Callable
from typing import Any

import frappe
from frappe import _
from frappe.model.base_document import BaseDocument, get_controller
from frappe.model.bulk import bulk_insert
from frappe.model.docstatus import DocStatus
from frappe.model.validation import Validation
from frappe.utils.data import cstr, get_absolute_url, get_datetime, get_timedelta, getdate, now

__all__ = ["Document", "bulk_insert", "get_controller", "get_doc"]


def get_doc(*args: Any, **kwargs: Any) -> "Document":
	if args and isinstance(args[0], BaseDocument):
		return args[0]
	if args and not isinstance(args[0], str | dict):
		raise ValueError("The first argument must be a DocType or a dict")
	values = args[0] if args and isinstance(args[0], dict) else kwargs
	doctype = args[0] if args and isinstance(args[0], str) else values.get("doctype")
	if not doctype:
		raise ValueError("doctype is needed")
	return get_controller(doctype)(*args, **kwargs)


class Document(Validation, BaseDocument):
	def __init__(self, *args: Any, for_update: bool = False, **kwargs: Any):
		self.doctype, self.name, self.flags = None, None, frappe._dict()
		if args and isinstance(args[0], str):
			self.doctype, self.name = args[0], args[0] if len(args) == 1 else args[1]
			self.flags.for_update = for_update
			self.load_from_db()
			return
		values = args[0] if args else kwargs
		if not values:
			raise ValueError("A document needs values")
		super().__init__(values)
		self.init_columns()

	def load_from_db(self) -> "Document":
		super().__init__(self._load_single() if self.meta.issingle else self._load_row())
		for df in self.meta.get_table_fields():
			link = {"parent": self.name, "parenttype": self.doctype, "parentfield": df.fieldname}
			locking = {"for_update": self.flags.for_update}
			self.set(df.fieldname, frappe.db.get_values(df.options, link, "*", order_by="idx asc", **locking))
		self.init_columns()
		if self.meta.issingle:
			self._fix_numeric_types()
		if hasattr(self, "__setup__"):
			self.__setup__()
		return self

	def _load_single(self) -> dict:
		values = frappe.db.get_singles_dict(self.doctype, for_update=bool(self.flags.for_update))
		if not values:
			values = frappe.new_doc(self.doctype, as_dict=True).update(name=self.doctype)
			values.pop("__islocal", None)
		return values.update(name=self.doctype)

	def _load_row(self) -> dict:
		order = {} if isinstance(self.name, dict | list) else {"order_by": None}
		row = frappe.db.get_value(
			self.doctype, self.name, "*", as_dict=True, for_update=self.flags.for_update, **order
		)
		if not row:
			text = _("{0} {1} does not exist").format(_(self.doctype), self.name)
			frappe.throw(text, frappe.DoesNotExistError)
		return row

	def reload(self) -> "Document":
		return self.load_from_db()

	def get_latest(self) -> "Document":
		if not self.get_doc_before_save():
			self.load_doc_before_save()
		return self._doc_before_save

	def has_permission(self, permtype: str = "read", *, debug: bool = False, user: str | None = None) -> bool:
		if self.flags.ignore_permissions:
			return True
		return frappe.permissions.has_permission(self.doctype, permtype, self, user=user)

	def check_permission(self, permtype: str = "read", permlevel: Any = None) -> None:
		if not self.has_permission(permtype):
			frappe.flags.error_message = _("No permission to {0} {1}").format(_(permtype), _(self.doctype))
			raise frappe.PermissionError

	def insert(
		self,
		ignore_permissions: bool | None = None,
		ignore_links: bool | None = None,
		ignore_if_duplicate: bool = False,
		ignore_mandatory: bool | None = None,
		set_name: str | None = None,
		set_child_names: bool = True,
	) -> "Document":
		given = {"ignore_permissions": ignore_permissions, "ignore_links": ignore_links}
		given["ignore_mandatory"] = ignore_mandatory
		self.flags.update({flag: value for flag, value in given.items() if value is not None})
		self.set("__islocal", True)
		self._set_defaults()
		self.set_user_and_timestamp()
		self.set_docstatus()
		self.check_if_latest()
		self._validate_links()
		self.check_permission("create")
		self.run_method("before_insert")
		self.set_new_name(set_name=set_name, set_child_names=set_child_names)
		self.set_parent_in_children()
		self.validate_higher_perm_levels()
		self.flags.in_insert = True
		self.run_before_save_methods()
		self._validate()
		self.set_docstatus()
		self.flags.in_insert = False
		self._write(ignore_if_duplicate)
		for row in self.get_all_children():
			row.db_insert()
		self.run_method("after_insert")
		self.flags.in_insert = True
		self.run_post_save_methods()
		self.flags.in_insert = False
		self._forget("__islocal", "__unsaved")
		return self

	def save(self, ignore_permissions: bool | None = None, ignore_version: bool | None = None) -> "Document":
		if ignore_permissions is not None:
			self.flags.ignore_permissions = ignore_permissions
		if self.get("__islocal") or not self.get("name"):
			return self.insert()
		self._set_defaults()
		self.check_permission("write")
		self.set_user_and_timestamp()
		self.set_docstatus()
		self.check_if_latest()
		self.set_parent_in_children()
		for row in self.get_all_children():
			if not row.name:
				frappe.model.naming.set_new_name(row)
		self.validate_higher_perm_levels()
		self._validate_links()
		self.run_before_save_methods()
		self._validate()
		self.set_docstatus()
		self._write()
		self.update_children()
		self.run_post_save_methods()
		self._forget("__unsaved")
		return self

	def _write(self, ignore_if_duplicate: bool = False) -> None:
		if self.meta.issingle:
			self.update_single(self.get_valid_dict())
		elif self.is_new():
			self.db_insert(ignore_if_duplicate=ignore_if_duplicate)
		else:
			self.db_update()

	def _forget(self, *keys: str) -> None:
		for key in keys:
			self.__dict__.pop(key, None)

	def update_single(self, values: dict) -> None:
		frappe.db.delete("Singles", {"doctype": self.doctype})
		rows = [(self.doctype, field, value) for field, value in values.items() if field != "doctype"]
		for row in rows:
			frappe.db.sql("insert into `tabSingles` (doctype, field, value) values (%s, %s, %s)", row)
		frappe.db.value_cache.pop(self.doctype, None)

	def update_children(self) -> None:
		for df in self.meta.get_table_fields():
			self.update_child_table(df.fieldname, df)

	def update_child_table(self, fieldname: str, df: Any = None) -> None:
		df = df or self.meta.get_field(fieldname)
		rows = self.get(fieldname)
		if df.options not in (self.flags.ignore_children_type or ()):
			link = {"parent": self.name, "parenttype": self.doctype, "parentfield": fieldname}
			kept = [row.name for row in rows if row.name and not row.is_new()]
			frappe.db.delete(df.options, link | ({"name": ["not in", kept]} if kept else {}))
		for row in rows:
			row.db_update()

	def get_doc_before_save(self) -> "Document | None":
		return getattr(self, "_doc_before_save", None)

	def has_value_changed(self, fieldname: str) -> bool:
		previous = self.get_doc_before_save()
		if not previous:
			return True
		old, new = previous.get(fieldname), self.get(fieldname)
		converters = {"datetime": get_datetime, "date": getdate, "timedelta": get_timedelta}
		if new is not None and (convert := converters.get(type(old).__name__)):
			new = convert(new)
		return old != new

	def set_new_name(
		self, force: bool = False, set_name: str | None = None, set_child_names: bool = True
	) -> None:
		if self.flags.name_set and not force:
			return
		self.flags.name_set = True
		if self.get("__newname") and (self.meta.autoname or "").lower() == "prompt":
			self.name = frappe.model.naming.validate_name(self.doctype, self.get("__newname"))
			return
		if set_name:
			self.name = frappe.model.naming.validate_name(self.doctype, set_name)
		else:
			frappe.model.naming.set_new_name(self)
		for row in self.get_all_children() if set_child_names else ():
			frappe.model.naming.set_new_name(row)

	def get_title(self) -> str:
		return self.get(self.meta.get_title_field()) or ""

	def set_user_and_timestamp(self) -> None:
		self._original_modified = self.modified
		self.modified, self.modified_by = now(), frappe.session.user
		flags = frappe.flags
		if self.is_new() and not (flags.in_install or flags.in_patch or flags.in_migrate):
			self.creation, self.owner = self.modified, self.modified_by
		for row in self.get_all_children():
			row.modified, row.modified_by = self.modified, self.modified_by
			row.owner = row.owner or self.owner
			row.creation = row.creation or self.creation
		flags.currently_saving.append((self.doctype, self.name))

	def set_docstatus(self) -> None:
		if self.docstatus:
			raise frappe.NotOfferedError("submitting a document")
		for row in self.get_all_children():
			row.docstatus = DocStatus.draft()

	def _set_defaults(self) -> None:
		if frappe.flags.in_import:
			return
		if self.is_new():
			self.update_if_missing(frappe.new_doc(self.doctype, as_dict=True))
		for df in self.meta.get_table_fields():
			new_rows = [row for row in self.get(df.fieldname) or [] if row.is_new()]
			defaults = frappe.new_doc(df.options, parent_doc=self, parentfield=df.fieldname, as_dict=True)
			for row in new_rows:
				row.update_if_missing(defaults)

	def check_if_latest(self) -> None:
		self.load_doc_before_save(raise_exception=True)
		previous = self._doc_before_save
		if previous and cstr(previous.modified) != cstr(self._original_modified):
			text = _("{0} {1} was changed after you opened it ({2}); reload it first")
			frappe.msgprint(
				text.format(_(self.doctype), self.name, previous.modified),
				raise_exception=frappe.TimestampMismatchError,
			)

	def load_doc_before_save(self, *, raise_exception: bool = False) -> None:
		self._doc_before_save = None
		if self.is_new():
			return
		try:
			self._doc_before_save = frappe.get_doc(self.doctype, self.name, for_update=True)
		except frappe.DoesNotExistError:
			if raise_exception:
				raise
			frappe.clear_last_message()

	def set_parent_in_children(self) -> None:
		for row in self.get_all_children():
			row.parent, row.parenttype = self.name, self.doctype

	def get_all_children(self, parenttype: str | None = None) -> list["Document"]:
		tables = [df for df in self.meta.get_table_fields() if parenttype in (None, df.options)]
		return [row for df in tables for row in self.get(df.fieldname) or []]

	def run_method(self, method: str, *args: Any, **kwargs: Any) -> Any:
		own = getattr(self, method, None)
		results = [own(*args, **kwargs)] if callable(own) else []
		events = frappe.get_doc_hooks()
		for key in (self.doctype, "*"):
			for handler in events.get(key, {}).get(method, []):
				results.append(frappe.get_attr(handler)(self, method, *args, **kwargs))
		out = None
		for result in results:
			if isinstance(result, dict):
				out = {**(out if isinstance(out, dict) else {}), **result}
			elif result is not None:
				out = result
		return out

	run_trigger = run_method

	def run_before_save_methods(self) -> None:
		self.run_method("before_validate")
		if not self.flags.ignore_validate:
			self.run_method("validate")
			self.run_method("before_save")

	def run_post_save_methods(self) -> None:
		self.run_method("on_update")
		self.clear_cache()
		if self.flags.get("notify_update", True):
			self.notify_update()
		self.run_method("on_change")
		if (self.doctype, self.name) in frappe.flags.currently_saving:
			frappe.flags.currently_saving.remove((self.doctype, self.name))

	def clear_cache(self) -> None:
		frappe.clear_document_cache(self.doctype, self.name)

	def notify_update(self) -> None:
		if frappe.flags.in_patch:
			return
		message = {"modified": self.modified, "doctype": self.doctype, "name": self.name}
		where = {"doctype": self.doctype, "docname": self.name}
		frappe.publish_realtime("doc_update", message, **where, after_commit=True)
		if not (self.meta.read_only or self.meta.issingle or self.meta.istable):
			message = {"doctype": self.doctype, "name": self.name, "user": frappe.session.user}
			frappe.publish_realtime("list_update", message, after_commit=True)

	def db_set(
		self,
		fieldname: Any,
		value: Any = None,
		update_modified: bool = True,
		notify: bool = False,
		commit: bool = False,
	) -> None:
		self.update(fieldname if isinstance(fieldname, dict) else {fieldname: value})
		if update_modified and (self.doctype, self.name) not in frappe.flags.currently_saving:
			self.modified, self.modified_by = now(), frappe.session.user
		if not self.get_doc_before_save():
			self.load_doc_before_save()
		self.run_method("before_change")
		if self.name is None:
			return
		stamp = {
			"modified": self.modified,
			"modified_by": self.modified_by,
			"update_modified": update_modified,
		}
		if self.meta.issingle:
			frappe.db.set_single_value(self.doctype, fieldname, value, **stamp)
		else:
			frappe.db.set_value(self.doctype, self.name, fieldname, value, **stamp)
		self.run_method("on_change")
		if notify:
			self.notify_update()
		if commit:
			frappe.db.commit()

	def db_get(self, fieldname: str) -> Any:
		return frappe.db.get_value(self.doctype, self.name, fieldname)

	def delete(
		self, ignore_permissions: bool = False, force: bool = False, *, delete_permanently: bool = False
	) -> None:
		options = {"ignore_permissions": ignore_permissions, "force": force, "flags": self.flags}
		frappe.delete_doc(self.doctype, self.name, delete_permanently=delete_permanently, **options)

	def is_whitelisted(self, method_name: str) -> None:
		method = getattr(self, method_name, None)
		if not method:
			raise frappe.DoesNotExistError(f"{self.doctype} has no method {method_name}")
		frappe.is_whitelisted(getattr(method, "__func__", method))

	def get_url(self) -> str:
		return get_absolute_url(self.doctype, self.name)

	def log_error(self, title: str | None = None, message: str | None = None) -> Any:
		return frappe.log_error(title, message, self.doctype, self.name)

	def set_onload(self, key: str, value: Any) -> None:
		self.__dict__.setdefault("__onload", frappe._dict())[key] = value

	def get_onload(self, key: str | None = None) -> Any:
		onload = self.get("__onload") or frappe._dict()
		return onload[key] if key else onload

	def __repr__(self) -> str:
		return f"<{type(self).__name__}: {self.name or 'unsaved'}>"

	def __str__(self) -> str:
		return f"{type(self).__name__}({self.name or 'unsaved'})"


def _not_offered(name: str) -> Callable:
	def refuse(self: Document, *args: Any, **kwargs: Any) -> None:
		raise frappe.NotOfferedError(f"Document.{name}")

	return refuse


for _name in ("submit", "cancel", "rename", "lock", "unlock", "queue_action", "add_comment", "add_tag"):
	setattr(Document, _name, _not_offered(_name))
