"""Values of Password fields, kept in a table of their own."""

import frappe


def set_encrypted_password(doctype: str, name: str, pwd: str, fieldname: str = "password") -> None:
	frappe.db.sql(
		"""insert into "__Auth" (doctype, name, fieldname, password) values (%s, %s, %s, %s)
		on conflict (doctype, name, fieldname) do update set password = excluded.password""",
		(doctype, name, fieldname, pwd),
	)


def get_decrypted_password(
	doctype: str, name: str, fieldname: str = "password", raise_exception: bool = True
) -> str | None:
	where = {"doctype": doctype, "name": name, "fieldname": fieldname}
	stored = frappe.db.get_value("__Auth", where, "password", order_by=None)
	if not stored and raise_exception:
		frappe.throw(frappe._("{0} has no {1}").format(name, fieldname), frappe.AuthenticationError)
	return stored


def remove_encrypted_password(doctype: str, name: str, fieldname: str = "password") -> None:
	frappe.db.delete("__Auth", {"doctype": doctype, "name": name, "fieldname": fieldname})


def delete_all_passwords_for(doctype: str, name: str) -> None:
	frappe.db.delete("__Auth", {"doctype": doctype, "name": name})
