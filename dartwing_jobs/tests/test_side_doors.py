"""Doors that are none of ours: methods and documents of Frappe that reach into any table.

On the embedded site most of them do not exist. What counts on both: nothing leaks, nothing changes.
"""

import json

import frappe
import pytest

from dartwing_jobs import overrides
from dartwing_jobs.engine import states
from dartwing_jobs.tests import doors
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.world import REPEATABLE, make_job, make_template, plant

OUTSIDERS = ["admin_b", "user_b", "stranger"]


@pytest.fixture(scope="module")
def browsers(world):
	return {person: Browser(getattr(world, person)) for person in ["manager", "admin_a", *OUTSIDERS]}


@pytest.fixture(scope="module")
def secret(world):
	mark = f"secret-{frappe.generate_hash(length=12)}"
	job = make_job(world.a, request_id=mark, project_id=mark)
	template = make_template(world.a, template_name=mark, description=mark)
	frappe.db.commit()
	return frappe._dict(mark=mark, job=job.name, template=template.name)


def everything(secret) -> list[dict]:
	"""The rows as they are stored, with Frappe's own columns for comments, likes and assignments."""
	frappe.db.rollback()
	log = frappe.get_all("Job Execution Log", filters={"background_job": secret.job}, fields=["*"])
	job = frappe.get_all("Background Job", filters={"name": secret.job}, fields=["*"])
	return [*job, *log, *frappe.get_all("Job Template", filters={"name": secret.template}, fields=["*"])]


def as_mine(world, secret) -> dict:
	"""The trick of sending the row as if it were one's own."""
	return {
		"doctype": "Background Job",
		"name": secret.job,
		"organization": world.b,
		"job_type": REPEATABLE,
	}


def reading(world, secret) -> dict[str, tuple[str, dict]]:
	job, mine = "Background Job", json.dumps(as_mine(world, secret))
	chart = {"type": "Heatmap", "chart_type": "Count", "document_type": job, "based_on": "creation"}
	fields = ["request_id", "project_id"]
	return {
		"search ignoring permissions": (
			"frappe.desk.search.search_widget",
			{
				"doctype": job,
				"txt": "",
				"ignore_user_permissions": 1,
				"filter_fields": fields,
				"filters": {"name": secret.job},
			},
		),
		"link search ignoring permissions": (
			"frappe.desk.search.search_link",
			{"doctype": "Job Template", "txt": secret.mark, "ignore_user_permissions": 1},
		),
		"method of a document as sent": ("run_doc_method", {"docs": mine, "method": "as_dict"}),
		"counting through a mapper": (
			"frappe.model.mapper.map_docs",
			{
				"method": "frappe.client.get_count",
				"source_names": f'["{job}"]',
				"target_doc": f'{{"request_id": "{secret.mark}"}}',
			},
		),
		"counting through a mapper, spelled in numbers": (
			"frappe.model.mapper.map_docs",
			{
				"method": "frappe.client.get_count",
				"source_names": '["\\u0042ackground Job"]',
				"target_doc": f'{{"request_id": "{secret.mark}"}}',
			},
		),
		"states of a workflow": (
			"frappe.workflow.doctype.workflow.workflow.get_workflow_state_count",
			{"doctype": job, "workflow_state_field": "request_id", "states": "[]"},
		),
		"heat map": (
			"frappe.desk.doctype.dashboard_chart.dashboard_chart.get",
			{
				"chart": json.dumps(
					{**chart, "filters_json": json.dumps([[job, "request_id", "=", secret.mark]])}
				),
				"no_cache": 1,
			},
		),
		"title of a link": (
			"frappe.desk.search.get_link_title",
			{"doctype": "Job Template", "docname": secret.template},
		),
		"printing a document as sent": ("frappe.www.printview.get_html_and_style", {"doc": mine}),
		"next in the list": (
			"frappe.desk.form.utils.get_next",
			{"doctype": "Job Template", "value": secret.template, "prev": 0, "sort_field": "template_name"},
		),
		"saving a form as sent": ("frappe.desk.form.save.savedocs", {"doc": mine, "action": "Save"}),
	}


@pytest.mark.parametrize("person", OUTSIDERS)
def test_nothing_can_be_read_through_a_side_door(world, browsers, secret, person):
	modified = str(frappe.db.get_value("Background Job", secret.job, "modified"))
	for door, (method, arguments) in reading(world, secret).items():
		answer = browsers[person].call(method, **arguments)
		text = answer.get_data(as_text=True).replace(arguments.get("txt") or "\0", "")
		assert answer.status_code >= 400 or not answer.json or secret.mark not in text, door
		assert modified not in text, door


@pytest.mark.parametrize("person", OUTSIDERS)
def test_counts_cannot_be_had_through_a_side_door(world, browsers, secret, person):
	counting = [door for door in reading(world, secret) if door.startswith(("counting", "states", "heat"))]
	assert len(counting) == 4
	for door in counting:
		method, arguments = reading(world, secret)[door]
		assert browsers[person].call(method, **arguments).status_code >= 400, door


@pytest.fixture
def assigned(world, secret):
	"""A task about the job; the embedded site knows no tasks, nor who counts them."""
	if not frappe.db.exists("DocType", "ToDo"):
		pytest.skip("this home has no ToDo")
	task = {"description": "x", "reference_type": "Background Job", "reference_name": secret.job}
	made = frappe.get_doc({"doctype": "ToDo", "allocated_to": world.admin_a, **task}).insert()
	frappe.db.set_value("User", world.admin_a, "user_type", "System User")
	frappe.db.commit()
	yield world.admin_a
	frappe.db.rollback()
	made.delete()
	frappe.db.commit()


def test_who_has_work_to_do_is_counted_among_the_rows_that_one_may_see(browsers, secret, assigned):
	asked = {"doctype": "Background Job", "field": "assigned_to"}
	asked["current_filters"] = json.dumps([["Background Job", "request_id", "=", secret.mark]])
	told = {
		person: assigned
		in browser.call("frappe.desk.listview.get_group_by_count", **asked).get_data(as_text=True)
		for person, browser in browsers.items()
	}
	assert told == {"manager": True, "admin_a": True, **dict.fromkeys(OUTSIDERS, False)}


def writing(world, secret, user: str) -> dict[str, tuple[str, dict]]:
	job, mine = "Background Job", json.dumps(as_mine(world, secret))
	about = {"doctype": job, "name": secret.job}
	return {
		"like": ("frappe.desk.like.toggle_like", {**about, "add": "Yes"}),
		"tag": ("frappe.desk.doctype.tag.tag.add_tag", {"tag": "hunt", "dt": job, "dn": secret.job}),
		"follow": (
			"frappe.desk.form.document_follow.follow_document",
			{"doctype": job, "doc_name": secret.job, "user": user},
		),
		"comment as sent": (
			"run_doc_method",
			{"docs": mine, "method": "add_comment", "args": '{"text": "hi"}'},
		),
		"rename as sent": (
			"run_doc_method",
			{"docs": mine, "method": "rename", "args": '{"name": "X", "force": 1}'},
		),
		"rename": ("frappe.rename_doc", {"doctype": job, "old": secret.job, "new": "X", "force": 1}),
		"merge": (
			"frappe.rename_doc",
			{"doctype": "Job Template", "old": secret.template, "new": "X", "force": 1},
		),
		"unlock": ("frappe.model.document.unlock_document", about),
		"unlock as older clients do": (
			"frappe.model.document.unlock_document",
			{"args": json.dumps(about)},
		),
		"upload": ("upload_file", {"doctype": job, "docname": secret.job, "file_url": "/files/x.txt"}),
	}


DOCUMENTS = {
	"File": {
		"file_name": "x.txt",
		"content": "x",
		"attached_to_doctype": "{doctype}",
		"attached_to_name": "{name}",
	},
	"ToDo": {"description": "x", "reference_type": "{doctype}", "reference_name": "{name}"},
	"Comment": {
		"comment_type": "Comment",
		"reference_doctype": "{doctype}",
		"reference_name": "{name}",
		"content": "x",
	},
	"Tag Link": {"tag": "hunt", "document_type": "{doctype}", "document_name": "{name}"},
	"Contact": {"first_name": "x", "links": [{"link_doctype": "{doctype}", "link_name": "{name}"}]},
	"Communication": {"subject": "x", "reference_doctype": "{doctype}", "reference_name": "{name}"},
}


def filled(fields, doctype: str, name: str):
	return json.loads(json.dumps(fields).replace("{doctype}", doctype).replace("{name}", name))


@pytest.mark.parametrize("person", OUTSIDERS)
def test_nothing_can_be_changed_through_a_side_door(world, browsers, secret, person):
	before, browser = everything(secret), browsers[person]
	for door, (method, arguments) in writing(world, secret, browser.user).items():
		answer = browser.call(method, **arguments)
		assert answer.status_code >= 400 or "unlock" not in door, door
	for kind, fields in DOCUMENTS.items():
		for doctype, name in (("Background Job", secret.job), ("Job Template", secret.template)):
			answer = browser.post(f"/api/resource/{kind}", **filled(fields, doctype, name))
			assert answer.status_code >= 400, (kind, doctype)
	assert everything(secret) == before


@pytest.mark.parametrize("person", ["manager", "admin_a", "stranger"])
@pytest.mark.parametrize("field", ["status", "output_reference"])
def test_a_file_cannot_be_written_into_a_field(browsers, secret, person, field):
	"""Frappe keeps a file's address in the field that the file says it is attached to."""
	file = {
		"file_name": f"{frappe.generate_hash()}.txt",
		"content": "x",
		"is_private": 0,
		"attached_to_field": field,
	}
	where = {"attached_to_doctype": "Background Job", "attached_to_name": secret.job}
	before = everything(secret)
	answer = browsers[person].post("/api/resource/File", **file, **where)
	if answer.status_code == 200:
		browsers[person].put(f"/api/resource/File/{answer.json['data']['name']}", is_private=1)
	assert everything(secret) == before


@pytest.mark.parametrize("person", ["manager", "admin_a"])
def test_a_job_and_its_log_cannot_be_renamed(browsers, secret, person):
	before = everything(secret)
	log = frappe.db.get_value("Job Execution Log", {"background_job": secret.job})
	for doctype, name in (
		("Background Job", secret.job),
		("Job Execution Log", log),
		("Job Template", secret.template),
	):
		rename = {"doctype": doctype, "old": name, "new": f"X{frappe.generate_hash(length=6)}", "force": 1}
		assert browsers[person].call("frappe.rename_doc", **rename).status_code >= 400
		path = f"/api/resource/{doctype}/{name}"
		assert (
			browsers[person].post(path, run_method="rename", name=rename["new"], force=1).status_code >= 400
		)
	assert everything(secret) == before


def test_a_changed_meta_does_not_thaw_a_field(world, browsers):
	"""A System Manager may tell Frappe that our field is a custom one, or a number."""
	job = make_job(world.a)
	frappe.db.commit()
	made = []
	try:
		for prop, value in (("is_custom_field", "1"), ("fieldtype", "Percent"), ("read_only", "0")):
			setter = {"doctype_or_field": "DocField", "doc_type": "Background Job", "field_name": "status"}
			answer = browsers["manager"].post(
				"/api/resource/Property Setter", **setter, property=prop, value=value
			)
			made += [answer.json["data"]["name"]] if answer.status_code == 200 else []
			browsers["manager"].put(f"/api/resource/Background Job/{job.name}", status=states.COMPLETED)
	finally:
		for name in made:
			browsers["manager"].delete(f"/api/resource/Property Setter/{name}")
		frappe.clear_cache(doctype="Background Job")
	frappe.db.rollback()
	assert frappe.db.get_value("Background Job", job.name, "status") == states.PENDING


def test_no_workflow_or_board_can_be_put_on_jobs(browsers):
	states_of_a_workflow = [{"state": "Pending", "doc_status": "0", "allow_edit": "System Manager"}]
	workflow = {
		"workflow_name": "x",
		"document_type": "Background Job",
		"workflow_state_field": "discard_reason",
	}
	answer = browsers["manager"].post(
		"/api/resource/Workflow", **workflow, is_active=0, states=states_of_a_workflow
	)
	assert answer.status_code >= 400
	board = {"kanban_board_name": "x", "reference_doctype": "Background Job", "field_name": "request_id"}
	assert browsers["manager"].post("/api/resource/Kanban Board", **board).status_code >= 400


def test_the_admin_of_the_organization_may_comment_and_attach(world, browsers, secret):
	"""Without this, guards that shut everything would look like guards."""
	if not frappe.db.exists("DocType", "Comment"):
		assert (
			browsers["admin_a"]
			.call("frappe.client.get", doctype="Background Job", name=secret.job)
			.status_code
			== 200
		)
		return
	job = make_job(world.a)
	frappe.db.commit()
	comment = {"reference_doctype": "Background Job", "reference_name": job.name, "content": "well done"}
	who = {"comment_email": browsers["admin_a"].user, "comment_by": "admin"}
	assert browsers["admin_a"].call("frappe.desk.form.utils.add_comment", **comment, **who).status_code == 200
	file = {"file_name": "note.txt", "content": "x", "is_private": 1}
	where = {"attached_to_doctype": "Background Job", "attached_to_name": job.name}
	assert browsers["admin_a"].post("/api/resource/File", **file, **where).status_code == 200
	frappe.db.rollback()
	plant(job.name, _comments=None)


# texts in arguments, and whether a method that may be about any DocType is then about one of ours
ABOUT_OURS = [
	"Background Job",
	["Background Job"],
	{"Job Run": 1},
	'["Background Job"]',
	'{"a": "[\\"Job Step\\"]"}',
	'["\\u0042ackground Job"]',
	'"Job Template"',
]
NOT_ABOUT_OURS = [
	"the Background Job of Monday",
	"Background Jobs",
	"tabBackground Job",
	'{"description": "see Job Run 7, Job Step 2"}',
	'["Background", "Job"]',
	"[" * 100_000,
	"\ud800 \0",
	"",
	None,
	7,
]


def asked(value: object) -> dict:
	return overrides.calling("dartwing_jobs.tests.doors.echo", "method")(method="a.b", value=value)


@pytest.mark.parametrize("value", ABOUT_OURS, ids=str)
def test_a_method_that_calls_others_is_closed_where_a_doctype_of_ours_is_named(world, value):
	frappe.set_user(world.admin_b)
	with pytest.raises(frappe.PermissionError, match="jobs of an organization"):
		asked(value)
	frappe.set_user(world.manager)
	assert asked(value)["value"] == value


@pytest.mark.parametrize("value", NOT_ABOUT_OURS, ids=lambda value: str(value)[:20])
def test_words_of_a_name_are_not_the_name(world, value):
	frappe.set_user(world.admin_b)
	assert asked(value)["value"] == value


@pytest.mark.parametrize(
	"name", ["background JOB", "Background Job ", "Back\u200bground Job", "Bäckground Job"]
)
def test_a_name_is_ours_if_the_database_says_so(world, name):
	"""MariaDB finds rows by such spellings too, PostgreSQL does not."""
	is_the_same = bool(frappe.get_all("DocType", filters={"name": name}))
	frappe.set_user(world.admin_b)
	closed = overrides.closed("dartwing_jobs.tests.doors.echo", "doctype")
	if is_the_same:
		with pytest.raises(frappe.PermissionError):
			closed(doctype=name)
	else:
		assert closed(doctype=name) == {"doctype": name}


def test_only_the_argument_that_names_a_doctype_counts(world):
	frappe.set_user(world.admin_b)
	closed = overrides.closed("dartwing_jobs.tests.doors.echo", "doctype")
	assert closed(doctype="User", title="Background Job")["title"] == "Background Job"
	with pytest.raises(frappe.PermissionError):
		closed(doctype="Background Job")


def test_a_method_that_calls_others_passes_by_no_override(world):
	frappe.set_user(world.admin_b)
	calling = overrides.calling("dartwing_jobs.tests.doors.echo", "method")
	assert calling(method="frappe.client.get_count") == {"method": "dartwing_jobs.overrides.get_count"}


def test_a_newer_link_check_asks_for_user_permissions(world, monkeypatch):
	"""Frappe 16.13 has it; older releases are here."""
	monkeypatch.setattr(frappe.client, "validate_link_and_fetch", doors.echo, raising=False)
	asked = {"doctype": "Background Job", "docname": "x", "ignore_user_permissions": 1}
	assert overrides.validate_link_and_fetch(**asked)["ignore_user_permissions"] is False


def test_what_a_chart_showed_to_one_is_not_shown_to_another(world, browsers, secret):
	method = "frappe.desk.doctype.dashboard_chart.dashboard_chart.get"
	if not frappe.db.exists("DocType", "Dashboard Chart"):
		assert browsers["admin_b"].call(method, chart_name="x").status_code >= 400
		return
	chart = _insert_chart()
	frappe.db.commit()
	total = _charted(browsers["manager"].call(method, chart_name=chart))
	own = frappe.db.count("Background Job", {"organization": world.b})
	assert total > own
	assert _charted(browsers["admin_b"].call(method, chart_name=chart)) == own
	assert _charted(browsers["manager"].call(method, chart_name=chart)) == total


def test_the_labels_of_a_chart_are_text(world, browsers):
	if not frappe.db.exists("DocType", "Dashboard Chart"):
		pytest.skip("this home draws no charts")
	hostile = f"<img src onerror=ran(1)> {frappe.generate_hash(length=6)}"
	plant(make_job(world.a).name, project_id=hostile)
	groups = {"group_by_type": "Count", "group_by_based_on": "project_id", "number_of_groups": 0}
	chart = _insert_chart(chart_type="Group By", type="Bar", **groups)
	frappe.db.commit()
	method = "frappe.desk.doctype.dashboard_chart.dashboard_chart.get"
	labels = browsers["admin_a"].call(method, chart_name=chart).json["message"]["labels"]
	assert hostile.replace("<", f"<{overrides.WORD_JOINER}") in labels
	assert hostile not in labels


def _insert_chart(**options) -> str:
	name = f"chart {frappe.generate_hash(length=8)}"
	fields = {"chart_name": name, "chart_type": "Count", "document_type": "Background Job", "type": "Line"}
	when = {"based_on": "creation", "timeseries": 1, "timespan": "Last Year", "time_interval": "Yearly"}
	whole = {"doctype": "Dashboard Chart", **fields, **when, "filters_json": "[]", **options}
	return frappe.get_doc(whole).insert().name


def _charted(answer) -> int:
	return sum(answer.json["message"]["datasets"][0]["values"])


def test_a_mail_about_a_job_cannot_be_moved_away(world, browsers, secret):
	communication = None
	if frappe.db.exists("DocType", "Communication"):
		where = {"reference_doctype": "Background Job", "reference_name": secret.job}
		mail = {"subject": "x", "communication_type": "Communication", **where}
		communication = frappe.get_doc({"doctype": "Communication", **mail}).insert().name
		frappe.db.commit()
	to = {"reference_doctype": "User", "reference_name": world.admin_b}
	answer = browsers["admin_b"].call("frappe.email.relink", name=communication, **to)
	assert answer.status_code >= 400
	if communication:
		frappe.db.rollback()
		assert frappe.db.get_value("Communication", communication, "reference_name") == secret.job
