"""Whatever an organization, a user, a type or a queue is called, every list shows what it should.

Frappe pastes our conditions into its own statements. Some of those run with parameters, some without.
"""

import json

import frappe
import pytest

from dartwing_jobs import references, tenancy
from dartwing_jobs.engine import quoting, states
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.scheduling import make_schedule
from dartwing_jobs.tests.world import (
	make_job,
	make_job_type,
	make_organization,
	make_template,
	make_user,
)

HOSTILE = [
	"Inj %(param1)s",
	"100% %s %d %%",
	"""O'Brien "x" \\""",
	"\\' or true -- x",
	"x')) or true; /* {0} {name}",
	"Ünï 日本 🎉 ﹪",
]
# what Frappe 15 itself cannot quote on PostgreSQL
WORSE = ["`", "x=1", "' or 1=1 -- x", "\t\n"]
# with the first of the names it was a condition that holds for every row
ATTACK = "))) or true -- x"


@pytest.fixture(scope="module")
def home(world):
	"""Organizations with hostile names, people in all of them, and one row of each kind that lists show."""
	organizations = [make_organization(name) for name in HOSTILE]
	admin = make_user("hostile-admin", ["Dartwing Admin"], organizations)
	user = make_user("o'b%s&{y}", ["Dartwing User"], organizations)
	jobs = [_job(organization, name, user) for organization, name in zip(organizations, HOSTILE, strict=True)]
	own, template = organizations[0], make_template(organizations[0])
	home = frappe._dict(
		organizations=organizations,
		jobs=[job.name for job in jobs],
		job_types=[job.job_type for job in jobs],
		dead=[make_job(own, status=states.DEAD_LETTER, owner_user=user).name],
		templates=[template.name],
		schedules=[make_schedule(own, template=template).name],
		groups=[_insert("Job Group", group_name="group", organization=own)],
		files=[_attach(job.name) for job in jobs],
		neighbours=[make_job(world.b).name, _insert("Job Group", group_name="group", organization=world.b)],
		admin=Browser(admin),
		owner=Browser(user),
	)
	home.neighbours_file = _attach(home.neighbours[0])
	frappe.db.commit()
	return home


def _job(organization: str, name: str, user: str):
	"""A job in a hostile organization, of a hostile type and queue, for a hostile user."""
	kind = {"type_name": f"{name} {frappe.generate_hash(length=6)}", "job_queue": _queue(name)}
	return make_job(organization, owner_user=user, job_type=make_job_type(**kind).name)


def _queue(name: str) -> str:
	queue = {"queue_name": f"q:{name} {frappe.generate_hash(length=6)}", "rq_queue": "default"}
	return _insert("Job Queue", **queue)


def _insert(doctype: str, **fields) -> str:
	return frappe.get_doc({"doctype": doctype, **fields}).insert().name


def _attach(job: str) -> str:
	content = {"file_name": f"{frappe.generate_hash(length=8)}.txt", "content": frappe.generate_hash()}
	where = {"attached_to_doctype": "Background Job", "attached_to_name": job}
	return _insert("File", is_private=1, **content, **where)


def _resource(browser, doctype, filters):
	return browser.get(f"/api/resource/{doctype}", filters=filters, limit_page_length=500)


def _document(browser, doctype, filters):
	return browser.get(f"/api/v2/document/{doctype}", fields=["name"], filters=filters, limit=500)


def _client(browser, doctype, filters):
	arguments = {"doctype": doctype, "filters": filters, "limit_page_length": 500}
	return browser.call("frappe.client.get_list", **arguments)


def _report(browser, doctype, filters):
	fields = [f"`tab{doctype}`.`name`"]
	arguments = {"doctype": doctype, "fields": fields, "filters": filters, "page_length": 500, "start": 0}
	return browser.call("frappe.desk.reportview.get", **arguments)


LISTS = [_resource, _document, _client, _report]


def _listed(answer) -> str:
	assert answer.status_code == 200, answer.get_data(as_text=True)[-1000:]
	return answer.get_data(as_text=True)


def _shows_no_neighbour(home, listed: str) -> bool:
	return not any(f'"{name}"' in listed for name in home.neighbours)


@pytest.mark.parametrize("door", LISTS, ids=lambda door: door.__name__.strip("_"))
@pytest.mark.parametrize("person", ["admin", "owner"])
def test_a_list_shows_its_own_rows_and_no_others(home, door, person):
	listed = _listed(door(home[person], "Background Job", []))
	assert all(f'"{job}"' in listed for job in home.jobs)
	assert _shows_no_neighbour(home, listed)


@pytest.mark.parametrize("door", LISTS, ids=lambda door: door.__name__.strip("_"))
@pytest.mark.parametrize("field", ["job_id", "organization", "job_type", "job_queue", "owner_user"])
def test_a_filter_reads_no_other_organization(home, door, field):
	listed = _listed(door(home.admin, "Background Job", [["Background Job", field, "=", ATTACK]]))
	assert not any(f'"{name}"' in listed for name in [*home.neighbours, *home.jobs])


@pytest.fixture(scope="module")
def attacker(world):
	"""The admin of an organization that was named to become part of a statement."""
	browser = Browser(make_user("attacker", ["Dartwing Admin"], [make_organization(HOSTILE[0])]))
	frappe.db.commit()
	return browser


@pytest.mark.parametrize("door", LISTS, ids=lambda door: door.__name__.strip("_"))
def test_a_name_and_a_filter_together_open_nothing(home, attacker, door):
	listed = _listed(door(attacker, "Background Job", [["Background Job", "job_id", "=", ATTACK]]))
	assert not any(f'"{name}"' in listed for name in [*home.neighbours, *home.jobs])


@pytest.mark.parametrize("door", LISTS, ids=lambda door: door.__name__.strip("_"))
def test_hostile_names_can_be_filtered_by(home, door):
	for filters in (
		[["Background Job", "organization", "in", home.organizations]],
		[["Background Job", "job_type", "in", home.job_types]],
		[["Background Job", "owner_user", "=", home.owner.user]],
	):
		listed = _listed(door(home.admin, "Background Job", filters))
		assert all(f'"{job}"' in listed for job in home.jobs)


@pytest.mark.parametrize("doctype", sorted(tenancy.TENANT_DOCTYPES - {"Job Idempotency Key"}))
def test_every_doctype_can_be_listed(home, doctype):
	for door in LISTS:
		_listed(door(home.admin, doctype, []))
	_listed(home.admin.call("frappe.desk.search.search_link", doctype=doctype, txt="x"))


@pytest.mark.parametrize("door", LISTS, ids=lambda door: door.__name__.strip("_"))
@pytest.mark.parametrize("person", ["admin", "owner"])
def test_files_follow_their_jobs(home, door, person):
	names = [*home.files, home.neighbours_file]
	listed = _listed(door(home[person], "File", [["File", "name", "in", names]]))
	assert all(f'"{file}"' in listed for file in home.files)
	assert home.neighbours_file not in listed


@pytest.mark.parametrize("method", ["frappe.client.get_count", "frappe.desk.reportview.get_count"])
def test_counts_count_their_own_rows(home, method):
	def count(filters):
		answer = home.admin.call(method, doctype="Background Job", filters=filters, fields=[])
		return json.loads(_listed(answer))["message"]

	assert count([]) == len(home.jobs) + len(home.dead)
	assert count([["Background Job", "job_id", "=", ATTACK]]) == 0
	assert count([["Background Job", "name", "=", home.neighbours[0]]]) == 0


def test_a_search_finds_its_own_rows(home):
	def finds(name):
		answer = home.admin.call("frappe.desk.search.search_link", doctype="Background Job", txt=name)
		return name in [row["value"] for row in json.loads(_listed(answer))["message"]]

	assert finds(home.jobs[0])
	assert not finds(home.neighbours[0])


@pytest.mark.parametrize(
	("method", "shown"),
	[
		("jobs.list_jobs", "jobs"),
		("groups.list_groups", "groups"),
		("dead_letters.list_dead_letters", "dead"),
		("templates.list_templates", "templates"),
		("schedules.list_schedules", "schedules"),
	],
)
def test_our_own_lists_show_their_own_rows(home, method, shown):
	def ask(**filters):
		return _listed(home.admin.call(f"dartwing_jobs.api.{method}", limit=100, **filters))

	assert all(f'"{name}"' in ask() for name in home[shown])
	assert f'"{home[shown][0]}"' in ask(organization=home.organizations[0])
	assert _shows_no_neighbour(home, ask() + ask(organization=ATTACK) + ask(organization="%(param1)s"))


def test_an_owner_lists_their_jobs_and_groups(home):
	jobs = _listed(home.owner.call("dartwing_jobs.api.jobs.list_jobs"))
	assert all(f'"{job}"' in jobs for job in home.jobs)
	groups = _listed(home.owner.call("dartwing_jobs.api.groups.list_groups"))
	assert _shows_no_neighbour(home, jobs + groups)


def conditions(user: str) -> dict[str, str]:
	"""Every condition that we hand to statements of others, by the table that it is about."""
	found = {f"`tab{one}`": tenancy.query_conditions(user, one) for one in tenancy.TENANT_DOCTYPES}
	return {
		**found,
		"`tabJob Group` job_group": tenancy.group_conditions(user),
		"`tabFile`": references.file_conditions(user),
		"`tabJob Template` as `tabJob Template`": tenancy.rows_to_submit_in(user, "Job Template"),
	}


@pytest.mark.parametrize("person", ["admin", "owner"])
def test_a_condition_means_the_same_with_parameters_and_without(home, person):
	for table, condition in conditions(home[person].user).items():
		statement = f"select count(*) from {table} where {condition}"
		counted = frappe.db.sql(statement)[0][0]
		none, one = {"param1": ATTACK}, f"{statement} and %(param1)s = %(param1)s"
		assert frappe.db.sql(one, none)[0][0] == counted, table
		assert frappe.db.sql(f"{statement} and %s = %s", (ATTACK, ATTACK))[0][0] == counted, table


@pytest.mark.parametrize("person", ["admin", "owner"])
def test_no_text_of_anybody_stands_in_a_condition(home, person):
	for table, condition in conditions(home[person].user).items():
		assert not {"%", "\\", "日"} & set(condition), table
		assert not any(name in condition for name in HOSTILE), table
		assert home[person].user not in condition, table


@pytest.mark.parametrize("text", ["", " ", "x" * 140, *HOSTILE, *WORSE])
def test_a_quoted_text_is_the_text(text):
	assert frappe.db.sql(f"select {quoting.quoted(text)}")[0][0] == text
	assert frappe.db.sql(f"select {quoting.quoted(text)}, %s", ("x",))[0][0] == text


@pytest.mark.parametrize("texts", [["B"], ["B", "C"]])
@pytest.mark.parametrize("column", ["name", "organization", "job_group"])
def test_a_quoted_text_is_looked_up_as_a_plain_one_is(column, texts):
	"""By the same index, that is."""
	table = "`tabBackground Job`"
	plain = ", ".join(f"'{text}'" for text in texts)
	spelled = f"explain select name from {table} where {quoting.is_one_of(column, texts)}"
	if frappe.db.db_type != "mariadb":
		frappe.db.sql("set local enable_seqscan = off")
	assert frappe.db.sql(spelled) == frappe.db.sql(
		f"explain select name from {table} where {column} in ({plain})"
	)


def test_a_quoted_text_is_compared_as_the_column_says():
	"""On MariaDB capitals do not tell names apart: a spelled text must not either."""
	plain = frappe.db.sql("select count(*) from `tabDocType` where name = 'background JOB'")
	spelled = frappe.db.sql(
		f"select count(*) from `tabDocType` where name = {quoting.quoted('background JOB')}"
	)
	assert list(spelled) == list(plain)
