"""The end of a job never depends on the start of another one, which is claimed in the same commit."""

import frappe
import pytest

from dartwing_jobs.engine import statements
from dartwing_jobs.engine.drain import Drain
from dartwing_jobs.tests import effects, workers
from dartwing_jobs.tests.world import stored_status

HANDLERS = "dartwing_jobs.tests.fault_handlers"


@pytest.fixture(scope="module", autouse=True)
def table_of_effects(site):
	effects.create_table()
	yield
	effects.drop_table()


@pytest.fixture
def queue(site):
	queue = workers.make_queue("long")
	yield queue
	workers.retire_queue(queue)


def conflict() -> None:
	raise frappe.QueryDeadlockError("Deadlock found when trying to get lock")


def mistake() -> None:
	raise KeyError("a mistake in the engine")


def refusal() -> None:
	statements.execute("update `tabBackground Job` set no_such_column = 1 where name = 'none'")


FAILURES = [conflict, mistake, refusal]


def run_with(failure, world, queue: str, handler: str) -> str:
	"""A job that was run by a drain whose claim of the next one failed."""
	job_name = workers.submit(world.a, queue, f"{HANDLERS}.{handler}", max_retries=0)
	drain = Drain(None, None, [queue])
	drain.look()
	batch = drain.take_apart()
	drain.turns.take = lambda _most: failure()
	drain.run_batch(batch)
	with pytest.raises(Exception):  # noqa: B017 each failure has a class of its own
		drain.end_and_take(batch)
	frappe.db.rollback()
	return job_name


@pytest.mark.parametrize("failure", FAILURES)
def test_a_job_that_has_finished_stays_finished_when_the_next_cannot_be_claimed(world, queue, failure):
	job_name = run_with(failure, world, queue, "work")
	assert stored_status(job_name) == "Completed"
	assert len(effects.left_by(job_name)) == 1


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_is_recorded_as_it_was_when_the_next_cannot_be_claimed(world, queue, failure):
	job_name = run_with(failure, world, queue, "fail_at_first")
	job = frappe.db.get_value("Background Job", job_name, ["status", "error_message"], as_dict=True)
	assert (job.status, job.error_message) == ("Dead Letter", "not yet")
	assert not effects.left_by(job_name)
