"""The REST doors of a running server, asked by a client that knows nothing of Frappe."""

import http.cookiejar
import json
import urllib.parse
import urllib.request

import pytest

from .conftest import token_of


@pytest.fixture(scope="module")
def reader(bench):
	user = {"doctype": "User", "email": "reader@example.com", "first_name": "Reader", "send_welcome_email": 0}
	user["roles"] = [{"role": "Note Reader"}]
	bench.python(f"frappe.get_doc({user!r}).insert()")
	return token_of(bench, "reader@example.com")


def exists(bench, title: str) -> bool:
	return bool(bench.python(f"answer = frappe.db.exists('Note Item', {title!r})"))


def test_post_commits_and_get_does_not(bench, web, admin):
	assert web("POST", "/api/method/notes_app.api.add", {"title": "posted"}, **admin)[1] == {
		"message": "posted"
	}
	assert web("GET", "/api/method/notes_app.api.add_by_get?title=gotten", **admin)[0] == 200
	assert exists(bench, "posted")
	assert not exists(bench, "gotten")


def test_an_error_rolls_back_and_says_why(bench, web, admin):
	status, body, _ = web("POST", "/api/method/notes_app.api.add_and_fail", {"title": "undone"}, **admin)
	assert status == 417
	assert body["exc_type"] == "ValidationError"
	assert "no such luck" in body["exception"]
	assert json.loads(json.loads(body["_server_messages"])[0])["message"] == "no such luck"
	assert not exists(bench, "undone")


def test_version_2_answers_in_its_own_form(web, admin):
	assert web("GET", "/api/v2/method/notes_app.api.double?number=4", **admin)[1] == {"data": 8}
	status, body, _ = web("POST", "/api/v2/method/notes_app.api.add_and_fail", {"title": "x"}, **admin)
	assert status == 417
	assert (body["errors"][0]["type"], body["errors"][0]["message"]) == ("ValidationError", "no such luck")


@pytest.mark.parametrize(
	("method", "path", "status"),
	[
		("GET", "/api/method/notes_app.api.double?number=2", 200),
		("GET", "/api/method/notes_app.api.double?number=two", 417),
		("GET", "/api/method/notes_app.api.add?title=x", 403),
		("GET", "/api/method/notes_app.api.hidden", 403),
		("GET", "/api/method/notes_app.api.nothing", 417),
		("GET", "/api/method/other_app.api.thing", 417),
		("GET", "/api/nothing", 404),
		("GET", "/api/resource/Note Item/nobody", 404),
		("GET", '/api/resource/Note Item?fields=["nonsense"]', 417),
		("GET", "/nothing", 404),
	],
)
def test_status_codes(web, admin, method, path, status):
	assert web(method, path, **admin)[0] == status


def test_guests_are_refused_unless_invited(web):
	assert web("GET", "/api/method/notes_app.api.for_all")[1] == {"message": "Guest"}
	assert web("GET", "/api/method/notes_app.api.double?number=2")[0] == 403
	assert web("GET", "/api/resource/Note Item")[0] == 403
	assert web("GET", "/api/method/ping", Authorization="token wrong:wrong")[0] == 401


def test_a_document_from_cradle_to_grave(web, admin):
	resource = "/api/resource/Note Item"
	status, body, _ = web("POST", resource, {"title": "a life"}, **admin)
	assert (status, body["data"]["name"]) == (200, "a life")
	assert "body" not in body["data"], "null fields are left out"
	assert web("POST", resource, {"title": "a life"}, **admin)[0] == 409
	assert web("POST", resource, {"body": "no title"}, **admin)[0] == 417
	assert web("PUT", f"{resource}/a life", {"body": "new"}, **admin)[1]["data"]["body"] == "new"
	assert web("PUT", f"{resource}/a life", {"body": "bad"}, **admin)[0] == 417
	assert web("POST", f"{resource}/a life?run_method=shout", **admin)[1] == {"data": "A LIFE"}
	listed = web("GET", resource + '?filters=[["body","=","new"]]&fields=["name","body"]', **admin)[1]
	assert listed == {"data": [{"name": "a life", "body": "new"}]}
	assert web("DELETE", f"{resource}/a life", **admin)[:2] == (202, {"data": "ok"})
	assert web("GET", f"{resource}/a life", **admin)[0] == 404


def test_roles_limit_what_a_token_may_do(web, reader):
	assert web("GET", "/api/resource/Note Item/welcome", **reader)[0] == 200
	assert web("PUT", "/api/resource/Note Item/welcome", {"body": "x"}, **reader)[0] == 403
	assert web("DELETE", "/api/resource/Note Item/welcome", **reader)[0] == 403
	assert web("POST", "/api/resource/Note Item", {"title": "y"}, **reader)[0] == 403


def test_client_and_desk_calls(web, admin):
	call = "/api/method/frappe.client"
	values = {"doctype": "Note Item", "name": "welcome", "fieldname": "color", "value": "Red"}
	assert web("POST", f"{call}.set_value", values, **admin)[1]["message"]["color"] == "Red"
	where = {"doctype": "Note Item", "filters": {"name": "welcome"}}
	got = web("POST", f"{call}.get_value", {**where, "fieldname": "color"}, **admin)
	assert got[1] == {"message": {"color": "Red"}}
	assert web("POST", f"{call}.get_count", where, **admin)[1] == {"message": 1}
	desk = "/api/method/frappe.desk"
	assert web("POST", f"{desk}.reportview.get_count", where, **admin)[1] == {"message": 1}
	rows = web("POST", f"{desk}.reportview.get", {**where, "fields": ["name", "color"]}, **admin)[1][
		"message"
	]
	assert (rows["keys"], rows["values"]) == (["name", "color"], [["welcome", "Red"]])
	found = web("POST", f"{desk}.search.search_link", {"doctype": "Note Item", "txt": "welc"}, **admin)
	assert found[1]["message"][0]["value"] == "welcome"
	loaded = web("GET", f"{desk}.form.load.getdoc?doctype=Note Item&name=welcome", **admin)
	assert loaded[1]["docs"][0]["title"] == "welcome"
	saved = {"doc": json.dumps({**loaded[1]["docs"][0], "color": "Blue"}), "action": "Save"}
	assert web("POST", f"{desk}.form.save.savedocs", saved, **admin)[1]["docs"][0]["color"] == "Blue"
	export = {**where, "fields": ["name", "color"], "file_format_type": "CSV"}
	assert '"welcome","Blue"' in web("POST", f"{desk}.reportview.export_query", export, **admin)[1]
	bulk = {"doctype": "Note Item", "docnames": ["welcome"], "action": "update", "data": {"color": "Red"}}
	update = "/api/method/frappe.desk.doctype.bulk_update.bulk_update.submit_cancel_or_update_docs"
	assert web("POST", update, bulk, **admin)[1] == {"message": []}


def test_login_with_a_password_gives_a_session(web):
	opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
	opener.addheaders = [("X-Frappe-Site-Name", web.site)]
	form = urllib.parse.urlencode({"usr": "Administrator", "pwd": "admin"}).encode()
	answer = json.load(opener.open(f"{web.base}/api/method/login", form))
	assert answer["message"] == "Logged In"
	who = f"{web.base}/api/method/frappe.auth.get_logged_user"
	assert json.load(opener.open(who)) == {"message": "Administrator"}
	opener.open(f"{web.base}/api/method/logout", b"")
	with pytest.raises(urllib.error.HTTPError, match="403"):
		opener.open(who)
	assert web("POST", "/api/method/login", {"usr": "Administrator", "pwd": "wrong"})[0] == 401


def test_pages_of_apps_are_served(web):
	status, page, headers = web("GET", "/notes")
	assert status == 200
	assert headers["Content-Type"].startswith("text/html")
	assert "All notes" in page


def test_what_is_not_offered_says_so(web, admin):
	export = {"doctype": "Note Item", "fields": ["name"], "file_format_type": "Excel"}
	status, body, _ = web("POST", "/api/method/frappe.desk.reportview.export_query", export, **admin)
	assert status == 500
	assert body["exc_type"] == "NotOfferedError"
	assert "embedded/README.md" in body["exception"]
