"""Passwords of users as salted hashes, and secrets in fields sealed with the site's own key."""

import base64
import hashlib
import hmac
import secrets
from typing import Any

import frappe

ROUNDS = 200_000


def _store(doctype: str, name: str, fieldname: str, password: str, encrypted: int) -> None:
	frappe.db.sql(
		"""insert into "__Auth" (doctype, name, fieldname, password, encrypted) values (%s, %s, %s, %s, %s)
		on conflict (doctype, name, fieldname) do update set password = excluded.password""",
		(doctype, name, fieldname, password, encrypted),
	)


def _fetch(doctype: str, name: str, fieldname: str, encrypted: int) -> str | None:
	filters = {"doctype": doctype, "name": name, "fieldname": fieldname, "encrypted": encrypted}
	return frappe.db.get_value("__Auth", filters, "password", order_by=None)


def _hash(password: str, salt: bytes) -> str:
	digest = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ROUNDS)
	return f"pbkdf2${salt.hex()}${digest.hex()}"


def update_password(
	user: str, pwd: str, doctype: str = "User", fieldname: str = "password", logout_all_sessions: bool = False
) -> None:
	if logout_all_sessions:
		raise frappe.NotOfferedError("update_password(logout_all_sessions=True)")
	_store(doctype, user, fieldname, _hash(pwd, secrets.token_bytes(16)), 0)


def check_password(user: str, pwd: str, doctype: str = "User", fieldname: str = "password") -> str:
	stored = _fetch(doctype, user, fieldname, 0)
	if not stored or not hmac.compare_digest(stored, _hash(pwd, bytes.fromhex(stored.split("$")[1]))):
		raise frappe.AuthenticationError(frappe._("Wrong user or password"))
	return user


def get_encryption_key() -> bytes:
	return (frappe.conf.encryption_key or frappe.conf.db_password).encode()


def _stream(data: bytes, nonce: bytes) -> bytes:
	blocks = range(len(data) // 32 + 1)
	key = b"".join(hmac.digest(get_encryption_key(), nonce + i.to_bytes(4, "big"), "sha256") for i in blocks)
	return bytes(a ^ b for a, b in zip(data, key, strict=False))


def encrypt(txt: str) -> str:
	nonce = secrets.token_bytes(16)
	sealed = nonce + _stream(txt.encode(), nonce)
	return base64.urlsafe_b64encode(hmac.digest(get_encryption_key(), sealed, "sha256") + sealed).decode()


def decrypt(txt: str, key: Any = None) -> str:
	raw = base64.urlsafe_b64decode(txt)
	mac, sealed = raw[:32], raw[32:]
	if not hmac.compare_digest(mac, hmac.digest(get_encryption_key(), sealed, "sha256")):
		frappe.throw(frappe._("The encryption key of this site has changed"))
	return _stream(sealed[16:], sealed[:16]).decode()


def set_encrypted_password(doctype: str, name: str, pwd: str, fieldname: str = "password") -> None:
	_store(doctype, name, fieldname, encrypt(pwd), 1)


def get_decrypted_password(
	doctype: str, name: str, fieldname: str = "password", raise_exception: bool = True
) -> str | None:
	stored = _fetch(doctype, name, fieldname, 1)
	if not stored and raise_exception:
		frappe.throw(
			frappe._("{0} {1} has no {2}").format(doctype, name, fieldname), frappe.AuthenticationError
		)
	return decrypt(stored) if stored else None


def remove_encrypted_password(doctype: str, name: str, fieldname: str = "password") -> None:
	frappe.db.delete("__Auth", {"doctype": doctype, "name": name, "fieldname": fieldname})


def delete_all_passwords_for(doctype: str, name: str) -> None:
	frappe.db.delete("__Auth", {"doctype": doctype, "name": name})
