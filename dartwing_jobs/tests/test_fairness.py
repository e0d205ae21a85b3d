"""Whose turn it is: nobody waits for another's backlog, the urgent go first, the patient come to it too."""

import frappe
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from dartwing_jobs.engine import claim, drain, order, statements
from dartwing_jobs.engine.order import OUT_OF_LINE
from dartwing_jobs.engine.submit import submit_many
from dartwing_jobs.tests.world import REPEATABLE, make_organization, make_queue

WORKERS = 2


@pytest.fixture
def queue():
	return make_queue()


class Line:
	"""A queue and its workers, as far as the order of starts goes; nothing of it is ever committed."""

	def __init__(self, queue: str | None = None, workers: int = WORKERS):
		self.queue = queue or frappe.generate_hash(length=8)
		self.workers = [claim.Turns([self.queue]) for _ in range(workers)]
		self.number = self.started = 0

	def put(self, organization: str, priority: str = "Normal") -> str:
		"""A job in line, of which only its place matters."""
		self.number += 1
		job = {"name": f"{self.queue}-{self.number:05d}", "job_queue": self.queue}
		key = order.Places(self.queue).next(organization, priority)
		job |= {"organization": organization, "priority": priority, "status": "Queued", **key}
		statements.insert("Background Job", [job])
		return job["name"]

	def start(self):
		"""What the next worker takes; None when nothing waits."""
		job = self.workers[self.started % len(self.workers)].take_next()
		if job:
			self.started += 1
			statements.update("Background Job", job.name, OUT_OF_LINE)
		return job

	def start_many(self, count: int) -> list:
		return [job for _ in range(count) if (job := self.start())]


@pytest.mark.parametrize("many", [10, 500])
@pytest.mark.parametrize("others", [1, 5, 20])
def test_newcomers_do_not_wait_for_the_backlog_of_another(world, queue, many, others):
	submit_many(REPEATABLE, [{}] * many, world.a, job_queue=queue)
	line = Line(queue)
	line.start_many(WORKERS)
	organizations = [make_organization(f"Newcomer {number}") for number in range(others)]
	late = {
		name
		for organization in organizations
		for name in submit_many(REPEATABLE, [{}], organization, job_queue=queue)
	}
	started = line.start_many(2 * others + 2 * WORKERS)
	assert late <= {job.name for job in started}


@pytest.mark.parametrize("priority", ["High", "Critical"])
@pytest.mark.parametrize("already_started", range(claim.LOW_TURN * WORKERS))
def test_the_urgent_are_among_the_next(priority, already_started):
	"""Whenever it comes: also just before the turn of the lowest priority."""
	line = Line()
	for number in range(already_started + 20):
		line.put("a", "Low" if number % 2 else "Normal")
	line.start_many(already_started)
	urgent = line.put("b", priority)
	assert urgent in [job.name for job in line.start_many(2 * WORKERS)]


def test_a_steady_stream_of_urgent_jobs_does_not_starve_the_others():
	line = Line()
	patient = [line.put("a", "Low"), line.put("a", "Low")]
	started = []
	for _ in range(claim.LOW_TURN * WORKERS * len(patient)):
		line.put("b", "Critical")
		line.put("c", "High")
		started.append(line.start().name)
	assert set(patient) <= set(started)


def test_those_in_the_middle_move_on_between_streams_of_the_most_and_the_least_urgent():
	line = Line()
	middle = [line.put("a", "High"), line.put("a", "Normal")]
	started = []
	for _ in range(claim.ALL_TURNS * WORKERS):
		line.put("b", "Critical")
		line.put("c", "Low")
		started.append(line.start())
	assert set(middle) <= {job.name for job in started}
	assert [job.priority for job in started].count("Low") >= WORKERS


def test_workers_that_leave_after_one_job_do_not_starve_them_either():
	"""Each job in a process of its own: none of them ever comes to its eighth turn, so some begin there."""
	line = Line()
	line.put("a", "Low")
	line.put("b", "Critical")
	drains = [drain.Drain("default", None) for _ in range(50 * claim.ALL_TURNS)]
	turns = {one.turns.low_turns * claim.LOW_TURN + one.turns.since_low for one in drains}
	assert turns == set(range(claim.ALL_TURNS))
	line.workers = [claim.Turns([line.queue], max(turns))]
	assert line.start().priority == "Low"


def test_a_backlog_goes_on_while_others_keep_coming():
	"""Two who always have one job in line take turns with whoever has many, not just with each other."""
	line = Line()
	for _ in range(20):
		line.put("many")
	line.put("b")
	line.put("c")
	started = []
	for _ in range(30):
		job = line.start()
		started.append(job.organization)
		if job.organization != "many":
			line.put(job.organization)
	assert started.count("many") >= 8


# in the order of moments: an organization submits a job, or (None) a worker starts one
moments = some.lists(some.sampled_from(["b", "c", None, None]), max_size=40)


@settings(max_examples=30)
@given(moments=moments, backlog=some.integers(0, 5))
def test_nobody_is_overtaken_more_often_than_they_have_jobs_waiting(moments, backlog):
	"""From a job's submit to its start, each other organization starts at most one more than its own has."""
	line = Line()
	waiting: dict[str, tuple[str, int, dict]] = {}
	for organization in ["a"] * backlog + moments + [None] * (backlog + len(moments)):
		if organization:
			own = 1 + sum(owner == organization for owner, _own, _overtook in waiting.values())
			waiting[line.put(organization)] = organization, own, {}
		elif job := line.start():
			owner, own, overtook = waiting.pop(job.name)
			assert all(count <= own + 1 for other, count in overtook.items() if other != owner)
			for _owner, _own, counts in waiting.values():
				counts[owner] = counts.get(owner, 0) + 1
	assert not waiting
	frappe.db.rollback()
