"""Many documents in few statements, without naming, checks or events."""

from collections.abc import Generator, Iterable
from typing import Any

import frappe
from frappe.utils.data import now


def bulk_insert(
	doctype: str,
	documents: Iterable[Any],
	ignore_duplicates: bool = False,
	chunk_size: int = 10_000,
) -> None:
	documents = list(documents)
	tables = {doctype: documents}
	for df in frappe.get_meta(doctype).get_table_fields():
		tables.setdefault(df.options, []).extend(row for doc in documents for row in doc.get(df.fieldname))
	for table, rows in tables.items():
		columns = frappe.get_meta(table).get_valid_columns()
		options = {"ignore_duplicates": ignore_duplicates, "chunk_size": chunk_size}
		frappe.db.bulk_insert(table, columns, _document_values(rows, columns), **options)


def _document_values(documents: list, columns: list[str]) -> Generator[tuple, None, None]:
	for document in documents:
		document.creation = document.modified = now()
		document.owner = document.modified_by = frappe.session.user
		values = document.get_valid_dict(convert_dates_to_str=True)
		yield tuple(values[column] for column in columns)
