"""What insert, save and delete do to a document, in Frappe's order."""

import datetime
import json

import frappe
import pytest
from parity_site import ALICE, PART, SETTINGS, THING, Recorder, clean, doctypes, thing

__all__ = ["clean", "doctypes"]
pytestmark = pytest.mark.usefixtures("clean")


def test_insert_runs_the_events_in_order():
	doc = Recorder.of().insert()
	expected = (
		"before_insert before_naming autoname before_validate validate before_save after_insert on_update"
	)
	assert doc.seen == [*expected.split(), "on_change"]


def test_save_runs_the_events_in_order():
	doc = Recorder.of().insert()
	doc.seen.clear()
	doc.save()
	assert doc.seen == ["before_validate", "validate", "before_save", "on_update", "on_change"]


def test_ignore_validate_leaves_before_validate():
	doc = Recorder.of()
	doc.flags.ignore_validate = True
	doc.insert()
	assert "before_validate" in doc.seen
	assert not {"validate", "before_save"} & set(doc.seen)


def test_db_set_runs_before_and_on_change_only():
	doc = Recorder.of().insert()
	doc.seen.clear()
	doc.db_set("notes", "x")
	assert doc.seen == ["before_change", "on_change"]
	assert frappe.db.get_value(THING, doc.name, "notes") == "x"


def test_owner_given_by_the_caller_is_overwritten():
	assert thing(owner=ALICE).insert().owner == "Administrator"


def test_name_given_by_the_caller_is_discarded():
	assert thing(name="my name").insert().name != "my name"
	assert thing().insert(set_name="my name").name == "my name"


def test_modified_is_text_after_save_and_a_datetime_after_load():
	doc = thing().insert()
	assert isinstance(doc.modified, str)
	assert isinstance(doc.reload().modified, datetime.datetime)


def test_defaults_fill_what_is_none():
	doc = thing().insert()
	assert (doc.status, doc.mood, doc.active) == ("Open", "", "1") or doc.active == 1
	assert str(doc.day) == frappe.utils.nowdate()
	assert doc.reload().active == 1
	assert thing(active=0).insert().reload().active == 0


def test_numbers_are_never_null():
	doc = thing().insert().reload()
	assert (doc.count, doc.ratio) == (0, 0.0)
	assert doc.due is None


def test_missing_mandatory_field():
	with pytest.raises(frappe.MandatoryError):
		thing(title="").insert()
	assert thing(title=None).insert(ignore_mandatory=True).name


def test_missing_mandatory_field_in_a_row():
	with pytest.raises(frappe.MandatoryError):
		thing(parts=[{"qty": 2}]).insert()


def test_markup_alone_is_no_content():
	with pytest.raises(frappe.MandatoryError):
		thing(title="<p> </p>").insert()


def test_select_takes_its_options_only():
	with pytest.raises(frappe.ValidationError):
		thing(status="Lost").insert()
	assert thing(status=" Closed ").insert().status == "Closed"


def test_missing_link():
	with pytest.raises(frappe.LinkValidationError):
		thing(role="No such role").insert()
	assert thing(role="No such role").insert(ignore_links=True).role == "No such role"


def test_missing_dynamic_link():
	with pytest.raises(frappe.LinkValidationError):
		thing(kind="User", target="nobody@example.com").insert()
	assert thing(kind="User", target="Guest").insert().target == "Guest"


def test_unique_field():
	thing(code="one").insert()
	frappe.db.savepoint("before_clash")
	with pytest.raises(frappe.UniqueValidationError):
		thing(code="one").insert()
	frappe.db.rollback(save_point="before_clash")


def test_blank_unique_fields_do_not_clash():
	first, second = thing(code="").insert(), thing(code="").insert()
	assert first.reload().code is second.reload().code is None


def test_duplicate_name():
	thing().insert(set_name="twice")
	frappe.db.savepoint("before_clash")
	doc = frappe.get_doc(doctype="Role", role_name="Guest")
	with pytest.raises(frappe.DuplicateEntryError):
		doc.insert()
	frappe.db.rollback(save_point="before_clash")
	assert not issubclass(frappe.DuplicateEntryError, frappe.ValidationError)


def test_length():
	with pytest.raises(frappe.CharacterLengthExceededError):
		thing(short="x" * 11).insert()
	with pytest.raises(frappe.CharacterLengthExceededError):
		thing(title="x" * 141).insert()
	assert thing(short="x" * 10, notes="x" * 1000).insert().name


def test_non_negative():
	with pytest.raises(frappe.NonNegativeError):
		thing(count=-1).insert()


def test_set_only_once():
	doc = thing(constant="a").insert()
	doc.save()
	doc.constant = "b"
	with pytest.raises(frappe.CannotChangeConstantError):
		doc.save()


def test_timestamp_mismatch():
	doc = thing().insert()
	other = frappe.get_doc(THING, doc.name)
	other.save()
	with pytest.raises(frappe.TimestampMismatchError):
		doc.save()
	frappe.db.set_value(THING, doc.name, "notes", "x", update_modified=False)
	other.save()


def test_before_save_document():
	doc = thing(notes="old").insert()
	assert doc.get_doc_before_save() is None
	assert doc.has_value_changed("notes")
	doc.notes = "new"
	doc.save()
	assert doc.get_doc_before_save().notes == "old"
	assert doc.has_value_changed("notes")
	assert not doc.has_value_changed("title")


def test_children_are_stored_in_order_and_replaced():
	doc = thing(parts=[{"item": "a"}, {"item": "b", "qty": 5}]).insert().reload()
	assert [(row.item, row.qty, row.idx) for row in doc.parts] == [("a", 1, 1), ("b", 5, 2)]
	kept = doc.parts[1].name
	doc.remove(doc.parts[0])
	doc.append("parts", {"item": "c"})
	doc.save().reload()
	assert [(row.item, row.idx) for row in doc.parts] == [("b", 1), ("c", 2)]
	assert doc.parts[0].name == kept
	assert doc.parts[0].parenttype == THING
	assert doc.parts[0].parentfield == "parts"


def test_json_takes_a_dict_but_no_list():
	doc = thing(extra={"a": [1]}).insert().reload()
	assert frappe.parse_json(doc.extra) == {"a": [1]}
	assert frappe.parse_json(thing(extra=json.dumps([1])).insert().reload().extra) == [1]
	with pytest.raises(frappe.ValidationError):
		thing(extra=[1]).insert()


def test_markup_is_made_harmless_except_in_code():
	markup = "<script>alert(1)</script> in <module>"
	doc = thing(notes=markup, source=markup).insert().reload()
	assert "<script>" not in doc.notes
	assert doc.source == markup


def test_as_dict_without_nulls():
	values = thing(parts=[{"item": "a"}]).insert().as_dict(no_nulls=True)
	assert "due" not in values
	assert values["doctype"] == THING
	assert values["parts"][0]["doctype"] == PART
	assert "due" in thing().insert().as_dict()


def test_get_doc_of_a_missing_document():
	with pytest.raises(frappe.DoesNotExistError):
		frappe.get_doc(THING, "nothing")


def test_get_doc_by_filters():
	doc = thing(code="by-filter").insert()
	assert frappe.get_doc(THING, {"code": "by-filter"}).name == doc.name


def test_new_doc_has_defaults_and_get_doc_has_not():
	assert frappe.new_doc(THING).status == "Open"
	assert frappe.get_doc({"doctype": THING}).status is None
	assert frappe.new_doc(THING, title="x").title == "x"


def test_delete():
	doc = thing(parts=[{"item": "a"}]).insert()
	doc.delete()
	assert not frappe.db.exists(THING, doc.name)
	assert not frappe.db.exists(PART, {"parent": doc.name})
	assert frappe.delete_doc(THING, doc.name) is False
	with pytest.raises(frappe.DoesNotExistError):
		frappe.delete_doc(THING, doc.name, ignore_missing=False)


def test_a_linked_document_cannot_be_deleted():
	role = frappe.get_doc(doctype="Role", role_name="Parity Linked").insert()
	doc = thing(role=role.name).insert()
	with pytest.raises(frappe.LinkExistsError):
		role.delete()
	frappe.delete_doc("Role", role.name, force=True)
	assert frappe.db.get_value(THING, doc.name, "role") == "Parity Linked"


def test_a_dynamically_linked_document_cannot_be_deleted():
	target = thing().insert()
	thing(kind=THING, target=target.name).insert()
	frappe.local.dynamic_link_map = None  # Frappe keeps it for the life of a request
	with pytest.raises(frappe.LinkExistsError):
		target.delete()


def test_single():
	settings = frappe.get_doc(SETTINGS)
	assert settings.limit == 7
	assert frappe.db.get_single_value(SETTINGS, "limit") in (0, 7)
	settings.limit, settings.on = 9, 1
	settings.save()
	assert frappe.get_doc(SETTINGS).limit == 9
	assert frappe.db.get_single_value(SETTINGS, "on") == 1
	frappe.db.set_single_value(SETTINGS, "text", "hello")
	assert frappe.db.get_single_value(SETTINGS, "text") == "hello"
	assert frappe.get_doc(SETTINGS).text == "hello"


def test_cached_doc_follows_writes():
	doc = thing(notes="one").insert()
	assert frappe.get_cached_doc(THING, doc.name).notes == "one"
	frappe.db.set_value(THING, doc.name, "notes", "two")
	assert frappe.get_cached_doc(THING, doc.name).notes == "two"
