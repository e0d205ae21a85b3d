"""Nobody waits for another's open transaction, and the turn of the year is no event, however many submit."""

import time
from datetime import datetime
from itertools import count

import frappe
import pytest

from dartwing_jobs import clock, submit, submit_many
from dartwing_jobs.tests.processes import in_other_processes
from dartwing_jobs.tests.world import REPEATABLE, make_job

PROCESSES, JOBS_OF_EACH = 8, 20


def seconds_to_submit(organization: str) -> float:
	"""The best of a few: the machine may be busy with something else."""
	return min(_seconds_of_one(organization) for _ in range(5))


def _seconds_of_one(organization: str) -> float:
	started = time.monotonic()
	submit(REPEATABLE, {"steps": 1}, organization)
	frappe.db.commit()
	return time.monotonic() - started


@pytest.mark.parametrize(
	"open_submit",
	[
		lambda organization: submit(REPEATABLE, None, organization),
		lambda organization: submit_many(REPEATABLE, [{}] * 100, organization),
		lambda organization: make_job(organization),
	],
	ids=["submit", "submit_many", "document"],
)
def test_an_uncommitted_submit_keeps_nobody_waiting(world, open_submit):
	open_submit(world.a)
	(seconds,) = in_other_processes(seconds_to_submit, (world.a,))
	assert seconds < 0.1
	frappe.db.rollback()


def submit_across_the_turn_of_the_year(organization: str) -> list[str]:
	"""With a clock of this process that strikes midnight between two submits."""
	last_of_the_year, first_of_the_next = datetime(2030, 12, 31, 23, 59, 59, 999999), datetime(2031, 1, 1)
	calls = count()
	clock.now = lambda: last_of_the_year if next(calls) < JOBS_OF_EACH // 2 else first_of_the_next
	names = []
	for _ in range(JOBS_OF_EACH):
		names.append(submit(REPEATABLE, None, organization).name)
		frappe.db.commit()
	return names


def test_processes_submit_across_the_turn_of_the_year(world):
	organizations = [(world.a if number % 2 else world.b,) for number in range(PROCESSES)]
	submitted = in_other_processes(submit_across_the_turn_of_the_year, *organizations)
	names = [name for names in submitted for name in names]
	assert len(set(names)) == len(names) == PROCESSES * JOBS_OF_EACH
	assert {name[:9] for names in submitted for name in names} == {"JOB-2030-", "JOB-2031-"}
	assert all(sorted(names, key=lambda name: name[:9]) == names for names in submitted)
	assert frappe.db.count("Background Job", {"name": ["in", names]}) == len(names)
	# the next test's workers are not to be busy with these
	frappe.db.delete("Background Job", {"name": ["in", names]})
	frappe.db.commit()
