"""One document as a form saves it."""

import frappe
from frappe import _
from frappe.desk.form.load import get_docinfo, run_onload


@frappe.whitelist()
def savedocs(doc, action):
	if action != "Save":
		raise frappe.NotOfferedError(f"savedocs with the action {action}")
	doc = frappe.get_doc(frappe.parse_json(doc))
	if doc.get("__islocal"):
		doc.localname, doc.name = doc.name, doc.get("__newname")
	doc.docstatus = 0
	doc.save()
	run_onload(doc)
	frappe.local.response["docinfo"] = get_docinfo(doc)
	sent = doc.as_dict()
	if doc.get("localname"):
		sent["localname"] = doc.localname
	frappe.local.response.docs.append(sent)
	frappe.msgprint(_("Saved"), indicator="green", alert=True)
