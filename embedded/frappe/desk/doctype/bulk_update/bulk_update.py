"""One change for many documents, as list views make it."""

import frappe


@frappe.whitelist()
def submit_cancel_or_update_docs(doctype, docnames, action="submit", data=None):
	"""Names of the documents that could not be changed."""
	docnames, failed = frappe.parse_json(docnames), []
	if action != "update" or len(docnames) >= 20:
		raise frappe.NotOfferedError(f"The bulk action {action} on {len(docnames)} documents")
	for name in docnames:
		doc = frappe.get_doc(doctype, name)
		try:
			doc.update(frappe.parse_json(data)).save()
			frappe.db.commit()
		except Exception:
			failed.append(name)
			frappe.db.rollback()
	return failed
