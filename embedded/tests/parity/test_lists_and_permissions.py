"""get_list, get_all and the permission algebra."""

import frappe
import pytest
from frappe.permissions import get_doc_permissions
from parity_site import ALICE, BOB, ROLE, THING, clean, doctypes, make_user, thing

__all__ = ["clean", "doctypes"]
pytestmark = pytest.mark.usefixtures("clean")


def titles(**kwargs):
	return frappe.get_all(THING, pluck="title", order_by="title asc", **kwargs)


def seen_by(user, **kwargs):
	frappe.set_user(user)
	try:
		return frappe.get_list(THING, pluck="title", order_by="title asc", **kwargs)
	finally:
		frappe.set_user("Administrator")


def add_user_permission(doctype, name, user, applicable_for=None):
	values = {"user": user, "allow": doctype, "for_value": name, "applicable_for": applicable_for}
	values["apply_to_all_doctypes"] = int(not applicable_for)
	return frappe.get_doc({"doctype": "User Permission", **values}).insert()


def test_null_matches_in_get_all():
	thing(title="null").insert()
	thing(title="early", due="2020-01-01 00:00:00", notes="n").insert()
	thing(title="late", due="2030-01-01 00:00:00", notes="m").insert()
	assert titles(filters={"due": ["<=", "2021-01-01 00:00:00"]}) == ["early", "null"]
	assert titles(filters={"due": [">", "2019-01-01 00:00:00"]}) == ["early", "late"]
	assert titles(filters={"notes": ["!=", "n"]}) == ["late", "null"]
	assert titles(filters={"notes": ["not in", ["n"]]}) == ["late", "null"]
	assert titles(filters={"notes": ["in", ["m", ""]]}) == ["late", "null"]
	assert titles(filters={"notes": ["in", ["m"]]}) == ["late"]
	assert titles(filters={"notes": ["is", "set"]}) == ["early", "late"]
	assert titles(filters={"notes": ["is", "not set"]}) == ["null"]


def test_filter_forms():
	for title, count in (("a", 1), ("b", 2), ("c", 3)):
		thing(title=title, count=count).insert()
	assert titles(filters=[["count", ">=", 2]]) == ["b", "c"]
	assert titles(filters=[[THING, "count", "=", 2]]) == ["b"]
	assert titles(filters={"count": ["<", 3], "title": ["like", "A%"]}) == ["a"]
	assert titles(or_filters={"title": "a", "count": 3}) == ["a", "c"]
	assert titles(filters={"count": ["<", 3]}, or_filters=[["title", "=", "b"]]) == ["b"]
	assert titles(filters={"title": ["not like", "%a%"]}) == ["b", "c"]


def test_shapes_and_paging():
	for title in ("a", "b", "c"):
		thing(title=title).insert()
	assert titles(limit=2) == ["a", "b"]
	assert titles(limit_start=1, limit_page_length=1) == ["b"]
	rows = frappe.get_all(THING, fields=["title as t", "count"], order_by="title desc", limit=1)
	assert rows == [{"t": "c", "count": 0}]
	assert [
		tuple(r) for r in frappe.get_all(THING, fields=["title"], as_list=True, limit=1, order_by="title")
	] == [("a",)]
	assert frappe.get_all(THING, {"title": "b"}, ["title"])[0].title == "b"
	assert set(frappe.get_all(THING, filters={"title": "b"}, fields="*")[0]) >= {"name", "title", "owner"}


def test_injected_fields_and_orders_are_refused():
	for bad in (
		("(select 1)", "title; drop table x", "sleep(5)")
		if frappe.db.db_type == "postgres"
		else ("(select 1)",)
	):
		with pytest.raises(Exception):  # noqa: B017 -- Frappe answers with several classes
			frappe.get_list(THING, fields=[bad])
	with pytest.raises(frappe.ValidationError):
		frappe.get_all(THING, order_by="(select name from tabUser)")


def test_a_user_without_a_role_sees_nothing():
	stranger = make_user("parity.stranger@example.com")
	thing().insert()
	assert not frappe.has_permission(THING, "read", user=stranger)
	with pytest.raises(frappe.PermissionError):
		seen_by(stranger)
	assert len(titles()) == 1


def test_role_permissions():
	doc = thing(title="any").insert()
	assert seen_by(ALICE) == ["any"]
	assert frappe.has_permission(THING, "write", doc=doc, user=ALICE)
	assert not frappe.has_permission(THING, "export", user=ALICE)
	assert not frappe.has_permission(THING, "submit", user=ALICE)
	assert frappe.has_permission(THING, "write", doc=doc.name, user="Administrator")


def test_if_owner():
	thing(title="not his").insert()
	frappe.set_user(BOB)
	own = thing(title="his").insert()
	frappe.set_user("Administrator")
	assert seen_by(BOB) == ["his"]
	foreign = frappe.get_doc(THING, {"title": "not his"})
	assert frappe.has_permission(THING, "read", user=BOB)
	assert not frappe.has_permission(THING, "write", user=BOB)
	assert own.has_permission("write", user=BOB)
	assert not foreign.has_permission("read", user=BOB)
	assert not own.has_permission("delete", user=BOB)


def test_insert_save_and_delete_ask_for_permission():
	doc = thing().insert()
	stranger = make_user("parity.stranger@example.com")
	frappe.set_user(stranger)
	with pytest.raises(frappe.PermissionError):
		thing().insert()
	with pytest.raises(frappe.PermissionError):
		frappe.get_doc(THING, doc.name).save()
	with pytest.raises(frappe.PermissionError):
		frappe.delete_doc(THING, doc.name)
	with pytest.raises(frappe.PermissionError):
		frappe.get_doc(THING, doc.name).check_permission("read")
	assert thing().insert(ignore_permissions=True).owner == stranger


def test_user_permissions_confine_lists_and_documents():
	mine = thing(title="mine", boss=ALICE).insert()
	other = thing(title="other", boss=BOB).insert()
	thing(title="nobody's").insert()
	permission = add_user_permission("User", ALICE, ALICE)
	assert seen_by(ALICE) == ["mine", "nobody's"]
	assert mine.has_permission("read", user=ALICE)
	assert not other.has_permission("read", user=ALICE)
	permission.delete()
	assert seen_by(ALICE) == ["mine", "nobody's", "other"]


def test_a_field_may_ignore_user_permissions():
	thing(title="free", role="Guest").insert()
	add_user_permission("Role", ROLE, ALICE)
	assert seen_by(ALICE) == ["free"]


def test_an_owner_keeps_if_owner_rights_despite_user_permissions():
	frappe.set_user(BOB)
	doc = thing(title="his", boss=BOB).insert()
	frappe.set_user("Administrator")
	add_user_permission("User", ALICE, BOB)
	assert doc.has_permission("read", user=BOB)
	assert get_doc_permissions(doc, user=BOB)["create"] == 0
	assert seen_by(BOB) == ["his"]


def test_one_user_permission_is_the_default_of_links():
	kind = frappe.get_doc(doctype="Role", role_name="Parity Default").insert()
	add_user_permission("DocType", THING, ALICE)
	frappe.set_user(ALICE)
	assert frappe.new_doc(THING).kind == THING
	assert frappe.new_doc(THING).role is None
	frappe.set_user("Administrator")
	assert kind.name


def test_applicable_for_narrows_a_user_permission():
	thing(title="other", boss=BOB).insert()
	add_user_permission("User", ALICE, ALICE, applicable_for="Role")
	assert seen_by(ALICE) == ["other"]


def test_roles():
	assert {ROLE, "All", "Guest"} <= set(frappe.get_roles(ALICE))
	assert frappe.get_roles("Guest") == ["Guest"]
	assert ROLE in frappe.get_roles("Administrator")
	user = frappe.get_doc("User", ALICE)
	user.append_roles("System Manager")
	user.save()
	assert "System Manager" in frappe.get_roles(ALICE)
	user.set("roles", [])
	user.save()
	assert "System Manager" not in frappe.get_roles(ALICE)


def test_permission_error_codes():
	assert frappe.PermissionError.http_status_code == 403
	assert frappe.ValidationError.http_status_code == 417
	assert frappe.DoesNotExistError.http_status_code == 404
	assert frappe.DuplicateEntryError.http_status_code == 409
	assert frappe.LinkExistsError.http_status_code == 417
	assert frappe.AuthenticationError.http_status_code == 401
	assert frappe.RateLimitExceededError.http_status_code == 429
	assert not hasattr(frappe.QueryDeadlockError, "http_status_code")


def test_people_list_what_they_were_told_and_nothing_else():
	for user in (ALICE, BOB):
		link = {"document_type": "User", "document_name": user, "from_user": "Administrator"}
		values = {"for_user": user, "type": "Alert", "subject": f"Hello {user}", **link}
		frappe.get_doc({"doctype": "Notification Log", **values}).insert(ignore_permissions=True)
	frappe.set_user(ALICE)
	told = frappe.get_list(
		"Notification Log", {"type": "Alert"}, ["for_user", "subject", "read", "document_name"]
	)
	assert told == [{"for_user": ALICE, "subject": f"Hello {ALICE}", "read": 0, "document_name": ALICE}]
	assert not frappe.has_permission("Notification Log", "write")
