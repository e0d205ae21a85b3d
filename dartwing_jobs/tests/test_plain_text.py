"""Texts of people are drawn as text: what every home can show of it. `test_desk.py` looks at Desk itself."""

import ast
import json
from pathlib import Path

import frappe
import pytest

import dartwing_jobs
from dartwing_jobs import hooks
from dartwing_jobs.engine import alerts
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.overrides import WORD_JOINER
from dartwing_jobs.tests import hostile
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.scheduling import make_schedule
from dartwing_jobs.tests.world import REPEATABLE, make_job, make_template, plant

PACKAGE = Path(dartwing_jobs.__file__).parent
SCRIPT = "public/js/plain_text.js"
HOSTILE = "<img src onerror=ran(1)>"
DRAWN = "&lt;img src onerror=ran(1)&gt;"
DOCTYPES = PACKAGE / "dartwing_jobs" / "doctype"
ENGINE_OWNED = sorted(
	json.loads(file.with_suffix(".json").read_text())["name"]
	for file in DOCTYPES.glob("*/*.py")
	if "(EngineOwnedDocument)" in file.read_text()
)


def definition(doctype: str) -> dict:
	name = frappe.scrub(doctype)
	return json.loads((DOCTYPES / name / f"{name}.json").read_text())


def test_desk_loads_what_makes_texts_of_fields_with_every_doctype():
	assert set(hooks.doctype_list_js) == set(hostile.our_doctypes())
	assert set(hooks.doctype_list_js.values()) == {SCRIPT}
	assert (PACKAGE / SCRIPT).exists()


def test_the_sidebar_of_desk_leads_to_every_doctype():
	"""Without one Frappe v16 cannot open any list."""
	sidebar = json.loads((PACKAGE / "workspace_sidebar" / "dartwing_jobs.json").read_text())
	assert {item["link_to"] for item in sidebar["items"] if "link_to" in item} == set(hostile.our_doctypes())
	assert sidebar["module"] == hostile.MODULE


@pytest.mark.parametrize("doctype", ENGINE_OWNED)
def test_desk_opens_what_the_engine_owns_and_offers_no_change(doctype):
	"""Desk opens no DocType that is marked as read only, for anybody."""
	assert not definition(doctype).get("read_only")
	assert definition(doctype)["in_create"]
	name = frappe.scrub(doctype)
	script = (DOCTYPES / name / f"{name}.js").read_text()
	assert f'"{doctype}"' in script
	assert "disable_form()" in script


def test_titles_of_links_ask_for_nothing_that_readers_may_not_read():
	"""A list asks for the titles of its links, and is refused as a whole where one may not be read."""
	for doctype in hostile.our_doctypes():
		assert not definition(doctype).get("show_title_field_in_link"), doctype


def test_nothing_is_said_but_through_the_one_that_escapes():
	said = {}
	for path in PACKAGE.rglob("*.py"):
		if "tests" not in path.parts and path.name != "messages.py":
			said |= {
				f"{path}:{node.lineno}": node.attr
				for node in ast.walk(ast.parse(path.read_text()))
				if says(node)
			}
	assert said == {}


def says(node: ast.AST) -> bool:
	return (
		isinstance(node, ast.Attribute)
		and node.attr in ("throw", "msgprint", "bold")
		and isinstance(node.value, ast.Name)
		and node.value.id == "frappe"
	)


JOBS, DEAD_LETTERS = "dartwing_jobs.api.jobs", "dartwing_jobs.api.dead_letters"
REFUSALS = {
	"unknown type": (f"{JOBS}.submit", {"job_type": HOSTILE}),
	"unknown priority": (f"{JOBS}.submit", {"job_type": REPEATABLE, "priority": HOSTILE}),
	"unknown job": (f"{JOBS}.cancel", {"job": HOSTILE}),
	"unknown filter": (f"{DEAD_LETTERS}.replay_many", {"filters": {HOSTILE: 1}}),
	"cursor": (f"{DEAD_LETTERS}.list_dead_letters", {"after": HOSTILE}),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_a_refusal_over_http_holds_the_text_and_no_tag(world, what):
	method, arguments = REFUSALS[what]
	if method.endswith("submit"):
		arguments = {**arguments, "organization": world.a}
	answer = Browser(world.admin_a).call(method, **arguments)
	messages = [json.loads(entry)["message"] for entry in json.loads(answer.json["_server_messages"])]
	assert any(DRAWN in message for message in messages)
	assert not any(HOSTILE in message for message in messages)


def test_whoever_catches_an_error_reads_what_was_given(world):
	with pytest.raises(InvalidJobError) as caught:
		dartwing_jobs.submit(HOSTILE, {}, world.a)
	assert HOSTILE in str(caught.value)
	assert DRAWN in frappe.get_message_log()[-1]["message"]


def test_a_message_beside_an_answer_is_text(world):
	template = make_template(world.a)
	make_schedule(world.a, next_fire_at=None, template=template)
	frappe.clear_messages()
	template.stop_schedules(HOSTILE)
	frappe.db.commit()
	(said,) = frappe.get_message_log()
	assert DRAWN in said["message"]
	assert HOSTILE not in said["message"]


def test_what_a_notification_says_is_text(world):
	"""Desk and mails take its subject as HTML."""
	told = {"count": 1, "job": make_job(world.a).name, "organization": world.a}
	people = alerts._notify({**told, "job_type": HOSTILE, "error": HOSTILE})
	assert world.admin_a in people
	subject = frappe.get_last_doc("Notification Log", {"for_user": world.admin_a}).subject
	assert subject.count(DRAWN) == 2
	assert HOSTILE not in subject


def test_what_is_printed_is_text(world):
	"""A print of a document takes its fields as HTML."""
	job = make_job(world.a, input_parameters=json.dumps({HOSTILE: HOSTILE}))
	plant(job.name, error_message=f"{HOSTILE}\nand more", discard_reason=HOSTILE)
	job.reload()
	assert job.get_formatted("error_message") == f"{DRAWN}<br>and more"
	assert job.get_formatted("discard_reason") == DRAWN
	assert HOSTILE not in job.get_formatted("input_parameters")


def test_what_a_search_finds_is_text(world):
	"""Desk draws the labels and descriptions of a link field's choices as HTML."""
	template = make_template(world.a)
	name = f"{HOSTILE} {template.name}"
	frappe.db.set_value("Job Template", template.name, "template_name", name)
	frappe.db.commit()
	answer = Browser(world.admin_a).call(
		"frappe.desk.search.search_link", doctype="Job Template", txt=template.name
	)
	found = answer.json["message"] if "message" in answer.json else answer.json["results"]
	assert [row["value"] for row in found] == [template.name]
	assert HOSTILE.replace("<", f"<{WORD_JOINER}") in found[0]["description"]
	assert HOSTILE not in found[0]["description"]
