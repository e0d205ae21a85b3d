"""Which patches have run on this site."""

from frappe.model.document import Document


class PatchLog(Document):
	pass
