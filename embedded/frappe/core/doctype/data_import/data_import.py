"""Documents from JSON files, as fixtures need them."""

import os

import frappe
from frappe.modules.import_file import import_file_by_path


def import_doc(path: str) -> None:
	"""Each record replaces its stored version; defaults are skipped, validations run."""
	for file in [os.path.join(path, name) for name in os.listdir(path)] if os.path.isdir(path) else [path]:
		if not file.endswith(".json"):
			raise frappe.NotOfferedError(f"Importing {file}")
		frappe.flags.mute_emails = True
		import_file_by_path(file, data_import=True, force=True, reset_permissions=True)
		frappe.flags.mute_emails = False
		frappe.db.commit()
