"""Desk in a real browser: hostile text in every field of ours, and what the people who look at it see.

The embedded site has no Desk: there `test_plain_text.py` shows what can be shown.
"""

import json

import frappe
import pytest

from dartwing_jobs import hooks
from dartwing_jobs.engine import alerts, states
from dartwing_jobs.overrides import WORD_JOINER
from dartwing_jobs.tests import desk, hostile
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.test_plain_text import ENGINE_OWNED, HOSTILE, definition
from dartwing_jobs.tests.world import REPEATABLE, make_organization, make_user, plant

DOCTYPES = sorted(hooks.doctype_list_js)
ADMIN = "Dartwing Admin"
JOBS = "dartwing_jobs.api.jobs"
SINGLE = "Job Engine Settings"
PARTS_OF_DESK = ("search_bar", "notifications", "list_sidebar", "form_sidebar", "timeline", "dashboard")
# what a form shows of its fields: an editor's text, an input's value, or what is drawn
SHOWN = """() => Object.fromEntries(Object.entries(cur_frm.fields_dict).map(([name, field]) => [name,
	(field.editor ? field.editor.session.getValue()
	: field.disp_status === "Write" ? field.$input?.val() : field.disp_area?.textContent)?.trim()]))"""
SHOWS = f"""([name, expected]) => cur_frm?.doc?.name === name && ((shown) =>
	Object.entries(expected).every(([field, text]) => shown[field] === text))(({SHOWN})())"""
IS_LIST = """([doctype, view]) => cur_list?.doctype === doctype && cur_list.view_name === view
	&& $(cur_list.$result).text().includes("ran(")"""
COLUMNS = "() => cur_list.columns.map((column) => column.df?.fieldname)"
ROWS = "() => cur_list.$result.text()"
DIALOG = "() => $('.msgprint:visible').text()"
CLOSE = "() => frappe.hide_msgprint(true)"
OFFERS_NO_CHANGE = """(name) => cur_frm?.doc?.name === name && cur_frm.save_disabled
	&& cur_frm.fields.every((field) => field.disp_status !== "Write" || !field.has_input)"""


def readers(doctype: str) -> list[str]:
	"""Administrator, and the Dartwing Admin where they may read it."""
	permitted = [row["role"] for row in definition(doctype)["permissions"] if row.get("read")]
	return ["Administrator", ADMIN] if ADMIN in permitted else ["Administrator"]


EVERY_READER = [(reader, doctype) for doctype in DOCTYPES for reader in readers(doctype)]
READERS_OF_ENGINE_OWNED = [(reader, doctype) for reader, doctype in EVERY_READER if doctype in ENGINE_OWNED]
READERS_OF_LISTS = [(reader, doctype) for reader, doctype in EVERY_READER if doctype != SINGLE]


def given_fields(doctype: str) -> list:
	"""The organization is a real one: its admin must see the row."""
	return [field for field in hostile.text_fields(doctype) if field.fieldname != "organization"]


@pytest.fixture(scope="module")
def organization(site) -> str:
	return make_organization(hostile.NAME.format("organization"))


@pytest.fixture(scope="module")
def admin(organization) -> str:
	user = make_user("desk-admin", [ADMIN], [organization])
	# tests make their users without Frappe's defaults, and so without most of Desk
	frappe.db.set_value("User", user, dict.fromkeys(PARTS_OF_DESK, 1))
	return user


@pytest.fixture(scope="module")
def planted(organization, admin):
	with hostile.planted_everywhere(organization) as names:
		yield names


@pytest.fixture(scope="module")
def look_as(planted, admin):
	"""The Desk of a user, kept open from test to test: it takes seconds to start."""
	opened = {}
	with desk.served() as address, desk.started_browser() as browser:

		def look(reader: str) -> desk.Desk:
			user = admin if reader == ADMIN else reader
			if user not in opened:
				opened[user] = desk.Desk(browser, address, user, hostile.RECORDER)
			return opened[user]

		yield look
		for one in opened.values():
			one.close()


def assert_that_nothing_ran(seen: desk.Desk) -> None:
	assert seen.page.evaluate("heard.splice(0)") == []
	assert seen.page.evaluate(hostile.LISTENERS) == []
	assert seen.take_errors() == []


def test_what_is_drawn_as_html_does_run(look_as):
	"""The trap itself: without this the other tests would say nothing."""
	seen = look_as("Administrator")
	draw = "(text) => { window.drawn = $('<div>').html(text).appendTo(document.body) }"
	seen.page.evaluate(draw, hostile.PAYLOAD.format("trap"))
	seen.page.wait_for_function("heard.includes('trap')")
	assert seen.page.evaluate(hostile.LISTENERS) != []
	seen.page.evaluate("() => { drawn.remove(); heard.length = 0 }")
	assert_that_nothing_ran(seen)


@pytest.mark.parametrize(("reader", "doctype"), READERS_OF_LISTS)
def test_a_list_draws_texts(look_as, planted, reader, doctype):
	seen = look_as(reader)
	seen.open("List", doctype)
	seen.page.wait_for_function(IS_LIST, arg=[doctype, "List"])
	rows, columns = seen.page.evaluate(ROWS), seen.page.evaluate(COLUMNS)
	for field in given_fields(doctype):
		assert field.fieldname not in columns or hostile.planted_text(field).strip() in rows
	assert_that_nothing_ran(seen)


@pytest.mark.parametrize(("reader", "doctype"), EVERY_READER)
def test_a_form_draws_texts(look_as, planted, reader, doctype):
	seen = look_as(reader)
	expected = {
		field.fieldname: hostile.planted_text(field).strip()
		for field in given_fields(doctype)
		if not field.hidden
	}
	seen.open("Form", doctype, planted[doctype])
	seen.wait_for(SHOWS, [planted[doctype], expected])
	shown = seen.page.evaluate(SHOWN)
	assert {name: shown[name] for name in expected} == expected
	assert_that_nothing_ran(seen)


@pytest.mark.parametrize(("reader", "doctype"), READERS_OF_ENGINE_OWNED)
def test_a_form_of_what_the_engine_owns_offers_no_change(look_as, planted, reader, doctype):
	seen = look_as(reader)
	seen.open("Form", doctype, planted[doctype])
	seen.page.wait_for_function(OFFERS_NO_CHANGE, arg=planted[doctype])


@pytest.mark.parametrize("doctype", [doctype for doctype in DOCTYPES if doctype != SINGLE])
def test_a_report_draws_texts(look_as, doctype):
	seen = look_as("Administrator")
	fields = [[field.fieldname, doctype] for field in hostile.text_fields(doctype)]
	choose = "([doctype, fields]) => { frappe.model.user_settings[doctype] = { Report: { fields } } }"
	seen.page.evaluate(choose, [doctype, fields])
	seen.open("List", doctype, "Report")
	seen.page.wait_for_function(IS_LIST, arg=[doctype, "Report"])
	cells = seen.page.evaluate(ROWS)
	assert [f.fieldname for f in given_fields(doctype) if hostile.planted_text(f).strip() not in cells] == []
	assert_that_nothing_ran(seen)


# a report that was open before has the columns of then
ADD_COLUMNS = """() => { const there = cur_list.fields.map(([name]) => name);
	["project_id", "progress"].filter((name) => !there.includes(name))
		.forEach((name) => cur_list.fields.push([name, cur_list.doctype]));
	cur_list.setup_columns(); cur_list.refresh() }"""
SHOW_ONLY = "name => cur_list.filter_area.add('Background Job', 'name', '=', name)"
DRAW_CHART = (
	"""() => { cur_list.build_chart_args("project_id", ["progress"], "Bar"); cur_list.make_chart() }"""
)
CHART = ".charts-wrapper:not(.hidden) .charts-inner-wrapper"


def test_a_chart_of_a_report_draws_texts(look_as, planted):
	"""Its labels, and what it says of a bar below the mouse."""
	seen = look_as("Administrator")
	seen.open("List", "Background Job", "Report")
	seen.page.wait_for_function(IS_LIST, arg=["Background Job", "Report"])
	seen.page.evaluate(SHOW_ONLY, planted["Background Job"])  # among many, labels are cut
	seen.settle()
	seen.page.evaluate(ADD_COLUMNS)
	seen.settle()
	seen.page.evaluate(DRAW_CHART)
	seen.page.wait_for_selector(f"{CHART} svg")
	box = seen.page.wait_for_selector(CHART).bounding_box()  # a drawing replaces the one before
	for place in (0.3, 0.5, 0.7):
		seen.page.mouse.move(box["x"] + place * box["width"], box["y"] + box["height"] / 2)
		seen.settle()
	assert "onerror=ran(" in seen.page.evaluate("() => cur_list.$charts_wrapper.text()")
	assert_that_nothing_ran(seen)
	seen.page.evaluate("() => cur_list.filter_area.clear()")  # Desk remembers it
	seen.settle()


@pytest.mark.parametrize("doctype", DOCTYPES)
def test_a_print_draws_texts(planted, doctype):
	printed = Browser("Administrator").get("/printview", doctype=doctype, name=planted[doctype])
	assert printed.status_code == 200
	assert "&lt;img src onerror=ran(" in printed.text
	_head, _title, body = printed.text.partition("</title>")
	assert "<img src onerror" not in body


def test_the_dialog_of_a_refusal_draws_texts(look_as, organization):
	seen = look_as(ADMIN)
	arguments = {"job_type": HOSTILE, "organization": organization}
	seen.page.evaluate("([method, args]) => { frappe.call({ method, args }) }", [f"{JOBS}.submit", arguments])
	seen.page.wait_for_function("() => $('.msgprint:visible').length")
	seen.settle()
	assert HOSTILE in seen.page.evaluate(DIALOG)
	seen.page.evaluate(CLOSE)
	assert_that_nothing_ran(seen)


def test_the_choices_of_a_link_draw_texts(look_as, planted):
	seen = look_as(ADMIN)
	seen.open("Form", "Job Schedule", planted["Job Schedule"])
	seen.page.evaluate(
		"() => cur_frm.fields_dict.job_template.$input.val('').trigger('focus').trigger('input')"
	)
	seen.page.wait_for_function("() => cur_frm.fields_dict.job_template.awesomplete.ul.children.length")
	seen.settle()
	offered = seen.page.evaluate("() => cur_frm.fields_dict.job_template.awesomplete.ul.textContent")
	assert "<img src onerror=ran(`job_template.template_name`)>" in offered.replace(WORD_JOINER, "")
	assert_that_nothing_ran(seen)


CHOICES = "() => $('.group-by-field .group-by-value').text()"
OFFER_CHOICES = """(field) => { const choices = cur_list.list_sidebar.list_group_by;
	choices.group_by_fields = [field]; choices.render_group_by_items(); choices.setup_dropdown();
	choices.$wrapper.find('.group-by-field').trigger('show.bs.dropdown') }"""


def test_the_choices_beside_a_list_draw_texts_and_filter_by_them(look_as, planted):
	seen = look_as(ADMIN)
	text = hostile.planted_text(frappe.get_meta("Background Job").get_field("project_id"))
	seen.open("List", "Background Job")
	seen.page.wait_for_function(IS_LIST, arg=["Background Job", "List"])
	seen.page.evaluate(OFFER_CHOICES, "project_id")
	seen.wait_for("(text) => $('.group-by-field .group-by-value').text().includes(text)", text.strip())
	seen.settle()
	assert text.strip() in seen.page.evaluate(CHOICES)
	assert_that_nothing_ran(seen)
	seen.page.evaluate("() => { $('.group-by-item:contains(onerror)').trigger('click') }")
	seen.page.wait_for_function("() => cur_list.get_filter_value('project_id')")
	seen.settle()
	assert seen.page.evaluate("() => cur_list.get_filter_value('project_id')").strip() == text.strip()
	assert_that_nothing_ran(seen)
	seen.page.evaluate("() => cur_list.filter_area.clear()")
	seen.settle()


def test_what_a_dartwing_user_gave_is_drawn_as_text(world, look_as, organization):
	"""Through the doors that people have: parameters, an error, a reason."""
	user = make_user("desk-user", ["Dartwing User"], [organization])
	frappe.db.commit()
	given = {"job_type": REPEATABLE, "organization": organization, "parameters": {HOSTILE: HOSTILE}}
	submitted = Browser(user).call(f"{JOBS}.submit", **given)
	assert submitted.status_code == 200, submitted.text
	job = submitted.json["message"]["name"]
	plant(job, status=states.DEAD_LETTER, error_message=HOSTILE, run_at=None)
	frappe.db.commit()
	seen = look_as(ADMIN)
	discard = {"job": job, "reason": f"{HOSTILE} is not needed"}
	answer = Browser(seen.user).call("dartwing_jobs.api.dead_letters.discard", **discard)
	assert answer.status_code == 200
	seen.open("Form", "Background Job", job)
	expected = {"error_message": HOSTILE, "discard_reason": discard["reason"]}
	expected["input_parameters"] = json.dumps({HOSTILE: HOSTILE}, separators=(",", ":"))
	seen.wait_for(SHOWS, [job, expected])
	shown = seen.page.evaluate(SHOWN)
	assert {name: shown[name] for name in expected} == expected
	assert_that_nothing_ran(seen)


def test_a_notification_draws_texts(look_as, organization, planted):
	seen = look_as(ADMIN)
	told = {"count": 1, "job": planted["Background Job"], "job_type": HOSTILE, "error": HOSTILE}
	alerts._notify({**told, "organization": organization})
	frappe.db.commit()
	seen.reload()
	seen.page.evaluate("() => $('.dropdown-notifications .notifications-icon').trigger('click')")
	seen.page.wait_for_function("() => $('.notifications-list').text().includes('onerror=ran(1)')")
	seen.settle()
	assert_that_nothing_ran(seen)
