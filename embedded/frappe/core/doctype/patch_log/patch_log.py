from frappe.model.document import Document


class PatchLog(Document):
	pass
