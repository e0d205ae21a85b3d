"""Names of jobs: no transaction waits for another, none is used twice, the turn of the year is no event."""

import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import datetime
from itertools import pairwise

import frappe
import pytest

from dartwing_jobs import clock, submit
from dartwing_jobs.engine import job_numbers, naming, sweep
from dartwing_jobs.tests.processes import in_other_processes
from dartwing_jobs.tests.world import REPEATABLE, make_job

OTHER_PROCESS = """
import frappe, sys
from dartwing_jobs.tests.world import REPEATABLE, make_job
frappe.init({site!r})
frappe.connect()
names = [make_job({organization!r}).name for _ in range({count})]
frappe.db.commit()
print(" ".join(names))
frappe.destroy()
"""


def submit_elsewhere(organization: str, count: int = 1) -> subprocess.Popen:
	script = OTHER_PROCESS.format(site=frappe.local.site, organization=organization, count=count)
	return subprocess.Popen(
		[sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True
	)


def names_from(process: subprocess.Popen) -> list[str]:
	output, _ = process.communicate(timeout=60)
	assert process.returncode == 0
	return output.split()


def test_names_follow_the_series(world):
	first, second = make_job(world.a).name, make_job(world.a).name
	year = clock.now().year
	assert first.startswith(f"JOB-{year}-")
	assert int(second.rpartition("-")[2]) > int(first.rpartition("-")[2])


def test_an_uncommitted_submit_keeps_nobody_waiting(world):
	mine = make_job(world.a).name
	(theirs,) = names_from(submit_elsewhere(world.a))
	assert theirs != mine
	frappe.db.rollback()
	assert frappe.db.exists("Background Job", theirs)


def test_names_are_drawn_without_waiting(world):
	make_job(world.a)
	started = time.monotonic()
	naming.next_job_name(clock.now())
	assert time.monotonic() - started < 0.1


def test_processes_never_draw_the_same_name(world):
	names = [
		name for process in [submit_elsewhere(world.a, 20) for _ in range(4)] for name in names_from(process)
	]
	assert len(names) == len(set(names)) == 80


def test_a_fork_gives_none_of_the_names_that_its_parent_has_drawn_ahead(site):
	first = naming.next_job_name(clock.now())
	theirs = [name for names in in_other_processes(draw_some, (5,), (5,)) for name in names]
	names = [first, *theirs, *draw_some(5)]
	assert len(set(names)) == len(names) == 16


def draw_some(count: int) -> list[str]:
	return [naming.next_job_name(clock.now()) for _ in range(count)]


def test_threads_never_get_the_same_name(site):
	"""They share what their process has drawn ahead."""
	draw_some(1 + len(job_numbers._drawn_ahead(job_numbers._look())))
	incarnation = job_numbers._look()
	with ThreadPoolExecutor(4) as pool:
		taking = [
			pool.submit(copy_context().run, job_numbers._take_one, incarnation)
			for _ in range(job_numbers.BLOCK - 1)
		]
	assert len({one.result() for one in taking}) == len(taking)


def test_names_are_not_taken_from_others_who_draw_in_between(site, monkeypatch):
	"""Then the numbers do not follow each other."""
	(asked,) = {job_numbers.NEXT[frappe.db.db_type]}
	with_gaps = asked.replace(" as number", " * 2 as number", 1)
	monkeypatch.setitem(job_numbers.NEXT, frappe.db.db_type, with_gaps)
	numbers = [number_of(name) for name in naming.next_job_names(5, clock.now())]
	assert [later - earlier for earlier, later in pairwise(numbers)] == [2, 2, 2, 2]


@pytest.mark.parametrize("year", [2026, 2027])
def test_the_turn_of_the_year_is_no_event(world, monkeypatch, year):
	monkeypatch.setattr(clock, "now", lambda: datetime(year, 1, 1))
	assert make_job(world.a).name.startswith(f"JOB-{year}-")


def number_of(name: str) -> int:
	return int(name.rpartition("-")[2])


def restore_sequence(next_number: int | None) -> None:
	"""What a restore does: drops the sequence, makes another and sets it; or has none to make."""
	frappe.db.commit()
	while (
		str(job_numbers._second()) == job_numbers._incarnation()
	):  # MariaDB tells sequences apart by seconds
		time.sleep(0.05)
	frappe.db.sql_ddl(f"drop sequence if exists {job_numbers.SEQUENCE}")
	if next_number:
		frappe.db.sql_ddl(f"create sequence {job_numbers.SEQUENCE} start with {next_number}")
	frappe.db.commit()


@pytest.fixture
def a_process_that_has_not_looked():
	"""As every process is after a restore, which takes longer than a process goes without a look."""
	job_numbers._looked.clear()


@pytest.mark.parametrize(
	"draw", [lambda: naming.next_job_name(clock.now()), lambda: naming.next_job_names(3, clock.now())[0]]
)
def test_a_restored_sequence_goes_on_behind_all_that_was_given(draw, a_process_that_has_not_looked):
	before = number_of(naming.next_job_name(clock.now()))
	job_numbers.keep()
	given = [number_of(name) for name in naming.next_job_names(50, clock.now())]
	restore_sequence(before + 1)
	job_numbers._looked.clear()
	assert number_of(draw()) > max(given)


@pytest.mark.parametrize(
	"submit_one", [make_job, lambda organization: submit(REPEATABLE, None, organization)]
)
def test_a_submit_after_a_restore_takes_a_new_name(world, a_process_that_has_not_looked, submit_one):
	job_numbers.keep()
	given = number_of(make_job(world.a).name)
	naming.next_job_names(10, clock.now())
	frappe.db.commit()
	restore_sequence(given + 1)
	job_numbers._looked.clear()
	assert number_of(submit_one(world.a).name) > given + 10


def test_a_lost_sequence_is_made_again_behind_all_that_was_given(world, a_process_that_has_not_looked):
	job_numbers.keep()
	given = number_of(naming.next_job_name(clock.now()))
	restore_sequence(None)
	job_numbers._looked.clear()
	assert number_of(make_job(world.a).name) > given
	restore_sequence(None)
	sweep.sweep()
	assert number_of(naming.next_job_name(clock.now())) > given


def test_numbers_that_no_mark_tells_of_are_found_in_names(world):
	given = number_of(make_job(world.a).name)
	frappe.db.commit()
	frappe.db.delete("DefaultValue", {"name": job_numbers.MARK})
	restore_sequence(None)
	job_numbers.keep()
	assert number_of(naming.next_job_name(clock.now())) > given


def test_nothing_is_given_that_was_drawn_from_a_sequence_that_is_gone(world, a_process_that_has_not_looked):
	"""As after a reinstallation that found no trace of earlier names: others are given these numbers now."""
	given = number_of(naming.next_job_name(clock.now()))
	frappe.db.delete("DefaultValue", {"name": job_numbers.MARK})
	restore_sequence(given + 5)
	job_numbers.keep()
	job_numbers._looked.clear()
	assert number_of(naming.next_job_name(clock.now())) >= given + 5
	restore_sequence(given + 1000)
	job_numbers.keep()


def test_the_mark_changes_nothing_while_nothing_was_restored(a_process_that_has_not_looked):
	first = number_of(naming.next_job_name(clock.now()))
	job_numbers.keep()
	job_numbers._looked.clear()
	sweep.sweep()
	assert number_of(naming.next_job_name(clock.now())) == first + 1


def test_a_long_number_is_written_in_full(world):
	restore_sequence(123_456_789_012_345)
	job_numbers.keep()
	assert number_of(make_job(world.a).name) >= 123_456_789_012_345
	assert number_of(naming.next_job_name(clock.now())) > 123_456_789_012_345
