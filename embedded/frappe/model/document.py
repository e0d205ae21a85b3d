"""The life of a document: load, insert, save, delete, and the events in between."""

import frappe
from frappe import _
from frappe.model.base_document import BaseDocument, differ, get_controller, typed
from frappe.model.naming import set_new_name, validate_name
from frappe.permissions import get_allowed_docs, get_user_permissions
from frappe.utils.data import cstr, now, now_datetime, nowdate

LINKS = """select f.parent, f.fieldname, f.fieldtype, f.options, t.istable
	from `tabDocField` f join `tabDocType` t on t.name = f.parent
	where ((f.fieldtype = 'Link' and f.options = %s) or f.fieldtype = 'Dynamic Link') and t.issingle = 0"""


def get_doc(*args, **kwargs) -> "Document":
	first = args[0] if args else kwargs
	if isinstance(first, BaseDocument):
		return first
	return get_controller(first if isinstance(first, str) else first["doctype"])(*args, **kwargs)


def new_doc(doctype: str, *, as_dict: bool = False, **kwargs):
	"""Starts with the values that fields have by default."""
	meta = frappe.get_meta(doctype)
	values = frappe._dict.fromkeys(meta.get_valid_columns())
	fields = [df for df in meta.fields if df.fieldname in values]
	values.update({df.fieldname: typed(df, _default(df, meta)) for df in fields})
	values.update(doctype=doctype, owner=frappe.session.user, docstatus=0, __islocal=1, __unsaved=1)
	return (values if as_dict else get_doc(values)).update(kwargs)


def _default(df, meta):
	if df.fieldtype == "Link" and df.options != "User" and not df.ignore_user_permissions:
		allowed = get_allowed_docs(get_user_permissions(), df.options, meta.name)
		if len(allowed) == 1:
			return frappe.db.exists(df.options, allowed[0])
	if df.fieldname == meta.title_field or not df.default:
		return df.options.split("\n")[0] if df.fieldtype == "Select" and df.options else None
	made = {"Today": nowdate, "Now": now_datetime, "__user": lambda: frappe.session.user}
	return made[df.default]() if df.default in made else df.default


class Document(BaseDocument):
	def __init__(self, *args, for_update: bool = False, **kwargs):
		self.doctype, self.name, self.flags = None, None, frappe._dict(for_update=for_update)
		if args and isinstance(args[0], str):
			self.doctype, self.name = args[0], args[0] if len(args) == 1 else args[1]
			self.load_from_db()
		else:
			super().__init__(args[0] if args else kwargs)

	def __getattr__(self, name: str):
		raise frappe.exceptions.NotOfferedAttribute(f"{type(self).__name__}.{name}")

	def load_from_db(self) -> "Document":
		how = {"for_update": self.flags.for_update}
		super().__init__(self._load(**how))
		for df in self.meta.get_table_fields():
			self.set(df.fieldname, frappe.db.get_values(*self._rows_of(df), "*", order_by="idx asc", **how))
		return self

	def reload(self) -> "Document":
		return self.load_from_db()

	def _load(self, for_update: bool) -> dict:
		if self.meta.issingle:
			values = frappe.db.get_singles_dict(self.doctype, for_update=for_update)
			values = values or frappe.new_doc(self.doctype, as_dict=True)
			values.update({df.fieldname: typed(df, values.get(df.fieldname)) for df in self.meta.fields})
			return values.update(name=self.doctype, __islocal=None, __unsaved=None)
		order = {} if isinstance(self.name, dict | list) else {"order_by": None}
		row = frappe.db.get_value(self.doctype, self.name, "*", as_dict=True, for_update=for_update, **order)
		if not row:
			text = _("{0} {1} does not exist").format(_(self.doctype), self.name)
			frappe.throw(text, frappe.DoesNotExistError)
		return row

	def _rows_of(self, df) -> tuple[str, dict]:
		return df.options, {"parent": self.name, "parenttype": self.doctype, "parentfield": df.fieldname}

	def has_permission(self, permtype: str = "read", *, user: str | None = None, throw: bool = False) -> bool:
		if self.flags.ignore_permissions:
			return True
		return frappe.permissions.has_permission(self.doctype, permtype, self, user, throw)

	def check_permission(self, permtype: str = "read") -> None:
		self.has_permission(permtype, throw=True)

	def insert(
		self, ignore_permissions=None, ignore_links=None, ignore_mandatory=None, set_name: str | None = None
	) -> "Document":
		given = {"ignore_permissions": ignore_permissions, "ignore_links": ignore_links}
		given["ignore_mandatory"] = ignore_mandatory
		self.flags.update({flag: value for flag, value in given.items() if value is not None})
		for row in self._all_rows():
			row.set("__islocal", True)
		self._set_defaults()
		self.set_user_and_timestamp()
		self._validate_links()
		self.check_permission("create")
		self.run_method("before_insert")
		self.set_new_name(set_name=set_name)
		self._check_and_write()
		self.run_method("after_insert")
		self._finish()
		return self

	def save(self, ignore_permissions: bool | None = None) -> "Document":
		if ignore_permissions is not None:
			self.flags.ignore_permissions = ignore_permissions
		if self.is_new() or not self.name:
			return self.insert()
		self._set_defaults()
		self.check_permission("write")
		self.set_user_and_timestamp()
		self.check_if_latest()
		self._validate_links()
		self._check_and_write()
		self._finish()
		return self

	def _check_and_write(self) -> None:
		self.run_method("before_validate")
		if not self.flags.ignore_validate:
			self.run_method("validate")
			self.run_method("before_save")
		self._validate()
		if self.meta.issingle:
			frappe.db.delete("Singles", {"doctype": self.doctype})
			frappe.db.set_single_value(self.doctype, self.get_valid_dict(), update_modified=False)
		else:
			self.db_insert() if self.is_new() else self.db_update()
		for df in self.meta.get_table_fields():
			self._write_children(df)

	def _write_children(self, df) -> None:
		doctype, link = self._rows_of(df)
		kept = [row.name for row in self.get(df.fieldname) if not row.is_new()]
		frappe.db.delete(doctype, link | ({"name": ["not in", kept]} if kept else {}))
		for row in self.get(df.fieldname):
			row.parent = self.name
			row.db_insert() if row.is_new() else row.db_update()

	def get_doc_before_save(self) -> "Document | None":
		return self.get("_doc_before_save")

	def has_value_changed(self, fieldname: str) -> bool:
		previous = self.get_doc_before_save()
		return not previous or differ(previous.get(fieldname), self.get(fieldname))

	def set_new_name(self, force: bool = False, set_name=None, set_child_names: bool = True) -> None:
		if self.flags.name_set and not force:
			return
		self.flags.name_set = True
		if set_name:
			self.name = validate_name(self.doctype, set_name)
		else:
			set_new_name(self)
		for row in self.get_all_children() if set_child_names else ():
			set_new_name(row)

	def set_user_and_timestamp(self) -> None:
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

	def check_if_latest(self) -> None:
		self._doc_before_save = frappe.get_doc(self.doctype, self.name, for_update=True)
		if cstr(self._doc_before_save.modified) != cstr(self._original_modified):
			text = _("{0} {1} was changed after you opened it; reload it first")
			frappe.throw(text.format(_(self.doctype), self.name), frappe.TimestampMismatchError)

	def run_method(self, method: str, *args, **kwargs):
		"""The controller's method, then the handlers in hooks; the last answer counts."""
		own, events = getattr(self, method, None), frappe.get_hooks("doc_events", {})
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

	def db_set(self, fieldname, value=None, update_modified: bool = True) -> None:
		values = dict(fieldname) if isinstance(fieldname, dict) else {fieldname: value}
		values |= {"modified": now(), "modified_by": frappe.session.user} if update_modified else {}
		self.update(values)
		self._doc_before_save = self.get_doc_before_save() or frappe.get_doc(self.doctype, self.name)
		self.run_method("before_change")
		frappe.db.set_value(self.doctype, self.name, values, update_modified=False)
		self.run_method("on_change")

	def delete(self, ignore_permissions: bool = False, force: bool = False) -> None:
		options = {"ignore_permissions": ignore_permissions, "force": force, "flags": self.flags}
		frappe.delete_doc(self.doctype, self.name, **options)


def delete_doc(
	doctype: str,
	name: str,
	force=0,
	for_reload: bool = False,
	ignore_permissions: bool = False,
	flags: dict | None = None,
	ignore_on_trash: bool = False,
	ignore_missing: bool = True,
) -> bool | None:
	if not frappe.db.exists(doctype, name):
		if not ignore_missing:
			raise frappe.DoesNotExistError
		return False
	# raises when somebody else holds the row
	frappe.db.get_value(doctype, name, for_update=True, wait=False, order_by=None)
	doc = frappe.get_doc(doctype, name)
	doc.flags.update(flags or {}, **({"ignore_permissions": True} if ignore_permissions else {}))
	if not for_reload:
		_check(doc, force, ignore_on_trash)
	frappe.db.delete(doctype, name)
	for df in doc.meta.get_table_fields():
		frappe.db.delete(df.options, {"parenttype": doctype, "parent": name})
	doc.run_method("after_delete")
	frappe.clear_document_cache(doctype, name)
	if not for_reload:
		attached = {"attached_to_doctype": doctype, "attached_to_name": name}
		for file in frappe.get_all("File", filters=attached, pluck="name"):
			delete_doc("File", file, ignore_permissions=True)
		doc.notify_update()
	return None


def _check(doc, force, ignore_on_trash: bool) -> None:
	is_standard = doc.doctype == "DocType" and not doc.custom
	if (is_standard and not force) or not doc.has_permission("delete"):
		frappe.throw(_("You may not delete {0} {1}").format(doc.doctype, doc.name), frappe.PermissionError)
	if not ignore_on_trash:
		doc.run_method("on_trash")
		doc.run_method("on_change")
	if force or doc.doctype == "DocType":
		return
	ignored = frappe.get_hooks("ignore_links_on_delete")
	linking = frappe.db.sql(LINKS, doc.doctype, as_dict=True)
	for df in [df for df in linking if df.parent not in ignored]:
		filters = {df.fieldname: doc.name}
		filters |= {df.options: doc.doctype} if df.fieldtype == "Dynamic Link" else {}
		columns = ["parenttype", "parent"] if df.istable else ["name", "name"]
		for doctype, name in frappe.db.get_values(df.parent, filters, columns, order_by=None):
			doctype = doctype if df.istable else df.parent
			if doctype not in ignored and (doctype, name) != (doc.doctype, doc.name):
				text = _("{0} {1} cannot be deleted: {2} {3} links to it")
				frappe.throw(text.format(doc.doctype, doc.name, doctype, name), frappe.LinkExistsError)
