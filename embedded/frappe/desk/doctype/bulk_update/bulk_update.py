"""One change for many documents, as list views make it."""

from typing import Any

import frappe
from frappe import _

IN_THE_REQUEST, AT_MOST = 20, 500


@frappe.whitelist()
def submit_cancel_or_update_docs(doctype, docnames, action="submit", data=None, task_id=None):
	"""Names of the documents that could not be changed; many documents are left to a worker."""
	docnames = frappe.parse_json(docnames)
	if action != "update":
		raise frappe.NotOfferedError(f"The bulk action {action}")
	if len(docnames) > AT_MOST:
		frappe.throw(_("At most {0} documents can be changed at once").format(AT_MOST))
	if len(docnames) < IN_THE_REQUEST:
		return _bulk_action(doctype, docnames, data)
	frappe.msgprint(_("A worker will change the documents"), alert=True)
	frappe.enqueue(_bulk_action, doctype=doctype, docnames=docnames, data=data, queue="short", timeout=1000)
	return None


def _bulk_action(doctype: str, docnames: list[str], data: Any) -> list[str]:
	failed = []
	for name in docnames:
		doc = frappe.get_doc(doctype, name)
		try:
			doc.update(frappe.parse_json(data))
			doc.save()
			frappe.db.commit()
		except Exception:
			failed.append(name)
			frappe.db.rollback()
	return failed
