"""A file of the site: its content is on disk, and who may read it is decided by what it is attached to."""

import hashlib
from pathlib import Path

import frappe
from frappe.model.document import Document
from werkzeug.wrappers import Request, Response


class File(Document):
	def before_insert(self) -> None:
		content = self.get("content") or (self.file_url and self.get_content())
		if not content:
			raise frappe.NotOfferedError("a File without content")
		content = content.encode() if isinstance(content, str) else content
		self.content_hash, self.file_size = hashlib.md5(content).hexdigest(), len(content)
		if not self.file_url:
			name, folder = Path(self.file_name), "/private/files" if self.is_private else "/files"
			self.file_url = f"{folder}/{name.stem}{self.content_hash}{name.suffix}"
			Path(self.get_full_path()).parent.mkdir(parents=True, exist_ok=True)
			Path(self.get_full_path()).write_bytes(content)
			frappe.db.after_rollback.add(self.on_trash)

	def get_full_path(self) -> str:
		folder = "private" if self.file_url.startswith("/private/") else "public"
		return str(Path(frappe.local.site_path, folder, "files", Path(self.file_url).name))

	def get_content(self) -> bytes | str:
		content = Path(self.get_full_path()).read_bytes()
		try:
			return content.decode()
		except UnicodeDecodeError:
			return content

	def on_trash(self) -> None:
		used = {"file_url": self.file_url, "name": ["!=", self.name]}
		if self.file_url and not frappe.db.exists("File", used):
			Path(self.get_full_path()).unlink(missing_ok=True)


def has_permission(doc, ptype: str | None = None, user: str | None = None) -> bool:
	user, is_read = user or frappe.session.user, ptype not in ("write", "create", "delete")
	if ptype == "create" or (is_read and not doc.is_private) or doc.owner == user or user == "Administrator":
		return True
	target = doc.attached_to_name and frappe.db.exists(doc.attached_to_doctype, doc.attached_to_name)
	right = "read" if is_read else "write"
	return bool(target) and frappe.has_permission(doc.attached_to_doctype, right, target, user)


def get_permission_query_conditions(user: str) -> str:
	return f"is_private=0 or owner={frappe.db.escape(user, percent=False)} or attached_to_name is not null"


def download_private_file(request: Request) -> Response:
	for name in frappe.get_all("File", filters={"file_url": request.path}, pluck="name"):
		file = frappe.get_doc("File", name)
		if frappe.session.user != "Guest" and has_permission(file, "read"):
			return Response(Path(file.get_full_path()).read_bytes(), mimetype="application/octet-stream")
	raise frappe.PermissionError(frappe._("You have no permission for this file"))
