"""Documents from CSV files: each row is a document, and stands or falls alone."""

import csv

import frappe
from frappe import _
from frappe.utils import cint, flt, get_datetime, getdate

INSERT, UPDATE = "Insert New Records", "Update Existing Records"
CONVERT = {"Check": lambda text: int(text.lower() in ("yes", "true", "y", "1")), "Int": cint}
CONVERT |= {"Date": getdate, "Datetime": get_datetime, "Float": flt, "Currency": flt, "Percent": flt}


class Importer:
	def __init__(self, doctype: str, *, file_path: str, import_type: str, console: bool = False):
		if not console or not file_path.endswith(".csv") or import_type not in (INSERT, UPDATE):
			raise frappe.NotOfferedError(f"Importer({file_path!r}, {import_type!r}, console={console})")
		self.meta, self.file_path, self.import_type = frappe.get_meta(doctype), file_path, import_type
		self.data_import = frappe._dict(import_type=import_type)
		self.warnings: list[str] = []

	def import_data(self) -> list[frappe._dict] | None:
		"""A log entry per row. A file with faults gives None and leaves `in_import` set, as in Frappe."""
		frappe.flags.in_import = True
		with open(self.file_path, newline="", encoding="utf-8-sig") as file:
			titles, *lines = csv.reader(file)
		fields = [self._field(title.strip()) for title in titles]
		rows = [(number, self._values(fields, line)) for number, line in enumerate(lines, 2) if any(line)]
		if self.warnings:
			print(*self.warnings, sep="\n")
			return None
		log = [self._import_row(number, values) for number, values in rows]
		frappe.flags.in_import = False
		return log

	def _import_row(self, number: int, values: dict) -> frappe._dict:
		try:
			name = self._save(values).name
			frappe.db.commit()
			return frappe._dict(log_index=number, success=1, docname=name)
		except Exception as error:
			frappe.clear_messages()
			frappe.db.rollback()
			print(f"Row {number}: {error!r}")
			return frappe._dict(log_index=number, success=0, exception=frappe.get_traceback())

	def _save(self, values: dict):
		if self.import_type == INSERT:
			return frappe.new_doc(self.meta.name, **values).insert()
		doc = frappe.get_doc(self.meta.name, values.get("name"))
		before = doc.as_dict()
		doc.update(values)
		if before == doc.as_dict():
			frappe.throw(_("Nothing in this row differs from the stored document"))
		return doc.save()

	def _field(self, title: str):
		if title in ("ID", "name"):
			return frappe._dict(fieldname="name", fieldtype="Data")
		found = [df for df in self.meta.fields if title in (df.label, df.fieldname)]
		return found[0] if found else print(f"The column {title} is skipped: there is no such field")

	def _values(self, fields: list, line: list[str]) -> dict:
		cells = [(field, text) for field, text in zip(fields, line, strict=False) if field and text]
		for field, text in cells:
			is_option = field.fieldtype != "Select" or text in (field.options or "").split("\n")
			if not is_option or (field.fieldtype == "Link" and not frappe.db.exists(field.options, text)):
				self.warnings.append(f"{field.label} cannot be {text}")
		return {field.fieldname: CONVERT.get(field.fieldtype, str)(text) for field, text in cells}
