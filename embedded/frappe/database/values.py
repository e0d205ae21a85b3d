"""The reads and writes of frappe.db by DocType and filters."""

from typing import Any

import frappe
from frappe.database.utils import DefaultOrderBy, FallBackDateTimeStr
from frappe.utils.data import cast, get_datetime, getdate, now, sbool
from pypika.functions import Count


class Values:
	def get(self, doctype: str, filters: Any = None, as_dict: bool = True, cache: bool = False) -> Any:
		return self.get_value(doctype, filters, "*", as_dict=as_dict, cache=cache)

	def get_value(
		self,
		doctype: str,
		filters: Any = None,
		fieldname: Any = "name",
		ignore: bool | None = None,
		as_dict: bool = False,
		debug: bool = False,
		order_by: str | None = DefaultOrderBy,
		cache: bool = False,
		for_update: bool = False,
		*,
		run: bool = True,
		pluck: bool = False,
		distinct: bool = False,
		skip_locked: bool = False,
		wait: bool = True,
	) -> Any:
		result = self.get_values(
			doctype,
			filters,
			fieldname,
			ignore,
			as_dict,
			debug,
			order_by,
			cache=cache,
			for_update=for_update,
			run=run,
			pluck=pluck,
			distinct=distinct,
			limit=1,
			skip_locked=skip_locked,
			wait=wait,
		)
		if not run or not result:
			return result if not run else None
		row = result[0]
		return row if pluck or as_dict or len(row) > 1 else row[0]

	def get_values(
		self,
		doctype: str,
		filters: Any = None,
		fieldname: Any = "name",
		ignore: bool | None = None,
		as_dict: bool = False,
		debug: bool = False,
		order_by: str | None = DefaultOrderBy,
		update: dict | None = None,
		cache: bool = False,
		for_update: bool = False,
		*,
		run: bool = True,
		pluck: bool = False,
		distinct: bool = False,
		limit: int | None = None,
		skip_locked: bool = False,
		wait: bool = True,
	) -> Any:
		key = (doctype, filters, fieldname) if cache and isinstance(filters, str) else None
		if key and key in self.value_cache:
			return self.value_cache[key]
		if filters is None or (filters == doctype and doctype != "DocType"):
			out = self._values_of_single(doctype, fieldname, as_dict, update)
		elif filters == []:
			out = {}
		else:
			out = self._values_of_table(
				doctype,
				fieldname,
				filters,
				ignore,
				None if distinct else "modified" if order_by == DefaultOrderBy else order_by,
				{"for_update": for_update, "skip_locked": skip_locked, "wait": wait},
				{"as_dict": as_dict or fieldname == "*", "update": update, "run": run, "pluck": pluck},
				distinct=distinct,
				limit=limit,
			)
		if key:
			self.value_cache[key] = out
		return out

	def _values_of_table(
		self,
		doctype: str,
		fields: Any,
		filters: Any,
		ignore: bool | None,
		order_by: str | None,
		locking: dict,
		running: dict,
		**limits: Any,
	) -> Any:
		query = frappe.qb.get_query(
			doctype, fields=fields, filters=filters, order_by=order_by, **locking, **limits
		)
		try:
			return query.run(**running)
		except Exception as e:
			if ignore and (self.is_missing_column(e) or self.is_table_missing(e)):
				return None
			raise

	def _values_of_single(self, doctype: str, fields: Any, as_dict: bool, update: dict | None) -> list:
		values = self.get_singles_dict(doctype)
		if fields != "*":
			fields = [fields] if isinstance(fields, str) else fields
			found = frappe._dict({field: values[field] for field in fields if field in values})
			if not found:
				return []
			if not as_dict:
				return [[found.get(field) for field in fields]]
			values = found
		return [values.update(update or {})] if values else []

	def get_singles_dict(
		self, doctype: str, debug: bool = False, *, for_update: bool = False, cast: bool = False
	) -> frappe._dict:
		rows = frappe.qb.get_query(
			"Singles", filters={"doctype": doctype}, fields=["field", "value"], for_update=for_update
		).run()
		values = frappe._dict(rows)
		if cast:
			meta = frappe.get_meta(doctype)
			for field in filter(meta.has_field, list(values)):
				values[field] = _cast(meta.get_field(field).fieldtype, values[field])
		return values

	def get_single_value(self, doctype: str, fieldname: str, cache: bool = True) -> Any:
		cached = self.value_cache.setdefault(doctype, {})
		if cache and fieldname in cached:
			return cached[fieldname]
		df = frappe.get_meta(doctype).get_field(fieldname)
		if not df:
			frappe.throw(frappe._("{1} has no field {0}").format(fieldname, doctype))
		row = frappe.qb.get_query(
			"Singles", filters={"doctype": doctype, "field": fieldname}, fields="value"
		).run()
		cached[fieldname] = _cast(df.fieldtype, row[0][0] if row else None)
		return cached[fieldname]

	get_singles_value = get_single_value

	@staticmethod
	def _updates(
		field: Any, value: Any, modified: Any, modified_by: str | None, update_modified: bool
	) -> dict:
		updates = field if isinstance(field, dict) else {field: value}
		if update_modified:
			updates.update(modified=modified or now(), modified_by=modified_by or frappe.session.user)
		return updates

	def set_single_value(
		self,
		doctype: str,
		fieldname: Any,
		value: Any = None,
		*,
		modified: Any = None,
		modified_by: str | None = None,
		update_modified: bool = True,
		debug: bool = False,
	) -> None:
		updates = self._updates(fieldname, value, modified, modified_by, update_modified)
		self.delete("Singles", {"field": ("in", tuple(updates)), "doctype": doctype})
		rows = [(doctype, key, sbool(value)) for key, value in updates.items()]
		frappe.qb.into("Singles").columns("doctype", "field", "value").insert(*rows).run()
		frappe.clear_document_cache(doctype, doctype)
		self.value_cache.pop(doctype, None)

	def set_value(
		self,
		dt: str,
		dn: Any,
		field: Any,
		val: Any = None,
		modified: Any = None,
		modified_by: str | None = None,
		update_modified: bool = True,
		debug: bool = False,
	) -> None:
		if dn is None or dt == dn:
			if frappe.get_meta(dt).issingle:
				options = {
					"modified": modified,
					"modified_by": modified_by,
					"update_modified": update_modified,
				}
				self.set_single_value(dt, field, val, **options)
			return
		query = frappe.qb.get_query(dt, filters=dn, update=True)
		frappe.clear_document_cache(dt, dn if isinstance(dn, str) else None)
		for column, value in self._updates(field, val, modified, modified_by, update_modified).items():
			query = query.set(column, value)
		query.run()
		self.value_cache.pop(dt, None)

	def exists(self, dt: Any, dn: Any = None, cache: bool = False) -> Any:
		if dt != "DocType" and dt == dn:
			return dn
		if isinstance(dt, dict):
			dn = {key: value for key, value in dt.items() if key != "doctype"}
			dt = dt["doctype"]
		return self.get_value(dt, dn, ignore=True, cache=cache, order_by=None)

	def count(
		self, dt: str, filters: Any = None, debug: bool = False, cache: bool = False, distinct: bool = True
	) -> int:
		if cache:
			raise frappe.NotOfferedError("frappe.db.count(cache=True)")
		return frappe.qb.get_query(dt, filters=filters, fields=Count("*"), distinct=distinct).run()[0][0]

	def delete(self, doctype: str, filters: Any = None, debug: bool = False) -> Any:
		return frappe.qb.get_query(doctype, filters=filters, delete=True).run()

	@staticmethod
	def get_all(*args: Any, **kwargs: Any) -> list:
		return frappe.get_all(*args, **kwargs)

	@staticmethod
	def get_list(*args: Any, **kwargs: Any) -> list:
		return frappe.get_list(*args, **kwargs)

	def field_exists(self, dt: str, fn: str) -> Any:
		return self.exists("DocField", {"fieldname": fn, "parent": dt})

	def a_row_exists(self, doctype: str) -> Any:
		return frappe.get_all(doctype, limit=1, order_by=None, as_list=True)

	def get_default(self, key: str, parent: str = "__default") -> Any:
		return frappe.defaults.get_defaults_for(parent).get(key)

	def set_default(
		self, key: str, val: Any, parent: str = "__default", parenttype: str | None = None
	) -> None:
		frappe.defaults.set_default(key, val, parent, parenttype)

	def get_global(self, key: str, user: str = "__global") -> Any:
		return self.get_default(key, user)

	def set_global(self, key: str, val: Any, user: str = "__global") -> None:
		self.set_default(key, val, user)

	@staticmethod
	def format_date(date: Any) -> str:
		return getdate(date).strftime("%Y-%m-%d") if date else "0001-01-01"

	@staticmethod
	def format_datetime(datetime: Any) -> str:
		return get_datetime(datetime).strftime("%Y-%m-%d %H:%M:%S.%f") if datetime else FallBackDateTimeStr


_cast = cast
