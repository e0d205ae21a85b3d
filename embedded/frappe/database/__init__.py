"""Creates and fills the database of a site."""

import frappe
import psycopg2
from frappe.database.postgres import PostgresDatabase  # noqa: F401
from psycopg2 import sql

DROP = ("drop database if exists {name} with (force)", "drop role if exists {name}")
CREATE = ("create role {name} login password {password}",)
CREATE += ("create database {name} owner {name} encoding 'UTF8' template template0",)
TABLES = """
create table "tabSingles" (doctype varchar(255), field varchar(255), value text);
create index singles_doctype_field_index on "tabSingles" (doctype, field);
create table "__Auth" (doctype varchar(140), name varchar(255), fieldname varchar(140), password text,
	primary key (doctype, name, fieldname))
"""
ROLES = {"Administrator": 1, "System Manager": 1, "Desk User": 1, "All": 0, "Guest": 0}
RECORDS = [{"doctype": "Role", "name": r, "role_name": r, "desk_access": desk} for r, desk in ROLES.items()]
for _user, _kind in (("Administrator", "System User"), ("Guest", "Website User")):
	_names = {"name": _user, "email": f"{_user.lower()}@example.com", "first_name": _user, "full_name": _user}
	RECORDS.append({"doctype": "User", **_names, "enabled": 1, "user_type": _kind})
SETTINGS = {"time_zone": "Asia/Kolkata", "language": "en", "allow_error_traceback": 1}


def setup_database(conf: frappe._dict, root_login: str, root_password: str, force: bool) -> None:
	names = {"name": sql.Identifier(conf.db_name), "password": sql.Literal(conf.db_password)}
	where = {"host": conf.db_host, "port": conf.db_port, "dbname": "postgres"}
	connection = psycopg2.connect(user=root_login, password=root_password, **where)
	connection.autocommit = True
	for statement in (*DROP, *CREATE) if force else CREATE:
		connection.cursor().execute(sql.SQL(statement).format(**names))
	connection.close()


def bootstrap_database() -> None:
	"""The tables and records that every site starts from."""
	from frappe.migrate import sync_for
	from frappe.model.meta import SPECIAL

	frappe.flags.in_install, frappe.flags.in_install_db = "frappe", True
	frappe.clear_cache()
	frappe.db.sql(TABLES)
	for doctype in SPECIAL:
		frappe.db.updatedb(doctype)
	sync_for("frappe", force=True)
	frappe.flags.in_install_db = False
	frappe.clear_cache()
	frappe.db.set_global("installed_apps", '["frappe"]')
	names = frappe.get_module_list("frappe")
	modules = [{"doctype": "Module Def", "name": n, "module_name": n, "app_name": "frappe"} for n in names]
	for record in [*modules, *RECORDS]:
		if not frappe.db.exists(record["doctype"], record["name"]):
			document = frappe.get_doc(record)
			document.flags.ignore_validate = document.flags.ignore_links = True
			document.insert(ignore_permissions=True, set_name=record["name"])
	frappe.db.set_single_value("System Settings", SETTINGS)
	frappe.flags.in_install = False
	frappe.db.commit()
	frappe.clear_cache()
