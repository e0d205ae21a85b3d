"""A worker that has lost its job and does not know it yet: its handler's own commits keep nothing."""

import frappe
import pytest

from dartwing_jobs import submit
from dartwing_jobs.engine import attempt as attempts
from dartwing_jobs.engine import database, statements, sweep
from dartwing_jobs.engine.handling import commit_guard
from dartwing_jobs.errors import LeaseLost
from dartwing_jobs.testing import fall_due, lose_worker, run_job, start_job
from dartwing_jobs.tests import committing
from dartwing_jobs.tests.world import make_job_type, make_queue, stored_status

HERE = "dartwing_jobs.tests.committing"
ONE_SECOND = {"backoff_base_seconds": 1, "backoff_cap_seconds": 1}


@pytest.fixture(autouse=True)
def nothing_written():
	committing.written.clear()
	committing.raised.clear()


def ways() -> list[str]:
	return [*committing.WAYS, *(committing.WAYS_OF_POSTGRES if frappe.db.db_type == "postgres" else ())]


def make_job(world, handler: str, parameters: dict | None = None, **fields) -> str:
	kind = make_job_type(handler_method=f"{HERE}.{handler}", **ONE_SECOND, **fields).name
	job = submit(kind, parameters, world.a, job_queue=make_queue()).name
	frappe.db.commit()
	return job


def lose(job: str) -> None:
	lose_worker(job)
	assert sweep.reap_expired() >= 1
	fall_due(job)


def kept() -> list[bool]:
	frappe.db.rollback()
	return [bool(frappe.db.exists("Job Queue", name)) for name in committing.written]


def test_the_commit_of_a_stale_owner_keeps_nothing(world):
	for way in ways():
		committing.written.clear()
		job = make_job(world, "write_and_commit", {"way": way})
		late = start_job(job)
		lose(job)
		assert run_job(job).status == "Completed"
		attempts.run(late)
		assert (way, kept()) == (way, [True, False])
		assert stored_status(job) == "Completed"


def test_a_handler_that_hides_the_error_keeps_nothing_either(world):
	for way in ways():
		committing.written.clear()
		committing.raised.clear()
		job = make_job(world, "write_and_hide_it", {"way": way})
		late = start_job(job)
		lose(job)
		attempts.run(late)
		assert (way, kept()) == (way, [False] * 3)
		assert [type(error) for error in committing.raised] == [LeaseLost] * 3


def test_the_commit_of_the_owner_keeps_what_it_wrote(world):
	for way in ways():
		committing.written.clear()
		assert run_job(make_job(world, "write_and_commit", {"way": way})).status == "Completed"
		assert (way, kept()) == (way, [True])


def test_who_comes_later_cannot_take_the_job_in_the_middle_of_a_commit(world):
	"""The job's row is held from the look at its lease to the commit."""
	job = make_job(world, "write_and_commit", {"way": "commit"})
	seen = []

	def try_to_take() -> None:
		with database.beside():
			seen.append(statements.fetch(LOCKED, (job,)))
			frappe.db.rollback()

	started = start_job(job)
	frappe.db.before_commit.add(try_to_take)
	attempts.run(started)
	assert seen == [[]]
	assert stored_status(job) == "Completed"


LOCKED = "select name from `tabBackground Job` where name = %s for update skip locked"


@pytest.mark.parametrize(
	("query", "answer"),
	[
		("commit", True),
		("COMMIT AND CHAIN", True),
		("/*! commit */", True),
		("/*M! commit */", True),
		("begin not atomic commit; end", True),
		(r"select 'a\'; commit; --'", True),
		("select $$'$$; commit; select $$'$$", True),
		("select 5 --1; commit", True),
		("select 1 # 2; commit", True),
		("end", True),
		("select 1; END", True),
		("update t set a = case when b then 1 else 2 end", False),
		("select 'it''s time to commit'", False),
		('select "commit", `commit`', False),
		("select 1 -- commit\n", False),
		("select committed from t", False),
	],
)
def test_which_statements_commit(query, answer):
	assert commit_guard.commits(query) is answer


def test_the_word_commit_in_a_text_holds_nothing(world, monkeypatch):
	locks = []
	real = statements.fetch
	monkeypatch.setattr(statements, "fetch", lambda text, *given: (locks.append(text), real(text, *given))[1])
	job = make_job(world, "read_about_commits")
	assert run_job(job).status == "Completed"
	assert [text for text in locks if "lease_token = %s for update" in text] == []


def test_a_checkpoint_asks_once(world, monkeypatch):
	locks = []
	real = statements.fetch
	monkeypatch.setattr(statements, "fetch", lambda text, *given: (locks.append(text), real(text, *given))[1])
	job = make_job(world, "commit_afterwards")
	assert run_job(job).status == "Completed"
	assert kept() == [True]
	# the handler's own late commit asks again where Frappe sends it as a statement
	assert len([text for text in locks if "lease_token = %s for update" in text]) <= 2


def test_nothing_is_left_of_the_guard(world):
	run_job(make_job(world, "write_and_commit", {"way": "commit"}))
	assert not {"sql", "commit"} & vars(frappe.db).keys()


def test_a_restricted_handler_is_guarded_too(world):
	handler = {"category": "Planning", "writable_doctypes": "Job Queue"}
	job = make_job(world, "write_and_commit", {"way": "commit"}, **handler)
	late = start_job(job)
	lose(job)
	attempts.run(late)
	assert kept() == [False]
