"""Files: content on disk, read by whoever may read what they are attached to, gone with it."""

import os
from urllib.parse import quote

import frappe
import pytest
from parity_site import ALICE, BOB, THING, clean, doctypes, thing

from dartwing_jobs.tests.browser import Browser

__all__ = ["clean", "doctypes"]
pytestmark = pytest.mark.usefixtures("clean")


def make_file(content: str | bytes | None = None, **fields):
	content = content or f"one,{frappe.generate_hash()}"
	values = {"doctype": "File", "file_name": "list.csv", "content": content, "is_private": 1}
	return frappe.get_doc({**values, **fields}).insert()


def attached_to(doc) -> dict:
	return {"attached_to_doctype": doc.doctype, "attached_to_name": doc.name}


@pytest.mark.parametrize("is_private", [0, 1])
@pytest.mark.parametrize("content", ["größer", b"\xff\x00\x81"])
def test_content_is_kept_as_it_is(content, is_private):
	"""Bytes that mean nothing in any encoding that Frappe tries: newer releases try several."""
	content += frappe.generate_hash() if isinstance(content, str) else os.urandom(9)
	file = frappe.get_doc("File", make_file(content, is_private=is_private).name)
	assert file.file_url.startswith("/private/files/list" if is_private else "/files/list")
	assert file.get_content() == content
	with open(file.get_full_path(), "rb") as stream:
		assert stream.read() == (content.encode() if isinstance(content, str) else content)
	assert file.content_hash


def test_two_files_of_one_name_do_not_meet():
	first, second = make_file(), make_file()
	assert first.file_url != second.file_url
	assert first.get_content() != second.get_content()


def test_a_rolled_back_file_is_not_on_disk():
	file = make_file()
	assert os.path.exists(file.get_full_path())
	frappe.db.rollback()
	assert not os.path.exists(file.get_full_path())


def test_an_attachment_goes_with_its_document():
	owner = thing().insert()
	file = make_file(**attached_to(owner))
	frappe.delete_doc(THING, owner.name)
	assert not frappe.db.exists("File", file.name)
	assert not os.path.exists(file.get_full_path())


def test_reading_a_private_file_needs_its_document():
	file, loose = make_file(**attached_to(thing().insert())), make_file()
	public = make_file(is_private=0)

	def may(user: str) -> list[bool]:
		return [frappe.has_permission("File", "read", doc=one, user=user) for one in (file, loose, public)]

	assert may(ALICE) == [True, False, True]
	assert may(BOB) == [False, False, True]
	frappe.set_user(BOB)
	own = make_file()
	assert frappe.has_permission("File", "read", doc=own, user=BOB)
	assert not frappe.has_permission("File", "read", doc=own, user=ALICE)


def test_a_private_file_is_sent_to_those_who_may_read_it():
	owner = thing().insert()
	file = make_file(**attached_to(owner))
	frappe.db.commit()
	try:
		assert Browser(ALICE).get(quote(file.file_url)).get_data(as_text=True) == file.get_content()
		assert Browser(BOB).get(quote(file.file_url)).status_code == 403
		assert Browser(ALICE).get("/private/files/nowhere.csv").status_code == 403
	finally:
		frappe.set_user("Administrator")
		frappe.delete_doc(THING, owner.name)
		frappe.db.commit()
