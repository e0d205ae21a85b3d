from frappe.model.document import Document


class NoteItem(Document):
	pass
