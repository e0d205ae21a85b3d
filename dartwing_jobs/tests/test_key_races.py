"""Keys under real concurrency: processes with connections of their own submit the same at the same time."""

import multiprocessing
import time

import frappe
import pytest

from dartwing_jobs import submit, submit_many
from dartwing_jobs.engine import database, statements
from dartwing_jobs.engine.intake import foreign
from dartwing_jobs.errors import DuplicateJob, SubmitConflict
from dartwing_jobs.testing import run_job
from dartwing_jobs.tests.processes import beside, in_other_processes
from dartwing_jobs.tests.world import make_job_type, new_job

PROCESSES, ROUNDS = 8, 50
CONFLICT = "conflict"
# a process that dies must not keep the others waiting for ever
PATIENCE_SECONDS = 60
# how many other connections of the site are in the middle of a statement, which means here: wait for a lock
BUSY = {
	"mariadb": """select count(*) as number from information_schema.processlist
		where command = 'Query' and db = database() and id <> connection_id()""",
	"postgres": """select count(*) as number from pg_stat_activity
		where wait_event_type = 'Lock' and datname = current_database()""",
}
WAIT = {"mariadb": "@@innodb_lock_wait_timeout", "postgres": "current_setting('lock_timeout')"}
# how many wait for one; many once is enough, they take long to start
CONNECTIONS = {"idempotency key": 50, "unique key": 12, "window": 12}
# how a submit says what it must be the only one of
WAYS = {
	"idempotency key": lambda mark: {"idempotency_key": mark},
	"unique key": lambda mark: {"unique_key": mark},
	"window": lambda mark: {"project_id": mark},
}
together = multiprocessing.get_context("fork").Barrier(PROCESSES)


def type_for(way: str) -> str:
	job_type = make_job_type(deduplication_window=300 if way == "window" else 0).name
	frappe.db.commit()
	return job_type


def count(job_type: str) -> int:
	frappe.db.rollback()
	return frappe.db.count("Background Job", {"job_type": job_type})


def submit_again_and_again(job_type: str, organization: str, way: str) -> list[str]:
	"""In each round all processes submit the same at once; what meets another transaction is tried again."""
	return [submit_in_round(job_type, organization, WAYS[way](f"round-{n}")) for n in range(ROUNDS)]


def submit_in_round(job_type: str, organization: str, options: dict) -> str:
	together.wait(PATIENCE_SECONDS)
	return database.own_transaction(submit)(job_type, {"n": 1}, organization, **options).name


@pytest.mark.parametrize("way", WAYS)
def test_of_all_who_submit_the_same_at_once_one_makes_a_job(world, way):
	job_type = type_for(way)
	answers = in_other_processes(submit_again_and_again, *[(job_type, world.b, way)] * PROCESSES)
	rounds = [set(names) for names in zip(*answers, strict=True)]
	assert all(len(names) == 1 for names in rounds)
	assert len(set.union(*rounds)) == ROUNDS == count(job_type)


def submit_batches(job_type: str, organization: str, backwards: bool) -> list[list[str]]:
	numbers = range(60)[:: -1 if backwards else 1]
	names = []
	for n in range(10):
		together.wait(PATIENCE_SECONDS)
		batch = [{"round": n, "number": number} for number in numbers]
		found = database.own_transaction(submit_many)(job_type, batch, organization)
		names.append(found[::-1] if backwards else found)
	return names


def test_batches_that_overlap_make_each_job_once(world):
	job_type = type_for("window")
	answers = in_other_processes(submit_batches, *[(job_type, world.b, n % 2 == 0) for n in range(PROCESSES)])
	assert all(answer == answers[0] for answer in answers)
	assert count(job_type) == 10 * 60


def submit_until_answered(job_type: str, organization: str, options: dict) -> list[str]:
	"""The first answer; after a conflict also the next, to whoever rolls back and tries again, as told."""
	answers = []
	while not answers or answers[-1] == CONFLICT:
		answers.append(submit_or_conflict(job_type, organization, options))
	return answers


def submit_or_conflict(job_type: str, organization: str, options: dict) -> str:
	try:
		name = submit(job_type, {"n": 1}, organization, **options).name
		frappe.db.commit()
		return name
	except SubmitConflict:
		frappe.db.rollback()
		return CONFLICT


def wait_until_busy(number: int) -> None:
	deadline = time.monotonic() + PATIENCE_SECONDS
	while time.monotonic() < deadline:
		if frappe.db.db_type == "postgres":
			statements.fetch("select pg_stat_clear_snapshot()")
		if statements.fetch(BUSY[frappe.db.db_type])[0].number == number:
			return
		time.sleep(0.02)
	raise AssertionError(f"there are not {number} connections that wait")


@pytest.mark.parametrize("way", WAYS)
def test_whoever_waits_for_an_open_submit_gets_its_job_or_a_conflict(world, way, monkeypatch):
	monkeypatch.setattr(foreign, "WAIT_SECONDS", PATIENCE_SECONDS)  # until the last of so many has started
	job_type, options = type_for(way), WAYS[way]("open")
	open_job = submit(job_type, {"n": 1}, world.b, **options).name
	with beside(submit_until_answered, *[(job_type, world.b, options)] * CONNECTIONS[way]) as results:
		wait_until_busy(CONNECTIONS[way])
		frappe.db.commit()
		answers = results.get(PATIENCE_SECONDS)
	assert {answer[-1] for answer in answers} == {open_job}
	assert {name for answer in answers for name in answer} <= {open_job, CONFLICT}
	assert count(job_type) == 1


@pytest.mark.parametrize("way", WAYS)
def test_when_the_open_submit_is_taken_back_one_of_those_who_wait_makes_the_job(world, way, monkeypatch):
	monkeypatch.setattr(foreign, "WAIT_SECONDS", PATIENCE_SECONDS)
	job_type, options = type_for(way), WAYS[way]("taken back")
	taken_back = submit(job_type, {"n": 1}, world.b, **options).name
	with beside(submit_until_answered, *[(job_type, world.b, options)] * PROCESSES) as results:
		wait_until_busy(PROCESSES)
		frappe.db.rollback()
		answers = results.get(PATIENCE_SECONDS)
	assert len({answer[-1] for answer in answers}) == count(job_type) == 1
	assert taken_back not in answers[0]


def work_and_submit(job_type: str, other_type: str, organization: str, options: dict) -> tuple:
	"""Does something else first, and keeps that when the submit has waited in vain."""
	wait = WAIT[frappe.db.db_type]
	before = statements.value(wait)
	own = submit(other_type, None, organization).name
	started = time.monotonic()
	with pytest.raises(SubmitConflict):
		submit(job_type, {"n": 1}, organization, **options)
	seconds = time.monotonic() - started
	is_as_before = statements.value(wait) == before
	frappe.db.commit()
	return own, seconds, is_as_before


@pytest.mark.parametrize("way", WAYS)
def test_nobody_waits_long_and_nobody_loses_other_work(world, way, monkeypatch):
	monkeypatch.setattr(foreign, "WAIT_SECONDS", 1)
	job_type, other_type, options = type_for(way), type_for("other"), WAYS[way]("for long")
	submit(job_type, {"n": 1}, world.b, **options)
	((own, seconds, is_as_before),) = in_other_processes(
		work_and_submit, (job_type, other_type, world.b, options)
	)
	assert 0.5 < seconds < 10 and is_as_before
	frappe.db.rollback()
	assert frappe.db.exists("Background Job", own)


def submit_and_run(job_type: str, organization: str, options: dict) -> tuple:
	started = time.monotonic()
	(name,) = submit_until_answered(job_type, organization, options)
	return name, run_job(name).status, time.monotonic() - started


@pytest.mark.parametrize("way", WAYS)
def test_whoever_was_answered_keeps_nobody_waiting(world, way):
	job_type, options = type_for(way), WAYS[way]("answered")
	(first,) = submit_until_answered(job_type, world.b, options)
	assert submit(job_type, {"n": 1}, world.b, **options).name == first  # and stays open
	((name, status, seconds),) = in_other_processes(submit_and_run, (job_type, world.b, options))
	assert (name, status) == (first, "Completed")
	assert seconds < foreign.WAIT_SECONDS


def begin_as_frappe_does() -> None:
	"""A job that timed out in this process may have left its connection at a worker's level of isolation."""
	if frappe.db.db_type == "mariadb":
		frappe.db.sql("set session transaction isolation level repeatable read")
	frappe.db.commit()


def sees_past_its_snapshot() -> bool:
	"""Whether this server lets a transaction read what was committed after its first read."""
	if frappe.db.db_type == "postgres":
		# Frappe asks for repeatable reads, but gets them in the first transaction of a connection only
		return statements.value("current_setting('transaction_isolation')") == "read committed"
	found = statements.fetch("show variables like 'innodb_snapshot_isolation'")
	return not found or found[0].Value == "OFF"


@pytest.mark.parametrize("way", WAYS)
def test_a_transaction_that_is_older_than_the_job_is_answered_or_told_to_begin_anew(world, way):
	job_type, options = type_for(way), WAYS[way]("older")
	begin_as_frappe_does()
	assert not frappe.db.get_all("Background Job", {"job_type": job_type})  # from here on it sees no more
	((first,),) = in_other_processes(submit_until_answered, (job_type, world.b, options))
	expected = [first] if sees_past_its_snapshot() else [CONFLICT, first]
	assert submit_until_answered(job_type, world.b, options) == expected


def insert_document(job_type: str, organization: str, options: dict) -> str:
	try:
		together.wait(PATIENCE_SECONDS)
		name = new_job(organization, job_type=job_type, **options).insert().name
		frappe.db.commit()
		return name
	except (DuplicateJob, SubmitConflict) as error:
		frappe.db.rollback()
		return type(error).__name__


@pytest.mark.parametrize("way", WAYS)
def test_of_documents_inserted_at_once_one_stays(world, way):
	job_type, options = type_for(way), WAYS[way]("document")
	answers = in_other_processes(insert_document, *[(job_type, world.b, options)] * PROCESSES)
	assert count(job_type) == 1
	assert len([answer for answer in answers if answer.startswith("JOB-")]) == 1
	refused = {answer for answer in answers if not answer.startswith("JOB-")}
	assert refused <= {"DuplicateJob", "SubmitConflict"}
