"""What workers ask again and again costs what it returns, however many jobs wait, and for whatever."""

import re
from datetime import datetime

import frappe
import pytest

from dartwing_jobs.dartwing_jobs.doctype.background_job.background_job import INDEXES
from dartwing_jobs.engine import claim, dependents, order, promote, retention, statements, sweep
from dartwing_jobs.engine.limits import holds

TABLE = "`tabBackground Job`"
QUEUE, PARENT = "q:crowded", "JOB-PARENT"
CHILDLESS = frappe._dict(name="JOB-CHILDLESS")
WAITING, HELD, ENDED = 100_000, 50_000, 50_000
HOLDER = "paused type|held"
NOW = "2026-06-01 00:00:00"
NORMAL = order.band(order.RANKS["Normal"])[0]
# of those that wait, one in ten is due; a few of the others fell due, wait for a parent, run, have ended
FILL = f"""insert into {TABLE} (name, creation, modified, job_queue, organization, job_type, status, priority,
	line, claim_key, run_at, lease_token, lease_expires_at, depends_on)
	select concat('JOB-', seq), '{NOW}', '{NOW}', '{QUEUE}', concat('org-', mod(seq, 7)), 'crowded',
		case when mod(seq, 10) = 0 then 'Queued' when mod(seq, 999) = 0 then 'Running' when mod(seq, 998) = 0
			then 'Completed' else 'Pending' end, 'Normal',
		case when mod(seq, 10) = 0 then '{QUEUE}' end,
		case when mod(seq, 10) = 0 then {NORMAL} + seq else 0 end,
		case when mod(seq, 10) = 0 or mod(seq, 997) = 0 or mod(seq, 998) = 0 or mod(seq, 999) = 0 then null
			when mod(seq, 996) = 0 then timestamp '{NOW}' else timestamp '2099-01-01 00:00:00' end,
		case when mod(seq, 999) = 0 then 'held' end,
		case when mod(seq, 1998) = 0 then timestamp '{NOW}'
			when mod(seq, 999) = 0 then timestamp '2099-01-01 00:00:00' end,
		case when mod(seq, 997) = 0 then '{PARENT}' end
	from numbers_to_{WAITING}"""
# paused: at the head of the line, but not to be claimed
HOLD = f"""insert into {TABLE} (name, creation, modified, job_queue, organization, job_type, status, priority,
	claim_key, held_by, held_key) select concat('HELD-', seq), '2026-01-01', '2026-01-01', '{QUEUE}', 'org-1',
	'held', 'Queued', 'Normal', 0, '{HOLDER}', seq from numbers_to_{HELD}"""
# history: children that ended, each with a parent of its own; a newcomer to the line has some of it, too
END = f"""insert into {TABLE} (name, creation, modified, job_queue, organization, job_type, status, priority,
	claim_key, depends_on) select concat('ENDED-', seq), '2026-01-01', '2026-01-01', '{QUEUE}',
	case when mod(seq, 5) = 0 then 'newcomer' else 'org-1' end,
	'ended', 'Completed', 'Normal', 0, concat('JOB-OLD-', seq) from numbers_to_{ENDED}"""
SOURCES = {"mariadb": "seq_1_to_{}", "postgres": "generate_series(1, {}) as numbers(seq)"}
# a table of this connection alone, with the same name and indexes, hides the real one until it is dropped
HIDE = {
	"mariadb": [
		f"create temporary table crowd like {TABLE}",
		f"alter table crowd rename to {TABLE}",
	],
	"postgres": [
		f"create temporary table {TABLE} (like {TABLE} including defaults, primary key (name))",
		*(f"create index {name} on {TABLE} ({', '.join(INDEXES[name])})" for name in INDEXES),
	],
}
SHOW = {"mariadb": f"drop temporary table {TABLE}", "postgres": 'drop table pg_temp."tabBackground Job"'}

MOMENT, LATER = datetime.fromisoformat(NOW), datetime(2099, 1, 1)


def old_jobs(job_type: str) -> None:
	statements.fetch(str(retention.expired(job_type, "Completed", LATER)))


# what a worker or a submitter asks, and the indexes that it may be answered from
QUESTIONS = {
	"claim": (lambda: claim.Turns([QUEUE]).take_next(), {"idx_line"}),
	"whose turn": (lambda: claim.Turns([QUEUE])._lowest_first(), {"idx_line"}),
	"is waiting": (lambda: claim.is_waiting([QUEUE]), {"idx_line"}),
	"place in line": (lambda: order.Places(QUEUE).next("org-3", "Normal"), {"idx_line", "idx_fair_share"}),
	"newcomer": (lambda: order.Places(QUEUE).next("newcomer", "High"), {"idx_line", "idx_fair_share"}),
	"next due": (lambda: promote.earliest_due([QUEUE]), {"idx_due"}),
	"due": (lambda: promote._due(QUEUE, datetime(2020, 1, 1), MOMENT), {"idx_due", "idx_trouble"}),
	"expired leases": (sweep.expired_leases, {"idx_lease", "idx_trouble"}),
	"next duty": (lambda: sweep.next_duty([QUEUE]), {"idx_lease", "idx_due", "idx_trouble"}),
	"children": (lambda: dependents.parent_ended(frappe._dict(name=PARENT), "Completed"), {"idx_depends_on"}),
	"children left behind": (dependents.left_behind, {"idx_next_retry", "PRIMARY"}),
	"old jobs": (lambda: old_jobs("crowded"), {"idx_job_type_status"}),
	"what holds somebody": (lambda: list(holds._keys(QUEUE)), {"idx_held"}),
	"whom to put back": (lambda: holds._put_back(HOLDER, QUEUE, 50), {"idx_held", "idx_trouble"}),
}
# the same, where the answer is: nothing
IN_VAIN = {
	"claim": (lambda: claim.Turns(["q:empty"]).take_next(), {"idx_line"}),
	"due": (
		lambda: promote._due(QUEUE, datetime(2019, 1, 1), datetime(2020, 1, 1)),
		{"idx_due", "idx_trouble"},
	),
	"children": (lambda: dependents.parent_ended(CHILDLESS, "Completed"), {"idx_depends_on"}),
	"whom to put back": (lambda: holds._put_back("nobody", QUEUE, 50), {"idx_held", "idx_trouble"}),
	"old jobs": (lambda: old_jobs("held"), {"idx_job_type_status"}),
}


@pytest.fixture(scope="module")
def crowd(site):
	database = frappe.db.db_type
	for statement in (*HIDE[database], FILL, HOLD, END):
		source = re.sub(r"numbers_to_(\d+)", lambda found: SOURCES[database].format(found[1]), statement)
		statements.execute(source)
	if database == "postgres":
		# of every row: plans from a random sample would differ from run to run
		statements.execute("set default_statistics_target = 10000")
		statements.execute(f"analyze {TABLE}")
		statements.execute("reset default_statistics_target")
	frappe.db.commit()
	yield
	frappe.db.rollback()
	statements.execute(SHOW[database])
	frappe.db.commit()


@pytest.fixture
def asked(monkeypatch, crowd):
	"""Gives the questions about jobs that some code sends to the database, as they are sent."""
	real_send, sent = statements._send, []

	def send(statement: str, values: tuple | list):
		if statement.lower().startswith("select") and "tabBackground Job" in statement:
			sent.append((statement, values))
		return real_send(statement, values)

	def asking(question) -> list[tuple[str, tuple]]:
		with monkeypatch.context() as patched:
			patched.setattr(statements, "_send", send)
			question()
		frappe.db.rollback()
		return sent

	return asking


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_is_answered_from_its_index(asked, name):
	question, indexes = QUESTIONS[name]
	questions = asked(question)
	assert any(found(statement) for statement in questions)
	for statement in questions:
		check(statement, indexes, rows=len(found(statement)))


@pytest.mark.parametrize("name", IN_VAIN)
def test_asking_in_vain_costs_next_to_nothing(asked, name):
	question, indexes = IN_VAIN[name]
	questions = asked(question)
	assert len(questions) == 1
	for statement in questions:
		assert found(statement) == []
		check(statement, indexes, rows=0)


def found(statement: tuple) -> list:
	"""Rows that say something: who asks for a value always gets a row."""
	return [row for row in statements.fetch(*statement) if any(row.values())]


def check(statement: tuple, indexes: set[str], rows: int) -> None:
	if frappe.db.db_type == "mariadb":
		check_plan_of_mariadb(*statement, indexes)
		assert reads_of(*statement) <= 10 * rows + 10
	else:
		check_plan_of_postgres(*statement, indexes)


def check_plan_of_mariadb(statement: str, values, indexes: set[str]) -> None:
	for step in statements.fetch(f"explain {statement}", values):
		# the ends of an index are read while the plan is made
		is_done = "Select tables optimized away" in (step.Extra or "") or step.table is None
		assert is_done or step.key in indexes
		assert "filesort" not in (step.Extra or "") and "temporary" not in (step.Extra or "")


def check_plan_of_postgres(statement: str, values, indexes: set[str]) -> None:
	plan = "\n".join(row["QUERY PLAN"] for row in statements.fetch(f"explain {statement}", values))
	assert set(re.findall(r"using (\w+)", plan)) <= indexes and "using" in plan
	assert "Sort" not in plan and "Seq Scan" not in plan and "Bitmap" not in plan


def reads_of(statement: str, values) -> int:
	"""How many rows the server looks at for an answer; its answer about that costs some, too."""
	before = _rows_read()
	between = _rows_read()
	statements.fetch(statement, values)
	return _rows_read() - between - (between - before)


def _rows_read() -> int:
	return sum(int(row.Value) for row in statements.fetch("show session status like 'Handler_read%%'", ()))


def test_a_question_without_an_index_is_noticed(crowd):
	"""The checks can fail: this is how a claim would look that sorts by age."""
	statement = (
		f"select name from {TABLE} where job_queue = %s and status = 'Queued' order by created_at limit 1"
	)
	with pytest.raises(AssertionError):
		check((statement, (QUEUE,)), {"idx_line", "idx_due", "idx_fair_share"}, rows=1)
	if frappe.db.db_type == "mariadb":
		assert reads_of(statement, (QUEUE,)) > HELD
