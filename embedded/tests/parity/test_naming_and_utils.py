"""Names, times, conversions, hooks and messages."""

import datetime
import re

import frappe
import pytest
from frappe.utils import cint, cstr, flt, get_datetime, get_url_to_form, getdate, now, now_datetime
from parity_site import THING, clean, doctypes, thing

__all__ = ["clean", "doctypes"]
pytestmark = pytest.mark.usefixtures("clean")


def test_hash_names():
	names = {thing().insert().name for _ in range(5)}
	assert len(names) == 5
	assert all(re.fullmatch(r"[0-9a-v]{10}", name) for name in names)


def test_names_that_are_refused():
	for bad in (THING, "a<b", f"New {THING} 1"):
		with pytest.raises(frappe.NameError):
			thing().insert(set_name=bad)


def test_field_names_follow_the_field():
	role = frappe.get_doc(doctype="Role", role_name="  Parity Field ").insert()
	assert role.name == "Parity Field"
	with pytest.raises(frappe.ValidationError):
		frappe.get_doc(doctype="Role", role_name="").insert()


def test_now_is_naive_site_time():
	assert now_datetime().tzinfo is None
	assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}", now())
	zone = frappe.utils.get_system_timezone()
	assert isinstance(zone, str)


def test_dates():
	assert getdate("2024-02-29") == datetime.date(2024, 2, 29)
	assert get_datetime("2024-02-29 01:02:03") == datetime.datetime(2024, 2, 29, 1, 2, 3)
	assert get_datetime("") is None


def test_conversions():
	assert (cint("7"), cint("7.9"), cint("x"), cint(None), cint(True)) == (7, 7, 0, 0, 1)
	assert (flt("1,000.5"), flt("x"), flt(None), flt("1.005", 2)) == (1000.5, 0.0, 0.0, flt("1.005", 2))
	assert (cstr(None), cstr(b"x"), cstr(5)) == ("", "x", "5")
	assert frappe.scrub("Parity Thing-X") == "parity_thing_x"
	assert frappe.parse_json('{"a": 1}') == {"a": 1}
	assert frappe.parse_json([1]) == [1]
	assert len(frappe.generate_hash(length=10)) == 10
	assert (
		frappe.as_json({"b": datetime.date(2024, 1, 1), "a": None}, indent=None)
		== '{"a": null,"b": "2024-01-01"}'
	)


def test_dict():
	value = frappe._dict(a=1)
	assert (value.a, value.b) == (1, None)
	value.c = 3
	assert value.update({"d": 4}) is value
	assert value == {"a": 1, "c": 3, "d": 4}


def test_throw_leaves_a_message():
	frappe.clear_messages()
	with pytest.raises(frappe.LinkExistsError):
		frappe.throw("no", frappe.LinkExistsError, title="T")
	assert frappe.get_message_log()[-1]["message"] == "no"
	frappe.clear_messages()
	frappe.msgprint("hello")
	assert len(frappe.get_message_log()) == 1


def test_call_drops_what_a_function_does_not_take():
	def takes_a(a, ignore_permissions=None):
		return a, ignore_permissions

	def takes_all(**kwargs):
		return kwargs

	assert frappe.call(takes_a, a=1, b=2, ignore_permissions=True) == (1, None)
	assert frappe.call(takes_all, a=1, flags={}) == {"a": 1}


def test_get_attr_wants_an_installed_app():
	assert frappe.get_attr("frappe.utils.cint")("3") == 3
	with pytest.raises(frappe.AppNotInstalledError):
		frappe.get_attr("json.loads")


def test_cache():
	frappe.cache.set_value("parity", {"a": 1})
	assert frappe.cache().get_value("parity") == {"a": 1}
	frappe.cache.delete_value("parity")
	assert frappe.cache.get_value("parity") is None
	assert frappe.cache.get_value("parity_made", lambda: 5) == 5
	frappe.cache.delete_value("parity_made")
	frappe.cache.set_value("parity_brief", 1, expires_in_sec=30)
	assert frappe.cache.get_value("parity_brief", expires=True) == 1
	frappe.cache.delete_value("parity_brief")


def test_log_error():
	log = frappe.log_error("Parity title", "line 1\nline 2")
	assert (log.method, log.error) == ("Parity title", "line 1\nline 2")
	assert frappe.log_error("a\nb", "swapped").method == "swapped"


def test_meta():
	meta = frappe.get_meta(THING)
	assert meta.get_field("boss").options == "User"
	assert meta.has_field("title")
	assert [df.fieldname for df in meta.get_table_fields()] == ["parts"]
	assert {df.fieldname for df in meta.get_link_fields()} == {"boss", "role", "kind"}
	assert meta.get_label("boss") == "Boss"
	assert [df.fieldname for df in meta.get("fields", {"fieldtype": "Select"})] == ["status", "mood"]
	with pytest.raises(frappe.DoesNotExistError):
		frappe.get_meta("Parity Nothing")


def test_users_are_named_by_their_email():
	user = frappe.get_doc(doctype="User", email="Parity.Case@Example.com", first_name="P", last_name="C")
	user.send_welcome_email = 0
	user.insert()
	assert user.name == user.email == "parity.case@example.com"
	assert user.full_name == "P C"
	assert user.user_type == "Website User"
	with pytest.raises(frappe.ValidationError):
		frappe.get_doc(doctype="User", email="not an email", first_name="x", send_welcome_email=0).insert()


@pytest.mark.parametrize(
	("config", "expected"),
	[
		({"host_name": "https://a.example"}, "https://a.example/app/user-permission/A%20B/1%25"),
		(
			{"host_name": "https://a.example:81", "webserver_port": 8000},
			"https://a.example:81/app/user-permission/A%20B/1%25",
		),
		(
			{"host_name": "http://a.example", "webserver_port": 8000, "developer_mode": 1},
			"http://a.example:8000/app/user-permission/A%20B/1%25",
		),
	],
)
def test_addresses_of_forms(monkeypatch, config, expected):
	unset = ("host_name", "hostname", "http_port", "webserver_port", "restart_supervisor_on_update")
	for key in (*unset, "developer_mode"):
		monkeypatch.setitem(frappe.conf, key, config.get(key))
	assert get_url_to_form("User Permission", "A B/1%") == expected
