"""DocTypes and users that the parity tests share; they use nothing but Frappe's own API."""

from collections.abc import Iterator
from typing import Any

import frappe
import pytest
from frappe.model.document import Document

THING, PART, SETTINGS = "Parity Thing", "Parity Part", "Parity Settings"
ROLE, OWNER_ROLE = "Parity Reader", "Parity Owner"
ALICE, BOB = "parity.alice@example.com", "parity.bob@example.com"


def field(fieldname: str, fieldtype: str = "Data", **options: Any) -> dict:
	return {"fieldname": fieldname, "fieldtype": fieldtype, "label": fieldname.title(), **options}


def rule(role: str, **rights: int) -> dict:
	on_by_default = ("read", "write", "create", "delete", "report", "export", "share", "print", "email")
	off = dict.fromkeys(on_by_default, 0)
	return {"role": role, **off, **rights}


DOCTYPES = [
	{"name": PART, "istable": 1, "fields": [field("item", reqd=1), field("qty", "Int", default="1")]},
	{
		"name": THING,
		"autoname": "hash",
		"title_field": "title",
		"allow_import": 1,
		"fields": [
			field("title", reqd=1),
			field("status", "Select", options="Open\nClosed"),
			field("mood", "Select", options="\nGood\nBad"),
			field("code", unique=1),
			field("short", length=10),
			field("count", "Int", non_negative=1),
			field("ratio", "Float"),
			field("active", "Check", default="1"),
			field("due", "Datetime"),
			field("day", "Date", default="Today"),
			field("notes", "Text"),
			field("source", "Code"),
			field("extra", "JSON"),
			field("constant", set_only_once=1),
			field("boss", "Link", options="User"),
			field("role", "Link", options="Role", ignore_user_permissions=1),
			field("kind", "Link", options="DocType"),
			field("target", "Dynamic Link", options="kind"),
			field("parts", "Table", options=PART),
		],
		"permissions": [
			rule(ROLE, read=1, write=1, create=1, delete=1),
			rule(OWNER_ROLE, read=1, write=1, create=1, if_owner=1),
			rule("System Manager", read=1, write=1, create=1, delete=1),
		],
	},
	{
		"name": SETTINGS,
		"issingle": 1,
		"fields": [field("limit", "Int", default="7"), field("text"), field("on", "Check")],
		"permissions": [rule("System Manager", read=1, write=1, create=1)],
	},
]


def make_doctypes() -> None:
	for role in (ROLE, OWNER_ROLE):
		if not frappe.db.exists("Role", role):
			frappe.get_doc(doctype="Role", role_name=role).insert()
	for values in DOCTYPES:
		if not frappe.db.exists("DocType", values["name"]):
			frappe.get_doc({"doctype": "DocType", "module": "Custom", "custom": 1, **values}).insert()


def remove_doctypes() -> None:
	frappe.set_user("Administrator")
	for values in reversed(DOCTYPES):
		frappe.delete_doc("DocType", values["name"], force=True, ignore_missing=True)
	for user in (ALICE, BOB):
		frappe.delete_doc("User", user, force=True, ignore_on_trash=True)
	for values in DOCTYPES:
		frappe.db.sql_ddl(f"drop table if exists `tab{values['name']}`")
	for role in (ROLE, OWNER_ROLE):
		frappe.delete_doc("Role", role, force=True)
	frappe.db.commit()
	frappe.clear_cache()


def make_user(email: str, *roles: str) -> str:
	if not frappe.db.exists("User", email):
		user = frappe.get_doc(
			doctype="User", email=email, first_name=email.split("@")[0], send_welcome_email=0
		)
		user.append_roles(*roles)
		user.flags.no_welcome_mail = True
		user.insert(ignore_permissions=True)
	return email


@pytest.fixture(scope="module")
def doctypes() -> Iterator[None]:
	frappe.set_user("Administrator")
	make_doctypes()
	make_user(ALICE, ROLE)
	make_user(BOB, OWNER_ROLE)
	frappe.db.commit()
	yield
	frappe.db.rollback()
	remove_doctypes()


@pytest.fixture
def clean(doctypes: None) -> Iterator[None]:
	frappe.set_user("Administrator")
	frappe.db.value_cache.clear()
	yield
	frappe.set_user("Administrator")
	frappe.db.rollback()
	frappe.clear_messages()
	frappe.flags.currently_saving = []
	for user in (ALICE, BOB):
		frappe.clear_cache(user=user)


def thing(**values: Any) -> Document:
	return frappe.get_doc({"doctype": THING, "title": "A thing", **values})


class Recorder(Document):
	"""Writes down which events reach a controller."""

	events = ("before_insert", "before_naming", "autoname", "before_validate", "validate", "before_save")
	events += ("after_insert", "on_update", "before_change", "on_change", "on_trash", "after_delete")

	@classmethod
	def of(cls, **values: Any) -> "Recorder":
		doc = cls({"doctype": THING, "title": "Recorded", **values})
		doc.seen = []
		return doc

	def __getattr__(self, name: str) -> Any:
		if name in type(self).events:
			return lambda *args, **kwargs: self.seen.append(name)
		raise AttributeError(name)
