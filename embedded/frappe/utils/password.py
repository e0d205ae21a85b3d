"""Secrets of documents, such as a user's API secret; a site for tests does not encrypt them."""

import frappe


def set_encrypted_password(doctype: str, name: str, pwd: str, fieldname: str) -> None:
	remove_encrypted_password(doctype, name, fieldname)
	columns = {"doctype": doctype, "name": name, "fieldname": fieldname, "password": pwd}
	frappe.db.bulk_insert("__Auth", columns, [tuple(columns.values())])


def get_decrypted_password(dt: str, name: str, fieldname: str, raise_exception: bool = True) -> str | None:
	filters = {"doctype": dt, "name": name, "fieldname": fieldname}
	stored = frappe.db.get_value("__Auth", filters, "password", order_by=None)
	if not stored and raise_exception:
		text = frappe._("{0} {1} has no {2}").format(dt, name, fieldname)
		frappe.throw(text, frappe.AuthenticationError)
	return stored


def remove_encrypted_password(doctype: str, name: str, fieldname: str) -> None:
	frappe.db.delete("__Auth", {"doctype": doctype, "name": name, "fieldname": fieldname})


def delete_all_passwords_for(doctype: str, name: str) -> None:
	frappe.db.delete("__Auth", {"doctype": doctype, "name": name})
