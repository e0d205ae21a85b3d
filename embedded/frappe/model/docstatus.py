"""The state of a document; the embedded site keeps drafts only."""


class DocStatus(int):
	def is_draft(self) -> bool:
		return self == 0

	def is_submitted(self) -> bool:
		return self == 1

	def is_cancelled(self) -> bool:
		return self == 2

	@classmethod
	def draft(cls) -> "DocStatus":
		return cls(0)
