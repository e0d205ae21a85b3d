"""An error that somebody should look at."""

from frappe.model.document import Document


class ErrorLog(Document):
	def validate(self) -> None:
		if len(self.method or "") > 140:
			self.method, self.error = self.method[:140], f"{self.method}\n{self.error}"
