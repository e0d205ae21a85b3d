"""Fills an empty database with the tables and records that every site starts from."""

import json

import frappe

SPECIAL = ("DocType", "DocField", "DocPerm", "DocType Action", "DocType Link", "DocType State")
ROLES = {"Administrator": 1, "System Manager": 1, "Desk User": 1, "All": 0, "Guest": 0}
TABLES = """
create table "tabSeries" (name varchar(100) primary key, current bigint not null default 0);
create table "tabSingles" (doctype varchar(255), field varchar(255), value text);
create index singles_doctype_field_index on "tabSingles" (doctype, field);
create table "__Auth" (doctype varchar(140) not null, name varchar(255) not null,
	fieldname varchar(140) not null,
	password text not null, primary key (doctype, name, fieldname))
"""


def bootstrap_database() -> None:
	from frappe.model.sync import sync_for

	frappe.flags.in_install, frappe.flags.in_install_db = "frappe", True
	frappe.clear_cache()
	frappe.db.sql(TABLES)
	for doctype in SPECIAL:
		frappe.db.updatedb(doctype)
	sync_for("frappe", force=True, reset_permissions=True)
	frappe.flags.in_install_db = False
	frappe.clear_cache()
	frappe.db.set_global("installed_apps", json.dumps(["frappe"]))
	_insert_records()
	frappe.flags.in_install = False
	frappe.db.commit()
	frappe.clear_cache()


def _insert_records() -> None:
	for module in frappe.get_module_list("frappe"):
		_insert("Module Def", module, module_name=module, app_name="frappe")
	for role, desk_access in ROLES.items():
		_insert("Role", role, role_name=role, desk_access=desk_access)
	for user in ("Administrator", "Guest"):
		email = "admin@example.com" if user == "Administrator" else "guest@example.com"
		kind = "System User" if user == "Administrator" else "Website User"
		_insert("User", user, email=email, first_name=user, full_name=user, enabled=1, user_type=kind)
	_insert(
		"System Settings", "System Settings", time_zone="Asia/Kolkata", language="en", allow_error_traceback=1
	)


def _insert(doctype: str, name: str, **values: object) -> None:
	if frappe.get_meta(doctype).issingle:
		frappe.db.set_single_value(doctype, values)
	elif not frappe.db.exists(doctype, name):
		document = frappe.get_doc({"doctype": doctype, **values})
		document.flags.ignore_validate = document.flags.ignore_links = True
		document.owner = document.modified_by = "Administrator"
		document.insert(ignore_permissions=True, set_name=name)
