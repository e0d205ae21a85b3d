"""The doorbell: a crowd of submits is one message, and somebody comes for what falls due on any site."""

import contextlib
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import frappe
import pytest
import redis
from frappe.utils.background_jobs import create_job_id, get_queue

from dartwing_jobs import clock, submit, submit_many
from dartwing_jobs.engine import bell, database, drain, promote
from dartwing_jobs.engine.rules import routes
from dartwing_jobs.errors import EngineFailed
from dartwing_jobs.tests.processes import in_other_processes
from dartwing_jobs.tests.test_lost_connections import cut_the_connection
from dartwing_jobs.tests.workers import wait_until
from dartwing_jobs.tests.world import REPEATABLE, make_job_type, plant, stored_status

# no other test starts workers for it
RQ_QUEUE = "long"
ANOTHER_SITE = "another-site.localhost"


@pytest.fixture
def queue(site):
	name = f"q:test-{frappe.generate_hash(length=8)}"
	frappe.get_doc({"doctype": "Job Queue", "queue_name": name, "rq_queue": RQ_QUEUE}).insert()
	frappe.db.commit()
	yield name
	frappe.db.rollback()
	for column in ("job_queue", "origin_queue"):
		frappe.db.delete("Background Job", {column: name})
	frappe.db.commit()


@pytest.fixture
def no_messages():
	_forget_messages()
	yield
	_forget_messages()


def _forget_messages() -> None:
	"""As if Redis had been wiped."""
	get_queue(RQ_QUEUE).empty()
	bell.client().delete(bell._due())
	for pattern in (f"{bell.PREFIX}:*:*{frappe.local.site}:{RQ_QUEUE}", f"{bell.PREFIX}:*:{ANOTHER_SITE}:*"):
		for key in bell.client().keys(pattern):
			bell.client().delete(key)


def messages(site: str | None = None) -> list[str]:
	with bell._as_site(site or frappe.local.site):
		ours = create_job_id("dartwing")
	return [job_id for job_id in get_queue(RQ_QUEUE).get_job_ids() if job_id.startswith(ours)]


def test_a_burst_of_submits_is_one_message(world, queue, no_messages):
	for number in range(1000):
		submit(REPEATABLE, None, world.a, job_queue=queue)
		frappe.db.commit()
		if number % 100 == 99:
			# as after a while in which nobody answers: a ring may be repeated, a message that waits is enough
			bell.client().delete(bell._key(bell.WORK, RQ_QUEUE))
		assert len(messages()) == 1


def test_those_who_want_to_linger_send_one_message_more(queue, no_messages):
	for _ in range(3):
		bell.ring(RQ_QUEUE)
		bell.send_wake(RQ_QUEUE)
		bell.client().delete(bell._key(bell.WORK, RQ_QUEUE), bell._key(bell.WAKE, RQ_QUEUE))
	assert len(messages()) == 2


def test_a_ring_is_repeated_when_its_message_was_lost(queue, no_messages):
	bell.ring(RQ_QUEUE)
	get_queue(RQ_QUEUE).empty()
	bell.ring(RQ_QUEUE)
	assert messages() == []
	bell.client().delete(bell._key(bell.WORK, RQ_QUEUE))
	bell.ring(RQ_QUEUE)
	assert len(messages()) == 1


def test_a_lingering_worker_needs_no_message(queue, no_messages):
	bell.listen(RQ_QUEUE, 0.01)
	bell.ring(RQ_QUEUE)
	assert messages() == []
	assert bell.listen(RQ_QUEUE, 0.01)


def test_one_that_rang_while_a_worker_was_leaving_is_heard(queue, no_messages):
	bell.listen(RQ_QUEUE, 0.01)
	bell.ring(RQ_QUEUE)
	assert bell.fall_asleep(RQ_QUEUE)
	assert not bell.fall_asleep(RQ_QUEUE)
	bell.ring(RQ_QUEUE)
	assert len(messages()) == 1


def test_a_ring_is_heard_also_when_redis_has_closed_the_connection_that_was_kept(queue, no_messages):
	bell.ring(RQ_QUEUE)
	with redis.Redis.from_url(frappe.local.conf.redis_queue) as other:
		other.execute_command("CLIENT", "KILL", "ID", _connection_of_rings())
	_forget_messages()
	assert bell.ring(RQ_QUEUE)
	assert len(messages()) == 1


def test_an_alarm_in_the_middle_of_a_ring_leaves_no_answer_for_the_next(monkeypatch):
	client = bell.client()
	with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
		for receive in ("recv", "recv_into"):  # as redis-py reads by itself, and with hiredis
			patched.setattr(socket.socket, receive, _interrupt)
		client.echo("first")
	assert client.echo("second") == b"second"


def _interrupt(*_args) -> None:
	raise KeyboardInterrupt


def test_each_process_rings_on_a_connection_of_its_own(queue, no_messages):
	"""On a shared one, each would take the other's answers for its own."""
	own = _connection_of_rings()
	assert _connection_of_rings() == own
	others = [in_other_processes(_connection_of_rings, (RQ_QUEUE,))[0] for _ in range(2)]
	assert len({own, *others}) == 3
	assert _connection_of_rings() == own
	assert len(messages()) == 1


def test_threads_that_ask_at_once_get_their_own_answers():
	client, words = bell.client(), [str(number) for number in range(200)]
	with ThreadPoolExecutor(4) as pool:
		assert [answer.decode() for answer in pool.map(client.echo, words)] == words


def _connection_of_rings(rq_queue: str = RQ_QUEUE) -> int:
	bell.ring(rq_queue)
	return bell.client().client_id()


def test_somebody_comes_for_what_a_drain_leaves_that_ends_by_an_error(queue, no_messages):
	"""Not before a while, for the next one may fail, too; and not only at the next sweep."""
	(error,) = in_other_processes(_fail_in_a_drain, (RQ_QUEUE,))
	assert error.endswith("RuntimeError: of test\n")
	assert messages() == []
	wait_until(lambda: len(messages()) == 1, 10, sweeping=False)


def test_the_database_may_be_down_when_a_drain_ends_by_an_error(queue, no_messages):
	in_other_processes(_fail_in_a_drain, (RQ_QUEUE, 2))
	wait_until(lambda: len(messages()) == 1, 15, sweeping=False)


def test_who_follows_drains_that_fail_in_a_row_waits_longer_each_time(no_messages):
	waits = [bell.seconds_after_failure(RQ_QUEUE) for _ in range(8)]
	assert waits == [1, 2, 4, 8, 16, 30, 30, 30]


def _fail_in_a_drain(rq_queue: str, refusals: int = 0) -> str | None:
	"""In a process that ends with this; its watchdog is refused by the database so many times."""
	_refuse(database, "utc_now", refusals)
	_refuse(database, "rollback", refusals)
	_refuse(database, "reconnect", refusals)

	def fail(_drain) -> None:
		raise RuntimeError("of test")

	drain.Drain.run = fail
	try:
		drain.answer(rq_queue)
	except EngineFailed as error:
		return str(error)
	return None


def _refuse(module, name: str, times: int) -> None:
	left, real = [None] * times, getattr(module, name)

	def refuse_at_first(*args):
		if left:
			left.pop()
			raise ConnectionError("of test")
		return real(*args)

	setattr(module, name, refuse_at_first)


def test_rq_lets_a_drain_live_as_long_as_its_jobs_may_run(queue, no_messages):
	"""A timeout may be longer than any number of seconds that RQ takes."""
	bell.ring(RQ_QUEUE)
	(job_id,) = messages()
	assert get_queue(RQ_QUEUE).fetch_job(job_id).timeout == -1


def test_what_falls_due_on_another_site_is_rung_for(no_messages):
	now = datetime.utcfromtimestamp(time.time())
	with bell._as_site(ANOTHER_SITE):
		bell.note_due(RQ_QUEUE, now + timedelta(seconds=100))
	assert bell.seconds_until_something_is_due() < 101
	bell.ring_for_others("short")
	assert messages(ANOTHER_SITE) == []
	with bell._as_site(ANOTHER_SITE):
		bell.note_due(RQ_QUEUE, now - timedelta(seconds=1))
	bell.ring_for_others("short")
	bell.ring_for_others("short")
	(job_id,) = messages(ANOTHER_SITE)
	message = get_queue(RQ_QUEUE).fetch_job(job_id)
	assert (message.kwargs["site"], message.kwargs["kwargs"]) == (ANOTHER_SITE, {"rq_queue": RQ_QUEUE})
	assert messages() == []


def test_what_falls_due_in_another_queue_is_rung_for_and_forgotten(no_messages):
	"""Otherwise a queue without workers would keep those of all others waiting for it."""
	bell.note_due(RQ_QUEUE, datetime(2020, 1, 1))
	bell.note_due("short", datetime(2020, 1, 1))
	bell.ring_for_others("short")
	assert len(messages()) == 1
	assert bell.client().zscore(bell._due(), bell._member(RQ_QUEUE)) is None
	assert bell.client().zscore(bell._due(), bell._member("short"))
	bell.note_due("short", None)


def test_a_burst_worker_does_not_wait_for_what_falls_due(world, queue, no_messages):
	now = submit(REPEATABLE, {"steps": 1}, world.a, job_queue=queue)
	soon = clock.now() + timedelta(seconds=60)
	later = submit(REPEATABLE, {"steps": 1}, world.a, job_queue=queue, scheduled_for=soon)
	frappe.db.commit()
	assert len(messages()) == 1
	command = [sys.executable, "-m", "frappe.utils.bench_helper", "frappe", "worker", "--queue", RQ_QUEUE]
	subprocess.run([*command, "--burst"], capture_output=True, timeout=30, check=True)
	frappe.db.rollback()
	assert (stored_status(now.name), stored_status(later.name)) == ("Completed", "Pending")
	assert messages() == []


def submit_for_soon(world, queue, job_type: str = REPEATABLE) -> str:
	"""A committed job that falls due in a minute; what it rang for is forgotten."""
	soon = clock.now() + timedelta(seconds=60)
	job = submit(job_type, {"steps": 1}, world.a, job_queue=queue, scheduled_for=soon)
	frappe.db.commit()
	_forget_messages()
	return job.name


def test_a_drain_that_must_leave_before_it_waits_comes_back_for_what_falls_due(world, queue, no_messages):
	"""Somebody else needed its worker from its first moment on: nobody had been told what falls due."""
	submit_for_soon(world, queue)
	leaving = drain.Drain(RQ_QUEUE, None)
	assert leaving.look()
	leaving.leave()
	assert [bell.WAKE in job_id for job_id in messages()] == [True]


def test_a_wish_to_linger_is_repeated_when_its_message_was_lost(queue, no_messages):
	bell.send_wake(RQ_QUEUE)
	get_queue(RQ_QUEUE).empty()
	bell.send_wake(RQ_QUEUE)
	assert len(messages()) == 1


def test_a_wish_to_linger_that_cannot_be_sent_ends_no_drain(no_messages):
	bell.send_wake("a queue that no worker of this bench serves")


def test_a_message_of_a_site_whose_name_ends_like_ours_is_not_ours(queue, no_messages):
	with bell._as_site(f"shop.{frappe.local.site}"):
		bell.ring(RQ_QUEUE)
		assert len(messages()) == 1
	bell.ring(RQ_QUEUE)
	assert len(messages()) == 1


def test_a_worker_that_was_woken_and_is_busy_calls_the_next(world, queue, no_messages):
	"""It listened a moment ago, but does not any more: whoever rings now must send a message."""
	submit_many(REPEATABLE, [{"steps": 1}] * 2, world.a, job_queue=queue)
	frappe.db.commit()
	_forget_messages()
	woken = drain.Drain(RQ_QUEUE, None)
	bell.listen(RQ_QUEUE, 0.01)
	assert woken.look()
	assert woken.run_due()
	assert len(messages()) == 1


def test_a_transaction_that_is_still_open_keeps_no_ring_of_another_connection(queue, no_messages):
	bell.ring_after_commit(queue)
	with database.beside():
		bell.ring_after_commit(queue)
		frappe.db.commit()
		assert len(messages()) == 1
	frappe.db.rollback()


def test_benches_that_share_a_redis_do_not_ring_for_each_other(no_messages, monkeypatch):
	"""They have no such site: the message would fail, and its own bench would have forgotten the moment."""
	bell.note_due(RQ_QUEUE, datetime(2020, 1, 1))
	monkeypatch.setitem(frappe.local.conf, "bench_id", "another-bench")
	bell.ring_for_others("short")
	assert (messages(), bell.seconds_until_something_is_due()) == ([], None)
	monkeypatch.undo()
	assert bell.seconds_until_something_is_due() < 0


@pytest.fixture
def offline(site):
	frappe.db.set_single_value("Job Engine Settings", "online", 0)
	frappe.db.commit()
	yield
	frappe.db.set_single_value("Job Engine Settings", "online", 1)
	frappe.db.commit()


def test_a_site_that_went_offline_leaves_the_wish_to_linger_to_others(offline, no_messages):
	"""One message had been sent for all sites, and it was this one's."""
	soon = datetime.utcfromtimestamp(time.time()) + timedelta(seconds=60)
	bell.note_due("short", soon)
	with bell._as_site(ANOTHER_SITE):
		bell.note_due(RQ_QUEUE, soon)
	drain.Drain(RQ_QUEUE, None).run()
	assert (len(messages()), len(messages(ANOTHER_SITE))) == (0, 1)
	# nothing of this site: they would send each other round and round
	with bell._as_site(ANOTHER_SITE):
		bell.note_due(RQ_QUEUE, None)
	assert bell.seconds_until_something_is_due() is None


def fall_due_before_a_burst(names: list[str], monkeypatch) -> None:
	"""All at once, where only one is put in line at a time."""
	for name in names:
		plant(name, run_at=database.utc_now())
	frappe.db.commit()
	monkeypatch.setattr(promote, "BATCH", 1)
	monkeypatch.setattr(sys, "argv", [*sys.argv, "--burst"])


def test_a_burst_worker_leaves_nothing_that_is_due(world, queue, no_messages, monkeypatch):
	"""More than are put in line at a time."""
	names = [submit_for_soon(world, queue) for _ in range(3)]
	fall_due_before_a_burst(names, monkeypatch)
	drain.Drain(RQ_QUEUE, None).run()
	assert [stored_status(name) for name in names] == ["Completed"] * 3


def test_a_burst_worker_that_must_leave_leaves_nothing_that_is_due(world, queue, no_messages, monkeypatch):
	"""The first one wants a process of its own, and the next one is not in line yet."""
	alone = make_job_type(isolation="Process").name
	names = [submit_for_soon(world, queue, alone) for _ in range(2)]
	fall_due_before_a_burst(names, monkeypatch)
	drain.Drain(RQ_QUEUE, None).run()
	assert len(messages()) == 1
	drain.Drain(RQ_QUEUE, None).run()
	assert [stored_status(name) for name in names] == ["Completed"] * 2
	_forget_messages()
	drain.Drain(RQ_QUEUE, None).run()
	assert messages() == []


def test_a_commit_that_fails_silences_no_ring_of_what_is_committed_later(queue, no_messages):
	assert routes.rq_queue_of(queue) == RQ_QUEUE
	with contextlib.suppress(Exception):  # each driver has its own
		cut_the_connection()
	bell.ring_after_commit(queue)
	with pytest.raises(Exception) as refused:
		frappe.db.commit()
	assert database.is_lost_connection(refused.value)
	database.rollback()
	bell.ring_after_commit(queue)
	frappe.db.commit()
	assert len(messages()) == 1
