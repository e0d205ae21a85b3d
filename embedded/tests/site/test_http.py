"""The REST doors of a running server, asked over a socket. What is behind them, the app's own suite asks."""

import json

import pytest

METHOD, RESOURCE = "/api/method/notes_app.api", "/api/resource/Note Item"


@pytest.fixture(scope="module")
def admin(bench) -> dict[str, str]:
	"""Headers of a request by Administrator."""
	code = """
from frappe.core.doctype.user.user import generate_keys
secret = generate_keys("Administrator")["api_secret"]
answer = frappe.db.get_value("User", "Administrator", "api_key") + ":" + secret
"""
	return {"Authorization": f"token {bench.python(code)}"}


def test_post_commits_and_get_does_not(bench, web, admin):
	assert web("POST", f"{METHOD}.add", {"title": "posted"}, **admin) == (200, {"message": "posted"})
	assert web("GET", f"{METHOD}.add?title=gotten", **admin)[0] == 200
	names = "answer = frappe.get_all('Note Item', {'name': ['in', ['posted', 'gotten']]}, pluck='name')"
	assert bench.python(names) == ["posted"]


def test_an_error_rolls_back_and_says_why(bench, web, admin):
	status, body = web("POST", f"{METHOD}.add", {"title": "undone", "fail": 1}, **admin)
	assert (status, body["exc_type"]) == (417, "ValidationError")
	assert "no such luck" in body["exception"]
	assert json.loads(json.loads(body["_server_messages"])[0])["message"] == "no such luck"
	assert bench.python("answer = frappe.db.exists('Note Item', 'undone')") is None


def test_version_2_answers_in_its_own_form(web, admin):
	method = METHOD.replace("/api/", "/api/v2/")
	assert web("GET", f"{method}.double?number=4", **admin) == (200, {"data": 8})
	status, body = web("POST", f"{method}.add", {"title": "x", "fail": 1}, **admin)
	error = body["errors"][0]
	assert (status, error["type"], error["message"]) == (417, "ValidationError", "no such luck")


@pytest.mark.parametrize(
	("path", "status"),
	[
		(f"{METHOD}.double?number=2", 200),
		(f"{METHOD}.double?number=two", 417),
		("/api/method/frappe.client.insert", 403),
		(f"{METHOD}.each_hour", 403),
		(f"{METHOD}.nothing", 417),
		("/api/method/login", 500),
		("/api/method/frappe.client.rename_doc", 500),
		("/api/nothing", 404),
		(f"{RESOURCE}/nobody", 404),
		(RESOURCE + '?fields=["nonsense"]', 417),
		("/nothing", 404),
	],
)
def test_status_codes(web, admin, path, status):
	assert web("GET", path, **admin)[0] == status


def test_guests_are_refused_unless_invited(web):
	assert web("GET", f"{METHOD}.for_all")[1] == {"message": "Guest"}
	assert web("GET", f"{METHOD}.double?number=2")[0] == 403
	assert web("GET", RESOURCE)[0] == 403
	assert web("GET", "/api/method/ping", Authorization="token wrong:wrong")[0] == 401
	assert "NotOfferedError" in web("GET", "/api/method/ping", Authorization="Basic eA==")[1]["exc_type"]


def test_a_document_from_cradle_to_grave(web, admin):
	one, new = f"{RESOURCE}/a life", {"title": "a life"}
	assert "body" not in web("POST", RESOURCE, new, **admin)[1]["data"], "null fields are left out"
	assert web("POST", RESOURCE, new, **admin)[0] == 409
	assert web("POST", RESOURCE, {"body": "no title"}, **admin)[0] == 417
	assert web("PUT", one, {"body": "new"}, **admin)[1]["data"]["body"] == "new"
	assert web("GET", RESOURCE + '?filters=[["body","=","new"]]', **admin)[1] == {
		"data": [{"name": "a life"}]
	}
	assert web("DELETE", one, **admin) == (202, {"data": "ok"})
