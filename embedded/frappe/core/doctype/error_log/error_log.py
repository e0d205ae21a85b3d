"""An error that somebody should look at."""

import frappe
from frappe.model.document import Document


class ErrorLog(Document):
	def validate(self) -> None:
		self.method, self.error = str(self.method or ""), str(self.error or "")
		if len(self.method) > 140:
			self.error = f"{self.method}\n{self.error}"
			self.method = self.method[:140]

	@staticmethod
	def clear_old_logs(days: int = 30) -> None:
		table = frappe.qb.DocType("Error Log")
		limit = frappe.utils.add_days(frappe.utils.now_datetime(), -days)
		frappe.qb.from_(table).where(table.modified < limit).delete().run()
