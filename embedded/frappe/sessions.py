"""Login sessions, kept in the site's cache."""

import frappe

LIFETIME = 240 * 60 * 60


class Session:
	"""What a `sid` cookie stands for; `data` becomes `frappe.session`."""

	def __init__(self, user: str, sid: str | None = None, data: dict | None = None):
		self.user = user
		self.data = frappe._dict(user=user, sid=sid or user, data=frappe._dict(data or {}))

	@classmethod
	def start(cls, user: str) -> "Session":
		session = cls(user, frappe.generate_hash(length=56))
		session.update(force=True)
		return session

	@classmethod
	def resume(cls, sid: str | None) -> "Session":
		stored = frappe.cache.get_value(_key(sid)) if sid and sid != "Guest" else None
		return cls(stored["user"], sid, stored["data"]) if stored else cls("Guest")

	def update(self, force: bool = False) -> None:
		if force and self.data.sid != "Guest":
			stored = {"user": self.user, "data": dict(self.data.data)}
			frappe.cache.set_value(_key(self.data.sid), stored, expires_in_sec=LIFETIME)


def get_csrf_token() -> str:
	session = frappe.local.session
	if not session.data.csrf_token:
		session.data.csrf_token = frappe.generate_hash()
		frappe.local.session_obj.update(force=True)
	return session.data.csrf_token


def delete_session(sid: str) -> None:
	frappe.cache.delete_value(_key(sid))


def _key(sid: str) -> str:
	return f"session:{sid}"
