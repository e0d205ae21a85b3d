"""frappe.get_list and get_all: filters with Frappe's NULL rules, and what the user may see."""

import datetime
import json
import re
from collections.abc import Callable
from typing import Any

import frappe
from frappe import _
from frappe.database.utils import DefaultOrderBy, FallBackDateTimeStr
from frappe.model import child_table_fields, default_fields, get_permitted_fields, optional_fields
from frappe.utils.data import cint, cstr, flt, get_datetime, get_time, getdate, nowdate

OPERATORS = ("=", "!=", ">", "<", ">=", "<=", "like", "not like", "in", "not in", "is", "between")
NUMERIC = ("Check", "Float", "Int", "Currency", "Percent")
FUNCTION = re.compile(
	r"^(count|sum|avg|min|max)\(\s*(distinct\s+)?([`\"\w .*]+?)\s*\)(\s+as\s+[`\"\w]+)?$", re.IGNORECASE
)
PLAIN = re.compile(
	r"^[`\"]?(?:tab[\w -]+[`\"]?\.[`\"]?)?(\w+)[`\"]?(?:\s+as\s+([`\"'\w:]+))?$", re.IGNORECASE
)
LINKED = re.compile(r"^(\w+)\.(\w+)(?:\s+as\s+(\w+))?$", re.IGNORECASE)
ORDER = re.compile(r"^[\w`\". ()]+( asc| desc)?$", re.IGNORECASE)


class DatabaseQuery:
	def __init__(self, doctype: str, user: str | None = None):
		self.doctype, self.user = doctype, user
		self.meta = frappe.get_meta(doctype)
		self.children: list[str] = []
		self.links: set[tuple[str, str]] = set()

	def execute(
		self,
		fields: Any = None,
		filters: Any = None,
		or_filters: Any = None,
		group_by: str | None = None,
		order_by: str | None = DefaultOrderBy,
		limit_start: int | None = 0,
		limit_page_length: int | None = None,
		as_list: bool = False,
		debug: bool = False,
		ignore_permissions: bool = False,
		user: str | None = None,
		distinct: bool = False,
		start: int | None = None,
		page_length: int | None = None,
		limit: int | None = None,
		ignore_ifnull: bool = False,
		update: dict | None = None,
		reference_doctype: str | None = None,
		run: bool = True,
		strict: bool = True,
		pluck: str | None = None,
		ignore_ddl: bool = False,
		*,
		parent_doctype: str | None = None,
	) -> Any:
		self.user = user or self.user or frappe.session.user
		self.reference_doctype, self.parent_doctype = reference_doctype or self.doctype, parent_doctype
		self.ignore_permissions, self.ignore_ifnull = ignore_permissions, ignore_ifnull
		self.ptype = None if ignore_permissions else self.check_read_permission(self.doctype)
		if isinstance(fields, dict) or (fields and isinstance(fields, list) and isinstance(fields[0], list)):
			fields, filters = filters, fields
		conditions = self._conditions(filters, or_filters)
		columns = self._columns(fields or [pluck or "name"], as_list)
		if not columns:
			return []
		order = "" if distinct else self._order_by(order_by, columns, group_by)
		size = limit or page_length or limit_page_length
		parts = [
			f"select {'distinct ' if distinct else ''}{', '.join(columns)} from {self._tables()}",
			f"where {conditions}" if conditions else "",
			f"group by {self._checked(group_by)}" if group_by else "",
			f"order by {order}" if order else "",
			f"limit {cint(size)} offset {cint(start or limit_start)}" if size else "",
		]
		rows = frappe.db.sql(
			" ".join(filter(None, parts)), as_dict=not as_list, update=update, run=run, ignore_ddl=ignore_ddl
		)
		return [row[pluck] for row in rows] if pluck and run else rows

	def check_read_permission(self, doctype: str) -> str:
		ptype = "select" if frappe.only_has_select_perm(doctype, self.user) else "read"
		parent = self.parent_doctype or self.doctype
		frappe.has_permission(doctype, ptype, user=self.user, throw=True, parent_doctype=parent)
		return ptype

	def _tables(self) -> str:
		parenttype = frappe.db.escape(self.doctype, percent=False)
		joins = (
			f" left join `tab{child}` on (`tab{child}`.parenttype = {parenttype}"
			f" and `tab{child}`.parent = `tab{self.doctype}`.name)"
			for child in self.children
		)
		links = (
			f" left join `tab{doctype}` `{link}_link` on `{link}_link`.name = {self._quoted(link)}"
			for link, doctype in sorted(self.links)
		)
		return f"`tab{self.doctype}`" + "".join((*joins, *links))

	def _add_child(self, doctype: str) -> None:
		if doctype != self.doctype and doctype not in self.children:
			if not frappe.get_meta(doctype).istable:
				frappe.throw(
					_("{0} is no child table of {1}").format(doctype, self.doctype), frappe.DataError
				)
			self.children.append(doctype)
			if not self.ignore_permissions:
				self.check_read_permission(doctype)

	def _columns(self, fields: Any, as_list: bool) -> list[str]:
		if isinstance(fields, str):
			try:
				fields = json.loads(fields)
			except ValueError:
				fields = [part.strip() for part in fields.split(",")]
		permitted = None
		if not self.ignore_permissions and self.user != "Administrator":
			permitted = get_permitted_fields(self.doctype, self.parent_doctype, self.user, self.ptype)
		columns = []
		for field in filter(None, fields):
			columns += self._column(field, permitted, as_list)
		return columns

	def _column(self, field: Any, permitted: list[str] | None, as_list: bool) -> list[str]:
		if not isinstance(field, str):
			raise frappe.NotOfferedError(f"the field {field!r} in get_list")
		if field == "*":
			return [f"`tab{self.doctype}`.*"] if permitted is None else [self._quoted(f) for f in permitted]
		if match := FUNCTION.match(field.strip()):
			name = match[3].strip('`"* ').rpartition(".")[2].strip('`"')
			return [field] if not name or self._may_read(name, permitted) else []
		match = PLAIN.match(field.strip())
		if not match:
			if linked := LINKED.match(field.strip()):
				return [self._linked_column(*linked.groups())]
			frappe.throw(_("Functions and sub-queries are restricted: {0}").format(field), frappe.DataError)
		if not self._may_read(match[1], permitted):
			return ["NULL"] if as_list else []
		if (doctype := match[0].strip('`"')[3:].split(".")[0].strip('`"')) and "." in field:
			self._add_child(doctype)
			column = self._quoted(match[1], doctype)
		else:
			column = self._quoted(match[1])
		return [f"{column} as {match[2]}" if match[2] else column]

	def _linked_column(self, link: str, fieldname: str, alias: str | None) -> str:
		df = self.meta.get_field(link)
		if not df:
			frappe.throw(_("{0} has no field {1}").format(self.doctype, link), frappe.DataError)
		if df.fieldtype != "Link":
			self._add_child(df.options)
			return f"{self._quoted(fieldname, df.options)} as {alias or fieldname}"
		if not self.ignore_permissions:
			self.check_read_permission(df.options)
			if fieldname not in get_permitted_fields(df.options, user=self.user):
				return f"NULL as {alias or fieldname}"
		self.links.add((link, df.options))
		return f"`{link}_link`.`{fieldname}` as {alias or fieldname}"

	@staticmethod
	def _may_read(name: str, permitted: list[str] | None) -> bool:
		return permitted is None or name in permitted or name in optional_fields

	def _quoted(self, fieldname: str, doctype: str | None = None) -> str:
		return f"`tab{doctype or self.doctype}`.`{fieldname}`"

	def _order_by(self, order_by: str | None, columns: list[str], group_by: str | None) -> str:
		if order_by != DefaultOrderBy:
			return self._checked(order_by) if order_by else ""
		if FUNCTION.match(columns[0]) or group_by:
			return ""
		if "," in (self.meta.sort_field or ""):
			pairs = [part.split() for part in self.meta.sort_field.split(",")]
			return ", ".join(f"{self._quoted(pair[0])} {(pair[1:] or ['asc'])[0]}" for pair in pairs)
		direction = (self.meta.sort_field and self.meta.sort_order) or "desc"
		return f"{self._quoted(self.meta.sort_field or 'modified')} {direction}"

	def _checked(self, clause: str) -> str:
		for part in clause.split(","):
			if not ORDER.match(part.strip()) or re.search(r"\bselect\b|\bsleep\b", part, re.IGNORECASE):
				frappe.throw(_("{0} cannot be used to sort or group").format(part))
		return clause

	def _conditions(self, filters: Any, or_filters: Any) -> str:
		parts = [self.prepare_filter_condition(f) for f in self._filter_list(filters)]
		if either := [self.prepare_filter_condition(f) for f in self._filter_list(or_filters)]:
			parts.append(f"({' or '.join(either)})")
		if not self.ignore_permissions and (match := self.build_match_conditions()):
			parts.append(f"({match})")
		return " and ".join(parts)

	def _filter_list(self, filters: Any) -> list:
		filters = json.loads(filters) if filters and isinstance(filters, str) else filters
		if isinstance(filters, dict):
			return [
				[self.doctype, key, *(value if isinstance(value, list | tuple) else ("=", value))]
				for key, value in filters.items()
			]
		return [
			f
			for entry in filters or []
			for f in (self._filter_list(entry) if isinstance(entry, dict) else [entry])
		]

	def prepare_filter_condition(self, f: Any) -> str:
		f = list(f)
		f = f[:4] if len(f) > 3 else [self.doctype, *(f if len(f) == 3 else (f[0], "=", f[1]))]
		doctype, fieldname, operator, value = f
		operator = cstr(operator).lower() or "="
		if operator not in OPERATORS:
			frappe.throw(_("{0} is no filter operator").format(operator))
		doctype = self._doctype_of(doctype, fieldname)
		self._add_child(doctype)
		df = frappe.get_meta(doctype).get_field(fieldname)
		column = self._quoted(fieldname, doctype)
		nullable = fieldname not in ("name", "modified", "creation")
		if operator in ("in", "not in"):
			return self._in_condition(column, operator, value, nullable, df)
		return self._simple_condition(column, fieldname, operator, value, nullable, df)

	@staticmethod
	def _doctype_of(doctype: str, fieldname: str) -> str:
		meta = frappe.get_meta(doctype)
		if fieldname in (*default_fields, *optional_fields, *child_table_fields) or meta.has_field(fieldname):
			return doctype
		for df in meta.get_table_fields():
			if frappe.get_meta(df.options).has_field(fieldname):
				return df.options
		return frappe.throw(_("{0} has no field {1} to filter by").format(doctype, fieldname))

	def _in_condition(self, column: str, operator: str, value: Any, nullable: bool, df: Any) -> str:
		values = value.split(",") if isinstance(value, str) else list(value or [""])
		texts = [cstr(v).strip() for v in values]
		if operator == "in":
			nullable = nullable and "" in texts
		listed = ", ".join(frappe.db.escape(text, percent=False) for text in texts)
		if nullable and not self.ignore_ifnull and not (df and df.fieldtype in NUMERIC):
			column = f"ifnull({column}, '')"
		return f"{column} {operator} ({listed})"

	def _simple_condition(
		self, column: str, fieldname: str, operator: str, value: Any, nullable: bool, df: Any
	) -> str:
		fieldtype = df.fieldtype if df else "Datetime" if fieldname in ("creation", "modified") else "Data"
		is_date = fieldtype in ("Date", "Datetime")
		if operator == "is":
			return f"{column} != ''" if value == "set" else f"ifnull({column}, '') = ''"
		if operator == "between":
			if not is_date:
				frappe.throw(_("{0} is no date to filter between").format(fieldname), frappe.DataError)
			return f"{column} between {between(value, fieldtype)}"
		text, fallback = self._literal(fieldtype, operator, value)
		nullable = nullable and fieldtype not in NUMERIC and not (operator in (">", ">=") and is_date)
		operator = {"like": "ilike"}.get(operator, operator)
		if self.ignore_ifnull or not nullable or (value and operator in ("=", "ilike")):
			return f"{column} {operator} {text}"
		return f"ifnull({column}, {fallback}) {operator} {text}"

	@staticmethod
	def _literal(fieldtype: str, operator: str, value: Any) -> tuple[str, str]:
		def quoted(text: str) -> str:
			return frappe.db.escape(text, percent=False)

		if "like" in operator:
			return quoted(cstr(value).replace("\\", "\\\\")), "''"
		if fieldtype == "Date":
			return quoted(frappe.db.format_date(value)), "'0001-01-01'"
		if fieldtype == "Datetime" or isinstance(value, datetime.datetime):
			return quoted(frappe.db.format_datetime(value)), f"'{FallBackDateTimeStr}'"
		if fieldtype == "Time":
			return quoted(get_time(value).strftime("%H:%M:%S.%f")), "'00:00:00'"
		if fieldtype in NUMERIC:
			return repr(flt(value)), "0"
		return quoted(cstr(value)), "''"

	def build_match_conditions(self, as_condition: bool = True) -> str:
		role_permissions = frappe.permissions.get_role_permissions(self.meta, user=self.user)
		can_read = role_permissions.get("select") or role_permissions.get("read")
		if not self.meta.istable and not can_read:
			frappe.throw(_("You may not read {0}").format(_(self.doctype)), frappe.PermissionError)
		match = ""
		if requires_owner_constraint(role_permissions):
			match = f"{self._quoted('owner')} = {frappe.db.escape(self.user, percent=False)}"
		elif can_read:
			match = self._user_permission_conditions()
		return " and ".join(
			filter(None, [f"({match})" if match else "", self.get_permission_query_conditions()])
		)

	def _user_permission_conditions(self) -> str:
		permissions = frappe.permissions.get_user_permissions(self.user)
		itself = frappe._dict(options=self.doctype, fieldname="name")
		strict = frappe.get_system_settings("apply_strict_user_permissions")
		conditions = []
		for df in [*self.meta.get_link_fields(), itself] if permissions else ():
			allowed = [] if df.ignore_user_permissions else self._allowed(permissions.get(df.options, []), df)
			if allowed:
				column = self._quoted(df.fieldname)
				listed = ", ".join(frappe.db.escape(name, percent=False) for name in allowed)
				empty = "" if strict else f"ifnull({column}, '') = '' or "
				conditions.append(f"({empty}{column} in ({listed}))")
		return " and ".join(conditions)

	def _allowed(self, permissions: list, df: Any) -> list[str]:
		target = self.reference_doctype if df.fieldname == "name" else self.doctype
		return [p.doc for p in permissions if not p.applicable_for or p.applicable_for == target]

	def get_permission_query_conditions(self) -> str:
		hooks = frappe.get_hooks("permission_query_conditions", {})
		methods: list[str | Callable] = hooks.get(self.doctype, []) + hooks.get("*", [])
		found = [frappe.call(frappe.get_attr(method), self.user, doctype=self.doctype) for method in methods]
		return " and ".join(filter(None, found))


def between(value: Any, fieldtype: str) -> str:
	ends = [*(value or [])][:2]
	ends += [nowdate()] * (2 - len(ends))
	if fieldtype == "Date":
		return " and ".join(f"'{frappe.db.format_date(end)}'" for end in ends)
	times = (datetime.time(), datetime.time(23, 59, 59, 999999))
	return " and ".join(
		f"'{frappe.db.format_datetime(_moment(e, t))}'" for e, t in zip(ends, times, strict=True)
	)


def _moment(value: Any, of_day: datetime.time) -> datetime.datetime:
	if isinstance(value, datetime.datetime) or (isinstance(value, str) and " " in value.strip()):
		return get_datetime(value)
	return datetime.datetime.combine(getdate(value), of_day)


def requires_owner_constraint(role_permissions: dict) -> bool:
	if_owner = role_permissions.get("if_owner")
	if not role_permissions.get("has_if_owner_enabled") or not if_owner:
		return False
	return not any(role_permissions.get(ptype) and ptype not in if_owner for ptype in ("select", "read"))


def check_parent_permission(parent: str | None, child_doctype: str) -> None:
	is_child = parent and frappe.db.exists("DocField", {"parent": parent, "options": child_doctype})
	if not is_child or not frappe.permissions.has_permission(parent):
		raise frappe.PermissionError
