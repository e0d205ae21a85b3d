"""Texts as SQL, for conditions that are pasted into statements of others.

Such a statement may run with parameters, where `%` begins one, or without, where `%%` is two signs. So a
text is spelled in hexadecimal digits, which mean nothing anywhere. It is a literal all the same: the
collation of the column decides, and its index is used.
"""

from collections.abc import Iterable

import frappe


def quoted(text: str) -> str:
	if frappe.db.db_type == "mariadb":
		return f"_utf8mb4 0x{text.encode().hex()}" if text else "''"
	return f"U&'{''.join(f'!+{ord(sign):06x}' for sign in text)}' uescape '!'"


def is_one_of(column: str, texts: Iterable[str]) -> str:
	"""The condition that a column has one of these texts; no column has one of none."""
	return f"{column} in ({', '.join(map(quoted, texts)) or 'null'})"
