"""What is promised in seconds, seen from outside while a real worker works. No scheduler, no sweeps."""

import os
import time
from datetime import timedelta

import frappe
import pytest
from frappe.utils.background_jobs import create_job_id, get_queue

from dartwing_jobs import clock, submit, submit_many
from dartwing_jobs.engine import bell, control, drain
from dartwing_jobs.tests.workers import last_words, start_worker, stop_worker
from dartwing_jobs.tests.world import REPEATABLE, make_job_type, make_organization, stored_status

HANDLERS, LIVE = "dartwing_jobs.tests.handlers", "dartwing_jobs.tests.live_handlers"
LEAKS = "dartwing_jobs.tests.leaking"
TIMEOUT_SECONDS, WORKERS = 2, 2


@pytest.fixture(scope="module")
def worker(site):
	get_queue("short").empty()  # messages that other tests left would each take a process first
	yield from _working()


@pytest.fixture
def second_worker(worker):
	yield from _working()


def _working():
	process = start_worker()
	yield process
	stop_worker(process)


@pytest.fixture
def queue(site):
	"""A queue of its own for each test, committed: the worker must see it."""
	name = f"q:test-{frappe.generate_hash(length=8)}"
	frappe.get_doc({"doctype": "Job Queue", "queue_name": name, "rq_queue": "short"}).insert()
	frappe.db.commit()
	return name


def type_of(handler: str, **fields) -> str:
	return make_job_type(handler_method=handler, **fields).name


def until(condition, seconds: float = 30):
	"""Waits until something is so; returns what it is."""
	deadline = time.monotonic() + seconds
	while time.monotonic() < deadline:
		frappe.db.rollback()
		if value := condition():
			return value
		time.sleep(0.02)
	raise AssertionError(f"waited {seconds} seconds in vain; the workers' last words:\n{last_words()}")


def until_ended(*job_names: str) -> None:
	"""Until these have ended well."""
	filters = {"name": ["in", job_names], "status": "Completed"}
	until(lambda: frappe.db.count("Background Job", filters) == len(job_names))


def read(job_name: str):
	return frappe.db.get_value("Background Job", job_name, "*", as_dict=True)


def output(job_name: str) -> dict:
	return frappe.parse_json(frappe.get_last_doc("Job Run", {"background_job": job_name}).output)


def messages() -> list[str]:
	"""Of this app and site, in the RQ queue that the tests' queues map to."""
	ours = create_job_id("dartwing")
	return [job_id for job_id in get_queue("short").get_job_ids() if job_id.startswith(ours)]


def test_newcomers_are_started_among_a_backlog(world, queue, worker, second_worker):
	job_type, organizations = type_of(f"{LIVE}.work_a_moment"), [make_organization() for _ in range(5)]
	backlog = submit_many(job_type, [{"seconds": 0.03}] * 150, world.a, job_queue=queue)
	frappe.db.commit()
	until(lambda: frappe.db.count("Background Job", {"name": ["in", backlog], "status": "Completed"}) > 5)
	late = [submit(job_type, {}, organization, job_queue=queue).name for organization in organizations]
	urgent = submit(job_type, {}, world.a, job_queue=queue, priority="High").name
	frappe.db.commit()
	committed = clock.now()
	until_ended(*backlog, *late, urgent)
	filters = {"job_queue": queue, "started_at": [">", committed]}
	started = frappe.get_all("Background Job", filters=filters, order_by="started_at", pluck="name")
	assert len(started) > 50
	# one that is not listed was started even before this process knew that it was committed
	places = {name: started.index(name) for name in (*late, urgent) if name in started}
	assert places.pop(urgent, 0) < 2 * WORKERS
	assert all(place < 2 * (len(late) + 1) + 2 * WORKERS for place in places.values())


def test_a_limited_type_does_not_wait_between_its_jobs(world, queue, worker, second_worker):
	"""More workers than places: whoever ends one starts the next at once."""
	job_type = type_of("dartwing_jobs.samples.do_nothing", max_running=1)
	names = submit_many(job_type, [{}] * 60, world.a, job_queue=queue)
	frappe.db.commit()
	began = time.monotonic()
	until_ended(*names)
	assert time.monotonic() - began < 10


def test_a_burst_of_submits_is_a_handful_of_messages(world, queue, worker, second_worker):
	job_type, most, names = type_of(f"{LIVE}.work_a_moment"), 0, []
	for _ in range(300):
		names.append(submit(job_type, None, world.a, job_queue=queue).name)
		frappe.db.commit()
		most = max(most, len(messages()))
	assert most <= 2
	until_ended(*names)


def test_a_worker_that_lingers_is_woken_without_a_message(world, queue, worker):
	job_type = type_of(f"{LIVE}.work_a_moment")
	first = submit(job_type, None, world.a, job_queue=queue).name
	frappe.db.commit()
	until_ended(first)
	until(lambda: bell.client().exists(bell._key("awake", "short")))
	before = messages()  # one that called for help may wait until this worker leaves
	second = submit(job_type, None, world.a, job_queue=queue).name
	frappe.db.commit()
	committed, sent = time.monotonic(), set()
	until(lambda: sent.update(messages()) or stored_status(second) == "Completed")
	assert time.monotonic() - committed < 1
	assert sent <= set(before)
	assert output(first)["pid"] == output(second)["pid"] != os.getpid()


def test_a_process_that_a_job_changed_is_replaced(world, queue, worker):
	left = submit(type_of(f"{LEAKS}.leak"), {"what": "closed connection"}, world.a, job_queue=queue).name
	looking = type_of(f"{LEAKS}.look")
	behind = [submit(looking, None, world.b, job_queue=queue).name for _ in range(2)]
	frappe.db.commit()
	until_ended(left, *behind)
	processes = [frappe.get_last_doc("Job Run", {"background_job": name}).worker for name in (left, *behind)]
	assert processes[0] not in processes[1:]
	assert processes[1] == processes[2]


def test_progress_is_seen_while_the_handler_runs(world, queue, worker):
	organization, seconds = f"Uncommitted {frappe.generate_hash(length=8)}", 3
	given = {"insert": organization, "seconds": seconds}
	job_name = submit(type_of(f"{LIVE}.report_steadily"), given, world.a, job_queue=queue).name
	frappe.db.commit()
	seen: dict[str, float] = {}  # when a report was made, and how old it was when it could be read

	def look() -> bool:
		job = read(job_name)
		if job.progress_message and job.status == "Running" and job.progress_message not in seen:
			seen[job.progress_message] = time.time() - float(job.progress_message)
			assert not frappe.db.exists("Organization", organization)
		return job.status == "Completed"

	until(look)
	assert frappe.db.exists("Organization", organization)
	moments = sorted(map(float, seen))
	# the first was read before the second was made, the last before the handler ended
	assert moments[1] - moments[0] > 0.9
	assert str(moments[-1]) == read(job_name).progress_message
	assert len(moments[1:-1]) >= 2 * seconds
	assert max(seen.values()) < 0.6


def test_a_cancel_reaches_a_handler_at_its_next_checkpoint(world, queue, worker):
	job_name = submit(type_of(f"{HANDLERS}.step_for_a_minute"), None, world.a, job_queue=queue).name
	frappe.db.commit()
	until(lambda: stored_status(job_name) == "Running")
	assert control.cancel(job_name) == "Requested"
	frappe.db.commit()
	until(lambda: stored_status(job_name) == "Canceled", seconds=2)


@pytest.mark.parametrize(
	"handler",
	[
		f"{HANDLERS}.sleep",
		f"{HANDLERS}.swallow_everything",
		f"{HANDLERS}.hold_the_gil",
		f"{HANDLERS}.read_a_silent_socket",
		f"{LIVE}.wait_inside_a_query",
	],
)
def test_a_timeout_ends_any_handler(world, queue, worker, handler):
	"""And the job that comes next to that worker hears its own answers, not what the last one asked."""
	options = {"timeout_seconds": TIMEOUT_SECONDS, "max_retries": 0, "job_queue": queue}
	hanging = submit(type_of(handler), None, world.a, **options).name
	following = submit(type_of(f"{LIVE}.ask_the_database"), None, world.a, job_queue=queue).name
	frappe.db.commit()
	until_ended(following)
	assert stored_status(hanging) == "Dead Letter"
	filters = {"background_job": hanging, "event": "job.timed_out"}
	timed_out = frappe.db.get_value("Job Execution Log", filters, "timestamp")
	took = (timed_out - read(hanging).started_at).total_seconds()
	assert TIMEOUT_SECONDS <= took < 5
	assert output(following) == {"answers": list(range(20)), "user": "Administrator"}


def test_an_isolated_job_has_a_process_of_its_own(world, queue, worker):
	shared = type_of(f"{LIVE}.work_a_moment")
	isolated = type_of(f"{LIVE}.work_a_moment", isolation="Process")
	types = [shared, shared, isolated, isolated, shared, shared]
	names = [submit(job_type, None, world.a, job_queue=queue).name for job_type in types]
	frappe.db.commit()
	until_ended(*names)
	before, too, first, second, after, as_well = (output(name)["pid"] for name in names)
	assert (before, after) == (too, as_well)
	assert len({before, first, second, after}) == 4


def test_a_delayed_job_starts_in_time_without_a_scheduler(world, queue, worker):
	"""It falls due after a worker that ran dry would have left."""
	due = clock.now() + timedelta(seconds=drain.settings.linger_seconds() + 1)
	job_name = submit(REPEATABLE, {"steps": 1}, world.a, job_queue=queue, scheduled_for=due).name
	frappe.db.commit()
	assert stored_status(job_name) == "Pending"
	until_ended(job_name)
	assert 0 <= (read(job_name).started_at - due).total_seconds() < 5
