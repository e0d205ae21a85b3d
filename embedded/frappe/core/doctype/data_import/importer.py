"""Documents from CSV files: each row is a document, and stands or falls alone."""

import csv
from typing import Any

import frappe
from frappe import _
from frappe.utils import cint, flt, get_datetime, getdate

INSERT = "Insert New Records"
UPDATE = "Update Existing Records"
YES = ("yes", "true", "y", "1")


class Importer:
	def __init__(
		self,
		doctype: str,
		data_import: Any = None,
		file_path: str | None = None,
		import_type: str | None = None,
		console: bool = False,
	):
		if data_import is not None or not (file_path or "").endswith(".csv"):
			raise frappe.NotOfferedError("Importer with a Data Import document or a file that is not CSV")
		if import_type not in (INSERT, UPDATE):
			raise frappe.NotOfferedError(f"Importer with import_type {import_type}")
		self.doctype, self.file_path, self.import_type = doctype, file_path, import_type
		self.console = console
		self.meta = frappe.get_meta(doctype)
		self.warnings: list[str] = []

	def import_data(self) -> list[frappe._dict] | None:
		"""A log entry per row; None, and nothing imported, if the file itself has faults.

		An early end leaves `in_import` set, as in Frappe.
		"""
		frappe.flags.in_import = True
		rows = self._read()
		if self.warnings:
			self._say(*self.warnings)
			return None
		log = [self._import_row(number, values) for number, values in rows]
		frappe.flags.in_import = False
		return log

	def _import_row(self, number: int, values: dict) -> frappe._dict:
		entry = frappe._dict(row_indexes=frappe.as_json([number]), log_index=number)
		try:
			doc = self.insert_record(values) if self.import_type == INSERT else self.update_record(values)
			frappe.db.commit()
			return entry.update(success=1, docname=doc.name)
		except Exception:
			messages = list(frappe.local.message_log)
			frappe.clear_messages()
			frappe.db.rollback()
			self._say(f"Row {number}: {frappe.get_traceback().splitlines()[-1]}")
			return entry.update(success=0, exception=frappe.get_traceback(), messages=messages)

	def insert_record(self, values: dict) -> Any:
		doc = frappe.new_doc(self.doctype)
		doc.update(values)
		if not values.get("name") and (self.meta.autoname or "").lower() != "prompt":
			doc.set("name", None)
		return doc.insert()

	def update_record(self, values: dict) -> Any:
		doc = frappe.get_doc(self.doctype, values.get("name"))
		before = doc.as_dict()
		doc.update(values)
		if before == doc.as_dict():
			frappe.throw(_("Nothing in this row differs from the stored document"))
		return doc.save()

	def _read(self) -> list[tuple[int, dict]]:
		with open(self.file_path, newline="", encoding="utf-8-sig") as file:
			lines = list(csv.reader(file))
		fields = [self._field(title) for title in lines[0]]
		rows = [(number, line) for number, line in enumerate(lines[1:], 2) if any(line)]
		return [(number, self._values(number, fields, line)) for number, line in rows]

	def _field(self, title: str) -> Any:
		if title.strip() in ("ID", "name"):
			return frappe._dict(fieldname="name", fieldtype="Data", label="ID")
		for field in self.meta.fields:
			if title.strip() in (field.label, field.fieldname):
				return field
		if title.endswith(")") or "." in title:
			raise frappe.NotOfferedError(f"Importing the column {title} of a child table")
		self._say(f"The column {title} is skipped: {self.doctype} has no such field")
		return None

	def _values(self, number: int, fields: list, line: list[str]) -> dict:
		cells = [(field, text) for field, text in zip(fields, line, strict=False) if field and text != ""]
		return {field.fieldname: self._value(number, field, text) for field, text in cells}

	def _value(self, number: int, field: Any, text: str) -> Any:
		options = (field.options or "").split("\n")
		if field.fieldtype == "Select" and text not in options:
			self.warnings.append(f"Row {number}: {field.label} must be one of {', '.join(options)}")
		if field.fieldtype == "Link" and not frappe.db.exists(field.options, text):
			self.warnings.append(f"Row {number}: there is no {field.options} {text}")
		convert = {"Check": lambda value: int(value.lower() in YES), "Int": cint, "Date": getdate}
		convert |= {"Datetime": get_datetime, **dict.fromkeys(("Float", "Currency", "Percent"), flt)}
		return convert.get(field.fieldtype, str)(text)

	def _say(self, *lines: str) -> None:
		if self.console:
			print(*lines, sep="\n")
