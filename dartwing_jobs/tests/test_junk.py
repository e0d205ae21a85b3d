"""Junk over HTTP: whatever a method of ours is sent, the answer is JSON, says what is wrong, and no 500."""

import json
from contextlib import suppress
from importlib import import_module
from itertools import cycle, islice
from pathlib import Path

import frappe
import pytest

from dartwing_jobs import api
from dartwing_jobs.engine.submit import submit
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.world import REPEATABLE, make_queue, make_template

JUNK = {
	"a word": "zz",
	"nothing": "",
	"100 kB": "x" * 100_000,
	"NUL": "a\x00b",
	"half a surrogate pair": "a\ud800",
	"markup": "<img src=x onerror=alert(1)>",
	"percents": "100%s %(param1)s {0}",
	"the last year": "9999-12-31T23:59:59-12:00|x",
	"many digits": "9" * 30 + "|x",
	"brackets": "[" * 50_000,
	"JSON": '{"job_type": [1, {"b": null}], "names": [[]]}',
	"negative": -1,
	"huge": 10**30,
	"NaN": float("nan"),
	"infinity": float("inf"),
	"a fraction": 1.5,
	"yes": True,
	"a list": [1, [None], {"a": 2}],
	"an object": {"a": {"b": [None]}, "names": {"x": 1}, "parameters": 5, "job_type": [REPEATABLE]},
}
# what a query can hold
WORDS = {
	name: JUNK[name]
	for name in ("a word", "nothing", "markup", "percents", "the last year", "many digits", "NUL")
}
AT_A_TIME = 2


def methods() -> dict:
	"""Every method of ours that arguments can be sent to, by its path."""
	found = {}
	for file in sorted(Path(api.__path__[0]).glob("[a-z]*.py")):
		for name, member in vars(import_module(f"{api.__name__}.{file.stem}")).items():
			is_own = callable(member) and member.__module__ == f"{api.__name__}.{file.stem}"
			if is_own and member in frappe.whitelisted:
				found[f"{member.__module__}.{name}"] = member
	return found


METHODS = methods()
WITH_ARGUMENTS = {path: method.arguments for path, method in METHODS.items() if hasattr(method, "arguments")}


@pytest.fixture(scope="module")
def browsers(world):
	return {person: Browser(getattr(world, person)) for person in ("user_a", "admin_a", "manager")}


@pytest.fixture(scope="module")
def plausible(world):
	"""For each argument something that makes sense, so that the others are looked at, too."""
	job, template = submit(REPEATABLE, None, world.a, owner_user=world.user_a), make_template(world.a)
	frappe.db.commit()
	known = {"job_type": REPEATABLE, "organization": world.a, "job": job.name, "template": template.name}
	known |= {"name": make_queue(), "what": "queue", "cron": "0 9 * * *", "cron_expression": "0 9 * * *"}
	known |= {"filters": {"names": ["none"]}, "reason": "junk", "parameters": {}, "template_name": "Junk"}
	frappe.db.commit()
	return known


def check(answer, what: str) -> None:
	text = answer.get_data(as_text=True)
	assert answer.status_code < 500, f"{what}: {answer.status_code} {text[-1500:]}"
	assert answer.is_json, f"{what}: {text[:500]}"
	if answer.status_code >= 400:
		assert sentence(answer.json), f"{what}: {answer.status_code} without a sentence: {text[:500]}"


def sentence(answer: dict) -> str:
	"""What Frappe shows to people, of either version of its API."""
	messages = [json.loads(one) for one in json.loads(answer.get("_server_messages", "[]"))]
	told = [str(one["message"]) for one in [*messages, *answer.get("errors", [])]]
	return " ".join([*told, answer.get("_error_message") or ""]).strip()


def needed(path: str, plausible: dict) -> dict:
	return {name: plausible[name] for name in WITH_ARGUMENTS[path] if name in plausible}


def test_every_method_reads_its_arguments_by_kinds():
	"""Or it takes none: what is added without kinds would be Frappe's to check."""
	assert len(WITH_ARGUMENTS) > 30
	assert [path for path in METHODS if path not in WITH_ARGUMENTS] == [
		"dartwing_jobs.api.metrics.prometheus"
	]


@pytest.mark.parametrize("path", WITH_ARGUMENTS)
def test_guests_are_asked_to_log_in(path):
	answer = Browser.of_nobody().call(path)
	assert answer.status_code == 403
	assert "Log in" in sentence(answer.json)


def turns(kinds: dict):
	"""For each argument of each method the next few kinds of junk: all meet all would take minutes."""
	walk = cycle(kinds.items())
	for path, arguments in WITH_ARGUMENTS.items():
		for name in arguments:
			for kind, value in islice(walk, AT_A_TIME):
				yield path, name, kind, value


def test_no_kind_of_argument_breaks(world):
	"""All of them meet all junk here: what is let through is what the methods have to cope with."""
	readers = {type(reader): reader for arguments in WITH_ARGUMENTS.values() for reader in arguments.values()}
	assert len(readers) > 10
	for reader in readers.values():
		for value in JUNK.values():
			with suppress(InvalidJobError):
				reader.read("argument", value)
	frappe.clear_messages()


def test_no_junk_breaks_a_method(world, browsers, plausible):
	people = cycle(browsers)
	for path, name, kind, value in turns(JUNK):
		person = next(people)
		given = {**needed(path, plausible), name: value}
		check(browsers[person].call(path, **given), f"{path} as {person}, {name} is {kind}")


def test_no_junk_in_a_query_breaks_a_method(world, browsers, plausible):
	for path, name, kind, value in turns(WORDS):
		if "GET" in frappe.allowed_http_methods_for_whitelisted_func[METHODS[path]]:
			given = {**needed(path, plausible), name: value}
			answer = browsers["admin_a"].get(f"/api/method/{path}", **given)
			check(answer, f"{path} by GET, {name} is {kind}")


@pytest.mark.parametrize("path", WITH_ARGUMENTS)
def test_what_is_missing_or_unknown_is_named(world, browsers, plausible, path):
	given = {**needed(path, plausible), "parameters": []} if "many" in path else needed(path, plausible)
	given = {name: value for name, value in given.items() if name in WITH_ARGUMENTS[path]}
	for name in METHODS[path].required[:1]:
		answer = browsers["manager"].call(path, **{key: value for key, value in given.items() if key != name})
		assert (answer.status_code, sentence(answer.json)) == (417, f"{name} is missing.")
	answer = browsers["manager"].call(path, **given, no_such_option=1)
	assert answer.status_code == 417
	assert "has no argument no_such_option" in sentence(answer.json)


REFUSED = {
	"jobs.list_jobs": [{"status": "Sleeping"}, {"limit": -1}, {"limit": 0}, {"after": "junk"}],
	"jobs.submit": [{"position": 3}, {"scheduled_for": "9999-12-31 23:59:59"}, {"if_duplicate": "perhaps"}],
	"jobs.submit_many": [{"parameters": "zz"}, {"parameters": {}}, {"idempotency_keys": "zz"}],
	"groups.list_groups": [{"status": "Sleeping"}, {"cursor": "junk"}],
	"templates.list_templates": [{"status": "Sleeping"}, {"cursor": "junk"}],
	"dead_letters.replay_many": [{"filters": "zz"}, {"filters": {"color": "red"}}, {"limit": -1}],
	"dead_letters.list_dead_letters": [{"cursor": "junk"}, {"after": "junk"}, {"discarded": "perhaps"}],
	"metrics.get_job_metrics": [{"hours": -1}, {"hours": "nan"}, {"hours": 10**9}],
}


@pytest.mark.parametrize("method", REFUSED)
def test_what_means_nothing_is_refused(world, browsers, plausible, method):
	path = f"dartwing_jobs.api.{method}"
	for junk in REFUSED[method]:
		answer = browsers["manager"].call(path, **{**needed(path, plausible), **junk})
		assert answer.status_code == 417, f"{junk}: {answer.get_data(as_text=True)[-500:]}"
		assert len(sentence(answer.json)) < 400


@pytest.fixture
def without_tracebacks(site):
	"""A site that sends none."""
	_send_tracebacks(0)
	yield
	_send_tracebacks(1)


def _send_tracebacks(sent: int) -> None:
	frappe.db.set_single_value("System Settings", "allow_error_traceback", sent)
	frappe.db.commit()
	frappe.clear_document_cache("System Settings", "System Settings")


def test_a_site_that_sends_no_tracebacks_sends_none_of_ours(world, browsers, plausible, without_tracebacks):
	answers = [Browser.of_nobody().call("dartwing_jobs.api.jobs.status", job="x")]
	answers.append(browsers["user_a"].call("dartwing_jobs.api.jobs.status", job="x"))
	for method, refused in REFUSED.items():
		path = f"dartwing_jobs.api.{method}"
		answers += [browsers["manager"].call(path, **{**needed(path, plausible), **one}) for one in refused]
	assert {answer.status_code for answer in answers} == {403, 404, 417}
	told = [answer.get_data(as_text=True) for answer in answers]
	assert not [text for text in told if "Traceback" in text or "File \\" in text]


def documents() -> list[str]:
	return frappe.get_all(
		"DocType", {"module": "Dartwing Jobs", "issingle": 0}, pluck="name", order_by="name"
	)


def test_no_junk_in_a_field_breaks_a_document(world, browsers):
	"""Each field of each DocType of ours meets some junk, from a user who may write everything."""
	walk = cycle(JUNK.items())
	for doctype in documents():
		for field in frappe.get_meta(doctype).fields:
			for kind, value in islice(walk, 1 if field.fieldtype.endswith("Break") else 2):
				answer = browsers["manager"].post(f"/api/resource/{doctype}", **{field.fieldname: value})
				check(answer, f"{doctype}, {field.fieldname} is {kind}")
