"""Types whose category restricts writes write what they list, and nothing else, however they try."""

import frappe
import pytest

from dartwing_jobs import submit
from dartwing_jobs.engine import drain, states
from dartwing_jobs.engine.handling.written_tables import NotUnderstood, writes_of
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.tests import guarded
from dartwing_jobs.tests.world import make_job_type, make_queue, make_user, stored_status, story

GUARDED = "dartwing_jobs.tests.guarded"
CATEGORIES = ["Audit Enrichment", "Planning"]
# a driver that takes one statement at a time refuses the second on its own
ONE_STATEMENT_ONLY = {"mariadb": {"second_statement"}}


@pytest.fixture
def queue():
	return make_queue()


def run(world, queue, handler: str, parameters: dict, category: str | None = "Planning", **fields):
	"""Runs a job of a new type to its end; returns it."""
	fields |= {"handler_method": f"{GUARDED}.{handler}"}
	job_type = make_job_type(category=category or "General", **fields).name
	job = submit(job_type, parameters, world.a, job_queue=queue).name
	frappe.db.commit()
	drain.drain([queue])
	return frappe.get_doc("Background Job", job)


def stored(name: str) -> list:
	rows = frappe.get_all(
		"Job Queue", {"name": ["like", f"{name}%"]}, ["name", "description"], order_by="name"
	)
	return [(row.name, row.description) for row in rows]


def ways() -> list[str]:
	return sorted(guarded.WAYS.keys() - ONE_STATEMENT_ONLY.get(frappe.db.db_type, set()))


@pytest.mark.parametrize("way", guarded.WAYS)
def test_a_write_outside_the_list_is_refused_and_the_job_is_dead(world, queue, way):
	target = make_queue()
	before = stored(target)
	job = run(world, queue, "write", {"way": way, "name": target}, writable_doctypes="Organization")
	assert (job.status, job.error_type) == (states.DEAD_LETTER, "Permanent")
	assert "DocTypes It May Write" in job.error_message
	assert stored(target) == before


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_way_is_open_to_those_who_list_it(world, queue, category):
	"""Without this, a way that is broken would look like one that is closed."""
	for way in ways():
		target = make_queue()
		before = stored(target)
		parameters = {"way": way, "name": target}
		job = run(world, queue, "write", parameters, category, writable_doctypes="User\nJob Queue\n")
		assert (way, job.status, job.error_message) == (way, states.COMPLETED, None)
		assert stored(target) != before


def test_other_categories_write_what_they_like(world, queue):
	target = make_queue()
	assert run(world, queue, "write", {"way": "save", "name": target}, None).status == states.COMPLETED
	assert stored(target) == [(target, "written")]


@pytest.mark.parametrize("way", ["save", "builder_delete", "sql"])
@pytest.mark.parametrize("then", ["return", "raise", "commit"])
def test_a_handler_cannot_hide_a_refused_write(world, queue, way, then):
	target = make_queue()
	parameters = {"way": way, "name": target, "then": then}
	job = run(world, queue, "write_and_hide_it", parameters, "Audit Enrichment")
	assert job.status == states.DEAD_LETTER
	assert "may not do this" in job.error_message
	assert stored(target) == [(target, None)]
	assert [event for _from, _to, event in story(job.name)][-1] == "job.deadlettered"


def test_what_a_handler_leaves_for_after_the_commit_is_guarded_too(world, queue):
	target = make_queue()
	job = run(world, queue, "write_after_the_commit", {"way": "set_value", "name": target})
	assert job.status == states.COMPLETED
	assert stored(target) == [(target, None)]
	assert frappe.db.exists("Error Log", {"method": f"{job.name}: after its commit"})


def test_a_guarded_handler_can_use_all_of_its_context(world, queue):
	job = run(world, queue, "use_the_context", {"queue": queue}, "Audit Enrichment")
	assert (job.status, job.error_message, job.progress_message) == (states.COMPLETED, None, "half")
	child = frappe.parse_json(frappe.get_last_doc("Job Run", {"background_job": job.name}).output)["child"]
	assert stored_status(child) == states.COMPLETED


def test_child_rows_belong_to_their_document(world, queue):
	user = make_user("guarded", [])
	handler, parameters = "write_a_child_row", {"user": user}
	assert run(world, queue, handler, parameters).status == states.DEAD_LETTER
	job = run(world, queue, handler, parameters, writable_doctypes="User")
	assert (job.status, job.error_message) == (states.COMPLETED, None)
	assert frappe.db.exists("Has Role", {"parent": user, "role": "Dartwing Admin"})


def test_nothing_of_the_guard_is_left_for_the_next_job(world, queue):
	target, other = make_queue(), make_queue()
	handler = {"handler_method": f"{GUARDED}.write"}
	guarded_type = make_job_type(category="Planning", **handler).name
	free_type = make_job_type(**handler).name
	jobs = [
		submit(guarded_type, {"way": "save", "name": target}, world.a, job_queue=queue).name,
		submit(free_type, {"way": "save", "name": other}, world.a, job_queue=queue).name,
	]
	frappe.db.commit()
	drain.drain([queue])
	assert [stored_status(job) for job in jobs] == [states.DEAD_LETTER, states.COMPLETED]
	assert (stored(target), stored(other)) == ([(target, None)], [(other, "written")])
	assert "sql" not in vars(frappe.db)
	assert type(frappe.db.after_commit).__name__ == "CallbackManager"


def test_a_type_can_list_only_doctypes_that_exist(world):
	with pytest.raises(InvalidJobError, match="No Such Thing"):
		make_job_type(category="Planning", writable_doctypes="User\nNo Such Thing")


READING = [
	"select 1",
	"(select name from `tabUser`) union (select 'delete from x')",
	"select replace(a, 'x', 'y') from t where b in (select c from d) for update skip locked",
	"with a as (select 1) select * from a",
	"show tables",
	"savepoint a; release savepoint a; rollback to savepoint a",
	"start transaction",
	"commit",
	"select `delete`, t.update from t",
	"select 1 -- delete from x",
	"select 1 /* delete from x */",
]
WRITING = {
	"insert into `tabA` (a, b) select b.x, c.y from `tabB` b, `tabC` c": ["tabA"],
	"insert ignore into tabA values (1)": ["tabA"],
	"insert into `tabA` (a) values (%s) on duplicate key update a = 1": ["tabA"],
	"insert into `tabA` (a) values (%(a)s) on conflict (a) do update set b = 1": ["tabA"],
	"replace into `tabA` values (1)": ["tabA"],
	"UpDaTe\n`tabA`\nset a = ';'": ["tabA"],
	"update `tabA` a join `tabB` b on a.x = b.y and f(a.x, b.z), `tabC` set a.x = 1": [
		"tabA",
		"tabB",
		"tabC",
	],
	"update (select 1) a, `tabA` set b = 1": ["tabA"],
	"delete from `tabA` where name in (select x from `tabB`)": ["tabA"],
	"delete a, b from `tabA` a left join `tabB` b using (name, x) where 1": ["tabA", "tabB"],
	"delete from a using `tabA` a join `tabB` b": ["a", "tabA", "tabB"],
	"with a as (delete from `tabA` returning *) select * from a": ["tabA"],
	"explain analyze update `tabA` set a = 1": ["tabA"],
	"select 1; ; delete from `tabA`": ["tabA"],
	"select 'it''s'; delete from `tabA`": ["tabA"],
}
UNCLEAR = [
	"truncate table `tabA`",
	"truncate `tabA`",
	"create table a (b int)",
	"create or replace table a (b int)",
	"alter table `tabA` add a int",
	"drop table `tabA`",
	"rename table `tabA` to `tabB`",
	"select * into a from b",
	"select a into outfile '/tmp/a' from b",
	"with a as (insert into b values (1) returning *) select * into c from a",
	"update other.`tabA` set a = 1",
	"call a()",
	"do sleep(1)",
	"load data infile 'a' into table b",
	"copy a from '/tmp/a'",
	"merge into a using b on c when matched then delete",
	"set statement max_statement_time = 1 for delete from a",
	"set global a = 1",
	"begin not atomic delete from a; end",
	"prepare a from 'delete from b'",
	"execute a",
	"lock tables a write",
	"grant all on a to b",
	"/*! delete from a */",
	"select 1 /*M! into outfile 'a' */",
	"select 1 /* /* */ delete from a */",
	"select 'unclosed",
	"delete",
	"nonsense",
]


@pytest.mark.parametrize("database", ["mariadb", "postgres"])
@pytest.mark.parametrize("query", READING)
def test_what_reads_is_let_through(query, database):
	assert writes_of(query, database) == ()


@pytest.mark.parametrize("database", ["mariadb", "postgres"])
@pytest.mark.parametrize("query", WRITING)
def test_what_is_written_is_found_in_every_spelling(query, database):
	assert [write.table for write in writes_of(query, database)] == WRITING[query]


@pytest.mark.parametrize("database", ["mariadb", "postgres"])
@pytest.mark.parametrize("query", UNCLEAR)
def test_what_is_not_understood_is_not_let_through(query, database):
	with pytest.raises(NotUnderstood):
		writes_of(query, database)


@pytest.mark.parametrize(
	("query", "database"),
	[
		('update "tabA" set a = 1', "postgres"),
		("select 1 # 1; delete from `tabA`", "postgres"),
		("select e'\\'; select'; delete from `tabA`", "postgres"),
		("select '\\'; delete from `tabA`", "postgres"),
		("select 1--1; delete from `tabA`", "mariadb"),
		('select "\\"; select"; delete from `tabA`', "mariadb"),
		("select '\\'; select'; delete from `tabA`", "mariadb"),
	],
)
def test_quotes_and_comments_hide_nothing(query, database):
	assert [write.table for write in writes_of(query, database)] == ["tabA"]


@pytest.mark.parametrize(
	("query", "database"),
	[
		("select 1 # ; delete from a", "mariadb"),
		('select "delete from a; delete from b"', "mariadb"),
		("select 1 --delete from a", "postgres"),
		("select data #>> '{a}' from \"tabA\"", "postgres"),
	],
)
def test_each_database_has_comments_and_quotes_of_its_own(query, database):
	assert writes_of(query, database) == ()
