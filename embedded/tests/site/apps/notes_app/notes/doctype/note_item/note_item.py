import frappe
from frappe.model.document import Document


class NoteItem(Document):
	def validate(self) -> None:
		if self.body == "bad":
			frappe.throw("a bad note")

	@frappe.whitelist()
	def shout(self) -> str:
		return self.title.upper()
