"""What follows a commit: gathered, done once, one after the other, and never at the cost of its caller."""

import sys
import time

import frappe
import pytest

from dartwing_jobs import hooks, submit
from dartwing_jobs.engine import afterwards, bell, database
from dartwing_jobs.engine.observing import listeners
from dartwing_jobs.engine.order import OUT_OF_LINE
from dartwing_jobs.engine.submit import submit_many
from dartwing_jobs.testing import run_job
from dartwing_jobs.tests import listening
from dartwing_jobs.tests.world import REPEATABLE, make_job_type, make_queue, plant

HERE = "dartwing_jobs.tests.listening"


@pytest.fixture
def listen(monkeypatch):
	def listening_to(**events: str) -> None:
		monkeypatch.setattr(hooks, "doc_events", {**hooks.doc_events, "Background Job": events})
		_look_again()

	listening.heard.clear()
	yield listening_to
	monkeypatch.undo()
	_look_again()


def _look_again() -> None:
	frappe.clear_cache()
	if hasattr(frappe.local, "doc_events_hooks"):
		del frappe.local.doc_events_hooks
	listeners.forget()


@pytest.fixture
def shallow():
	"""Little room on the stack: what nests as deep as its work is long does not fit."""
	before, depth = sys.getrecursionlimit(), len(_stack())
	sys.setrecursionlimit(depth + 200)
	yield
	sys.setrecursionlimit(before)


def _stack() -> list:
	frames, frame = [], sys._getframe()
	while frame:
		frames.append(frame)
		frame = frame.f_back
	return frames


def errors_logged() -> int:
	frappe.db.rollback()
	return frappe.db.count("Error Log")


def test_each_of_many_moves_is_heard(world, listen, shallow):
	listen(after_insert=f"{HERE}.after_insert")
	before = errors_logged()
	names = submit_many(REPEATABLE, [{}] * 250, world.a)
	began = time.monotonic()
	frappe.db.commit()
	assert time.monotonic() - began < 5
	assert [name for name, _from, _to in listening.heard] == names
	assert errors_logged() == before


def test_many_children_are_submitted_in_one_transaction(world, shallow):
	parent = submit(REPEATABLE, None, world.a).name
	frappe.db.commit()
	before = errors_logged()
	children = [submit(REPEATABLE, {"n": n}, world.a, depends_on=parent).name for n in range(150)]
	frappe.db.commit()
	assert frappe.db.count("Background Job", {"depends_on": parent}) == len(children)
	assert errors_logged() == before


def test_children_of_many_parents_that_ended_meanwhile_are_all_released(world, shallow):
	"""As if each parent had ended just before its child was committed."""
	parents = submit_many(REPEATABLE, [{}] * 60, world.a)
	frappe.db.commit()
	for parent in parents:
		submit(REPEATABLE, {}, world.a, depends_on=parent)
	with database.beside():
		for parent in parents:
			plant(parent, status="Canceled", **OUT_OF_LINE)
		frappe.db.commit()
	frappe.db.commit()
	statuses = frappe.get_all("Background Job", filters={"depends_on": ["in", parents]}, pluck="status")
	assert statuses == ["Canceled"] * len(parents)


def test_many_duplicates_are_answered_in_one_transaction(world, shallow):
	key = {"idempotency_key": frappe.generate_hash()}
	first = submit(REPEATABLE, {"n": 1}, world.a, **key).name
	frappe.db.commit()
	before = errors_logged()
	assert {submit(REPEATABLE, {"n": 1}, world.a, **key).name for _n in range(150)} == {first}
	frappe.db.commit()
	assert errors_logged() == before


def test_work_is_done_once_for_all_that_was_gathered():
	calls = []

	def work(items: list) -> None:
		calls.append(items)
		frappe.db.commit()

	for number in range(300):
		afterwards.gather(work, number)
	frappe.db.commit()
	assert calls == [list(range(300))]
	frappe.db.commit()
	assert len(calls) == 1


def test_work_that_follows_from_work_is_done_behind_it():
	"""Not inside of it: each waits until the one before has ended."""
	order = []

	def first(_items: list) -> None:
		order.append("first begins")
		afterwards.gather(second, 1)
		frappe.db.commit()
		order.append("first ends")

	def second(_items: list) -> None:
		order.append("second")

	afterwards.gather(first, 1)
	frappe.db.commit()
	assert order == ["first begins", "first ends", "second"]


def test_work_that_never_ends_is_ended():
	calls = []
	before = errors_logged()

	def again(_items: list) -> None:
		calls.append(1)
		afterwards.gather(again, 1)
		frappe.db.commit()

	afterwards.gather(again, 1)
	frappe.db.commit()
	assert len(calls) == afterwards.MOST_ROUNDS
	assert errors_logged() == before + 1


@pytest.mark.parametrize("error", [ValueError("broken"), RecursionError("too deep")])
def test_work_that_fails_reaches_the_log_and_not_the_caller(error):
	done, before = [], errors_logged()

	def fail(_items: list) -> None:
		frappe.db.sql("select 1")
		raise error

	afterwards.gather(fail, 1)
	afterwards.gather(done.extend, 1, 2)
	frappe.db.commit()
	assert done == [1, 2]
	assert errors_logged() == before + 1


def test_a_statement_that_fails_does_not_spoil_the_work_behind_it():
	"""PostgreSQL refuses everything until the transaction is rolled back."""
	found = []
	afterwards.gather(lambda _items: frappe.db.sql("select no_such_column"), 1)
	afterwards.gather(lambda _items: found.append(frappe.db.sql("select 1")[0][0]), 1)
	frappe.db.commit()
	assert found == [1]


def test_what_is_rolled_back_is_not_done():
	done = []
	afterwards.gather(done.extend, "rolled back")
	frappe.db.rollback()
	afterwards.gather(done.extend, 1)
	frappe.db.commit()
	assert done == [1]


def test_what_a_failed_commit_leaves_behind_is_not_done_by_the_next():
	done = []

	def refuse() -> None:
		raise ValueError("before the commit")

	afterwards.gather(done.extend, "lost")
	frappe.db.before_commit.add(refuse)
	with pytest.raises(ValueError):
		frappe.db.commit()
	frappe.db.rollback()
	afterwards.gather(done.extend, 1)
	frappe.db.commit()
	assert done == [1]


def test_a_ring_that_a_failed_commit_has_lost_does_not_keep_others_from_ringing(world):
	"""Frappe drops the callbacks, and a rollback by other code says nothing to the bell."""
	queue = make_queue("long")
	frappe.db.commit()
	submit(REPEATABLE, {}, world.a, job_queue=queue)
	frappe.db.after_rollback.reset()  # as a commit does, before it fails
	frappe.db.rollback()
	bell.ring_after_commit(queue)
	frappe.db.commit()
	assert not bell._rings_of_this_transaction()


def test_work_that_rolls_back_leaves_the_rest_to_be_done():
	done = []
	afterwards.gather(lambda _items: database.rollback(), 1)
	afterwards.gather(done.extend, 1)
	frappe.db.commit()
	assert done == [1]


def test_who_commits_many_moves_waits_for_so_many_listeners_at_most(world, listen, monkeypatch):
	"""A worker tells the rest: a caller must not wait for ten thousand Notifications."""
	listen(after_insert=f"{HERE}.after_insert")
	monkeypatch.setattr(listeners, "MOST_TOLD_AT_ONCE", 10)
	sent = []
	monkeypatch.setattr(frappe, "enqueue", lambda method, **given: sent.append((method, given)))
	names = submit_many(REPEATABLE, [{}] * 25, world.a)
	frappe.db.commit()
	assert [name for name, _from, _to in listening.heard] == names[:10]
	for method, given in [one for one in sent if one[0] == listeners.TELL_REST]:
		frappe.get_attr(method)(given["moves"])
	assert [name for name, _from, _to in listening.heard] == names


def test_a_restricted_handler_may_submit_children_and_go_on(world):
	"""What the engine does after a checkpoint's commit is not the handler's work."""
	parent = submit(REPEATABLE, None, world.a).name
	kind = make_job_type(
		handler_method="dartwing_jobs.tests.guarded.submit_child_and_checkpoint", category="Planning"
	).name
	job = submit(kind, {"parent": parent, "job_type": REPEATABLE}, world.a, job_queue=make_queue()).name
	frappe.db.commit()
	ended = run_job(job)
	assert (ended.status, ended.error_message) == ("Completed", None)
	assert frappe.db.count("Background Job", {"depends_on": parent}) == 1
