"""Short jobs are claimed together and recorded together: what one of them does never harms its neighbours."""

import os
import signal
import uuid

import frappe
import pytest

from dartwing_jobs.engine import attempt as attempts
from dartwing_jobs.engine import claim, control, database, pace, sweep
from dartwing_jobs.engine.drain import Drain
from dartwing_jobs.engine.submit import submit, submit_many
from dartwing_jobs.engine.watchdog import Watchdog
from dartwing_jobs.testing import fall_due, lose_worker, run_all_due
from dartwing_jobs.tests import batching, effects
from dartwing_jobs.tests.batching import RQ_QUEUE, USES, said_in
from dartwing_jobs.tests.processes import in_other_processes
from dartwing_jobs.tests.workers import make_queue, retire_queue, set_times, wait_for, wait_until
from dartwing_jobs.tests.world import make_job_type, stored_status

ACT = "dartwing_jobs.tests.batching.act"
COUNT = 6
STORED = ("status", "attempt", "retry_count", "line", "lease_token", "claim_alone")
# long enough to be seen from here
LONG = 1.5


@pytest.fixture(scope="module", autouse=True)
def short_leases(site):
	effects.create_table()
	before = set_times({"lease_seconds": batching.LEASE_SECONDS})
	yield
	set_times(before)
	effects.drop_table()


@pytest.fixture
def queue(site):
	queue = make_queue(RQ_QUEUE)
	yield queue
	retire_queue(queue)


@pytest.fixture
def file(tmp_path):
	return tmp_path / "said"


@pytest.fixture
def batch(world, queue, file):
	"""Submits jobs that are claimed together; each says that it runs, and does what it is asked to."""
	job_type = make_job_type(handler_method=ACT, backoff_base_seconds=60).name

	def submit_all(*orders: dict, **options) -> list[str]:
		given = [{"file": str(file), "number": number, **one} for number, one in enumerate(orders)]
		names = submit_many(job_type, given, world.a, job_queue=queue, if_duplicate="allow", **options)
		frappe.db.commit()
		return names

	submit_all.job_type = job_type
	return submit_all


def stored(name: str) -> frappe._dict:
	frappe.db.rollback()
	return frappe.db.get_value("Background Job", name, STORED, as_dict=True)


def orders(place: int, order: dict, count: int = COUNT) -> list[dict]:
	"""Short jobs, but for one of them."""
	return [order if number == place else {} for number in range(count)]


def events_of(name: str) -> list[str]:
	rows = frappe.get_all(
		"Job Execution Log", {"background_job": name}, ["event"], order_by="move_number, timestamp, name"
	)
	return [row.event for row in rows]


STORY = ["job.created", "job.enqueued", "job.started", "job.succeeded"]


def test_each_has_its_own_true_story(batch, queue, file):
	names = batch(*[{"sleep": 0.002, "result": {"number": number}} for number in range(COUNT)])
	with batching.drain(queue, batch.job_type) as drain:
		drain.wait()
	frappe.db.rollback()
	ended = None
	for number, name in enumerate(names):
		job = frappe.get_doc("Background Job", name)
		(run,) = frappe.get_all("Job Run", {"background_job": name}, ["*"])
		assert (job.status, job.attempt, job.moves, job.progress) == ("Completed", 1, 3, 100)
		assert frappe.parse_json(job.output) == frappe.parse_json(run.output) == {"number": number}
		assert (run.status, run.attempt) == ("Completed", 1)
		assert job.started_at == run.started_at
		assert job.completed_at == run.finished_at
		assert (
			0.002
			<= run.duration_seconds
			== pytest.approx((run.finished_at - run.started_at).total_seconds(), abs=0.00001)
		)
		assert ended is None or ended <= job.started_at, "they run one after the other"
		assert job.lease_token is None
		assert events_of(name) == STORY
		ended = job.completed_at


@pytest.mark.parametrize("how", ["sleep", "in_c"])
@pytest.mark.parametrize("place", [0, 2, COUNT - 1])
def test_a_long_one_keeps_no_others_waiting(batch, queue, place, how):
	names = batch(*orders(place, {how: LONG}))
	with batching.drain(queue, batch.job_type) as drain:
		wait_for(names[place], "Running", 10)
		wait_until(lambda: all(stored(name).status == "Completed" for name in names[:place]), 0.5, every=0.01)
		for name in names[place + 1 :]:
			wait_until(lambda name=name: stored(name).line == queue, 0.5, every=0.01)
			assert (stored(name).status, stored(name).attempt, stored(name).lease_token) == (
				"Queued",
				0,
				None,
			)
		assert stored(names[place]).status == "Running", "all this was seen while it ran"
		assert frappe.db.count("Job Run", {"background_job": names[place], "status": "Running"}) == 1
		drain.wait()
	for name in names:
		assert (stored(name).status, stored(name).attempt) == ("Completed", 1)
		assert frappe.db.count("Job Run", {"background_job": name}) == 1
		assert events_of(name) == STORY, "each end is recorded once"


@pytest.mark.parametrize("place", [0, 2, COUNT - 1])
def test_when_a_drain_is_killed_only_the_job_that_ran_pays(batch, queue, file, place):
	names = batch(*orders(place, {"kill": 1}))
	with batching.drain(queue, batch.job_type) as drain:
		drain.wait()
		wait_until(lambda: stored(names[place]).retry_count == 1, 10, sweeping=False)
	for number, name in enumerate(names):
		if number != place:
			wait_until(lambda name=name: stored(name).lease_token is None, 10, sweeping=False)
			expected = ("Completed", 1, 0) if number < place else ("Queued", 0, 0)
			assert (stored(name).status, stored(name).attempt, stored(name).retry_count) == expected
	assert len(said_in(file)) == place + 1, "what has ended is not run again"
	run_all_due(queue)
	assert [stored(name).status for number, name in enumerate(names) if number != place] == ["Completed"] * 5


def test_one_that_kills_drain_and_watchdog_takes_its_neighbours_along_once(batch, queue, file):
	place = 3
	names = batch(*orders(place, {"kill": 9, "with_watchdog": True}), max_retries=1)
	for _time in range(6):
		with batching.drain(queue, batch.job_type) as drain:
			drain.wait()
		lose_all(names)
		fall_due(names[place])
	assert stored(names[place]).status == "Dead Letter"
	runs_of_killer = [one for one in said_in(file) if one["job"] == names[place]]
	assert len(runs_of_killer) == 3, "max_retries + 2"
	for number, name in enumerate(names):
		if number != place:
			assert (stored(name).status, stored(name).retry_count) == ("Completed", 0)
			assert len([one for one in said_in(file) if one["job"] == name]) <= 2


def lose_all(names: list[str]) -> None:
	"""Lets the time pass after which their workers have lost them."""
	for name in names:
		lose_worker(name)
	sweep.reap_expired()


def test_what_may_have_begun_is_claimed_alone(batch, queue):
	names = batch(*orders(0, {"kill": 1, "with_watchdog": True}))
	with batching.drain(queue, batch.job_type) as drain:
		drain.wait()
	assert all(stored(name).lease_token for name in names)
	lose_all(names)
	assert [(stored(name).claim_alone, stored(name).attempt) for name in names] == [(1, 0)] * COUNT
	run_all_due(queue)
	assert [(stored(name).status, stored(name).claim_alone) for name in names] == [("Completed", 0)] * COUNT


def test_what_a_handler_wrote_is_committed_with_its_end_at_once(batch, queue):
	names = batch({}, {"leave": 1}, {"leave": 1, "sleep": LONG}, {})
	with batching.drain(queue, batch.job_type) as drain:
		wait_for(names[1], "Completed", 10)
		assert effects.left_by(names[1]) == [f"{names[1]} 1"]
		wait_for(names[2], "Running", 10)
		assert not effects.left_by(names[2])
		drain.wait()
	assert [stored(name).status for name in names] == ["Completed"] * 4
	assert effects.left_by(names[2]) == [f"{names[2]} 1"]


def test_one_that_lost_its_job_keeps_nothing_and_its_neighbours_keep_all(batch, queue):
	"""The cancel comes while it runs, before people see it run."""
	names = batch(*[{"leave": 1}] * 3)
	job = names[1]
	frappe.db.set_value("Background Job", job, "input_parameters", _with_cancel(job))
	frappe.db.commit()
	with batching.drain(queue, batch.job_type) as drain:
		drain.wait()
	assert [stored(name).status for name in names] == ["Completed", "Canceled", "Completed"]
	assert [len(effects.left_by(name)) for name in names] == [1, 0, 1]
	assert events_of(job) == ["job.created", "job.enqueued", "job.canceled"]


@pytest.mark.parametrize("order", [{}, {"leave": 1}], ids=["wrote nothing", "wrote"])
def test_a_child_that_comes_while_its_parent_runs_is_released(batch, queue, order):
	"""When they were claimed, the parent had none."""
	child = str(uuid.uuid4())
	names = batch({}, {**order, "child": child}, {})
	with batching.drain(queue, batch.job_type) as drain:
		drain.wait()
	assert [stored(name).status for name in names] == ["Completed"] * 3
	assert frappe.db.get_value("Background Job", {"job_id": child}, "status") == "Queued"


def _with_cancel(job: str) -> str:
	given = frappe.parse_json(frappe.db.get_value("Background Job", job, "input_parameters"))
	return frappe.as_json({**given, "cancel": job})


def test_one_that_is_canceled_before_its_turn_is_not_run(batch, queue, file):
	names = batch(*[{"sleep": 0.02}] * COUNT)
	first = names[0]
	given = frappe.parse_json(frappe.db.get_value("Background Job", first, "input_parameters"))
	order = frappe.as_json({**given, "cancel": names[-1]})
	frappe.db.set_value("Background Job", first, "input_parameters", order)
	frappe.db.commit()
	with batching.drain(queue, batch.job_type) as drain:
		drain.wait()
	assert stored(names[-1]).status == "Canceled"
	assert names[-1] not in {one["job"] for one in said_in(file)}
	assert [stored(name).status for name in names[:-1]] == ["Completed"] * (COUNT - 1)


def leave_the_rest(queue: str, job_type: str, canceled: str) -> None:
	"""A drain that knows of a cancel in its batch gives back what it has not begun."""
	one = watched_drain(queue)
	know_by_short_runs(one, job_type)
	batch = one.take_apart()
	attempts.run(batch.begin_next())
	with database.beside():
		control.cancel(canceled)
		frappe.db.commit()
	batch.sure_at = 0  # as after some milliseconds
	attempts.run(batch.begin_next())
	batch.give_back_rest()
	one.watchdog.stop()


def test_what_was_canceled_is_not_given_back(batch, queue):
	names = batch(*[{"leave": 1}] * 2, {}, {})
	in_other_processes(leave_the_rest, (queue, batch.job_type, names[-1]))
	assert [stored(name).status for name in names] == ["Completed", "Completed", "Queued", "Canceled"]
	assert [stored(name).line for name in names[2:]] == [queue, None]


def test_one_that_ends_its_process_leaves_the_others_as_they_are(batch, queue):
	names = batch(*orders(3, {"exit": 1}), max_retries=1)
	with batching.drain(queue, batch.job_type) as drain:
		drain.wait()
	expected = ["Completed"] * 3 + ["Queued"] * 3
	assert [stored(name).status for name in names] == expected
	assert [stored(name).retry_count for name in names] == [0, 0, 0, 1, 0, 0]
	assert [stored(name).line for name in names[4:]] == [queue] * 2


def test_a_timeout_leaves_the_others_as_they_are(batch, queue):
	names = batch(*orders(2, {"sleep": 30}), timeout_seconds=1)
	with batching.drain(queue, batch.job_type) as drain:
		wait_until(lambda: stored(names[2]).retry_count == 1, 15)
		drain.wait()
	assert [stored(name).status for name in names[:2]] == ["Completed"] * 2
	assert events_of(names[2])[2:] == ["job.started", "job.timed_out", "job.retried"]
	run_all_due(queue)
	assert [stored(name).attempt for name in names] == [1] * COUNT


@pytest.mark.parametrize("how", USES)
def test_whoever_has_to_do_with_the_database_is_recorded_at_once(world, queue, how):
	"""*Wrote*, unless the connection proves otherwise."""
	job_type = make_job_type(handler_method="dartwing_jobs.tests.batching.touch").name
	name = submit(job_type, {"how": how}, world.a, job_queue=queue).name
	frappe.db.commit()
	(waits,) = in_other_processes(completion_waits, (queue,))
	assert waits == (how == "nothing")
	assert stored_status(name) == ("Running" if waits else "Completed")


def watched_drain(queue: str) -> Drain:
	"""In a process of its own."""
	watchdog = Watchdog(RQ_QUEUE)
	database.read_committed()
	watchdog.learn_lease(60)
	one = Drain(RQ_QUEUE, watchdog, [queue])
	one.look()
	one.turns.since_low = 0  # the turn of low priorities is a short one
	return one


def completion_waits(queue: str) -> bool:
	one = watched_drain(queue)
	completion = attempts.run(one.take_apart().begin_next())
	one.watchdog.stop()
	return completion is not None


def failing_claim(queue: str) -> None:
	"""The drain records one that has ended, and cannot claim the next."""
	one = watched_drain(queue)
	batch = one.take_apart()
	one.run_batch(batch)
	assert batch.waiting, "its end is to be recorded with the next claim"
	take, failures = one.turns.take, []

	def fail(most: int) -> list:
		if failures:
			return take(most)
		failures.append(most)
		raise KeyError("a mistake in the engine")

	one.turns.take = fail
	following = one.end_and_take(batch)
	assert following.attempts
	following.record_waiting()
	one.watchdog.stop()


def test_the_end_of_a_job_does_not_depend_on_the_claim_of_the_next(batch, queue):
	first, second = batch({}, {})
	in_other_processes(failing_claim, (queue,))
	assert stored(first).status == "Completed"
	assert stored(second).status in ("Running", "Queued")


def test_a_batch_is_a_fair_share_of_what_waits(batch, queue):
	batch(*[{}] * 10)
	frappe.db.commit()
	for workers, share in ((1, 10), (2, 5), (3, 4), (20, 1)):
		turns = claim.Turns([queue])
		turns.serve([queue], workers)
		assert len(turns.take(pace.MOST)) == share
		frappe.db.rollback()


def die_after_the_claim(queue: str, job_type: str) -> None:
	"""In a process of its own: killed between the commit that claims jobs and the first of them."""
	one = watched_drain(queue)
	know_by_short_runs(one, job_type)
	one.take_apart()
	os.kill(os.getpid(), signal.SIGKILL)


def know_by_short_runs(one: Drain, job_type: str) -> None:
	for _ in range(pace.REMEMBERED):
		one.pace.note(job_type, 0.001)


@pytest.mark.parametrize("count", [1, COUNT])
def test_what_was_claimed_and_not_begun_pays_nothing(batch, queue, count):
	names = batch(*[{}] * count)
	with batching.process(die_after_the_claim, queue, batch.job_type) as drain:
		drain.wait()
		for name in names:
			wait_until(lambda name=name: stored(name).lease_token is None, 10, sweeping=False)
	assert [(stored(name).status, stored(name).attempt) for name in names] == [("Queued", 0)] * count
	run_all_due(queue)
	assert [(stored(name).status, stored(name).attempt) for name in names] == [("Completed", 1)] * count


def take_first(queue: str, job_type: str) -> tuple[int, bool]:
	"""How many a drain claims that knows the type by many short runs, and whether they are started."""
	one = watched_drain(queue)
	know_by_short_runs(one, job_type)
	held = one.take_apart().attempts
	one.watchdog.stop()
	return len(held), held[0].is_started


ALONE = [
	{"completion": "At Once"},
	{"category": "Notification"},
	{"category": "Import/Export"},
	{"max_retries": 0},
	{"isolation": "Process"},
	{"max_running": 50},
]
TOGETHER = [
	{},
	{"category": "Notification", "completion": "Batched"},
	{"max_retries": 0, "completion": "Batched"},
]


@pytest.mark.parametrize("fields", [*ALONE, *TOGETHER], ids=str)
def test_which_types_are_claimed_together(world, queue, fields):
	job_type = make_job_type(handler_method="dartwing_jobs.samples.do_nothing", **fields).name
	options = {"job_queue": queue} | ({"max_retries": 0} if fields.get("max_retries") == 0 else {})
	submit_many(job_type, [{}] * 4, world.a, if_duplicate="allow", **options)
	frappe.db.commit()
	(found,) = in_other_processes(take_first, (queue, job_type))
	assert found == ((1, True) if fields in ALONE else (4, False))


def test_a_type_that_is_not_known_is_claimed_alone_and_then_more_and_more():
	known = pace.Pace()
	assert known.most_of("new") == known.room == 1
	rooms = []
	for _ in range(20):
		known.note("new", 0.0001)
		rooms.append(known.room)
	assert rooms[:4] == [2, 4, 6, 8]
	assert rooms[-1] == pace.MOST


def test_one_slow_run_counts_at_once_and_for_a_while():
	known = pace.Pace()
	for _ in range(100):
		known.note("quick", 0.001)
	assert known.room == pace.MOST
	known.note("quick", 5)
	rooms = []
	for _ in range(pace.LAST + 1):
		rooms.append(known.room)
		known.note("quick", 0.001)
	assert set(rooms[: pace.LAST]) == {1}
	assert known.room > 1


def test_a_type_of_which_every_tenth_run_is_slow_is_never_claimed_in_batches():
	known = pace.Pace()
	for number in range(500):
		known.note("uneven", 5 if number % 10 == 9 else 0.001)
		assert number < 10 or known.room == 1


def test_what_is_claimed_together_takes_no_longer_than_others_may_wait():
	known = pace.Pace()
	for seconds in (0.0001, 0.002, 0.009, 0.019, 0.03, 1, 100):
		for _ in range(pace.REMEMBERED):
			known.note("steady", seconds)
		assert known.room == 1 or known.room * seconds <= pace.TOGETHER
