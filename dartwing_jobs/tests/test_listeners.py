"""Other apps, Notifications and Webhooks hear of every move, and cannot get in its way."""

import frappe
import pytest
from frappe.utils.background_jobs import get_queue

from dartwing_jobs import hooks, submit
from dartwing_jobs.engine import drain
from dartwing_jobs.engine.observing import listeners
from dartwing_jobs.tests import listening
from dartwing_jobs.tests.world import REPEATABLE, make_job_type, make_queue, stored_status

HERE, SAMPLES = "dartwing_jobs.tests.listening", "dartwing_jobs.samples"


@pytest.fixture
def queue():
	listening.heard.clear()
	return make_queue("long")


@pytest.fixture
def listen(monkeypatch):
	"""Hooks functions to events of Background Job, as another app's hooks.py does."""

	def listening_to(**events: str) -> None:
		monkeypatch.setattr(hooks, "doc_events", {**hooks.doc_events, "Background Job": events})
		_look_again()

	yield listening_to
	monkeypatch.undo()
	_look_again()


def _look_again() -> None:
	frappe.clear_cache()
	if hasattr(frappe.local, "doc_events_hooks"):
		del frappe.local.doc_events_hooks
	listeners.forget()


def run(world, queue: str, handler: str = "execute_sample_job", **parameters) -> str:
	job_type = make_job_type(handler_method=f"{SAMPLES}.{handler}", backoff_base_seconds=60).name
	job = submit(job_type, parameters, world.a, job_queue=queue, owner_user=world.user_a)
	frappe.db.commit()
	drain.drain([queue])
	return job.name


def moves(job_name: str) -> list[tuple]:
	return [(before, after) for name, before, after in listening.heard if name == job_name]


def test_every_move_is_heard_as_it_was(world, queue, listen):
	listen(on_change=f"{HERE}.on_change", after_insert=f"{HERE}.after_insert")
	name = run(world, queue, steps=1)
	expected = [("new", "Queued"), (None, "Queued"), ("Queued", "Running"), ("Running", "Completed")]
	assert moves(name) == expected


def test_moves_of_one_transaction_are_heard_one_by_one(world, queue, listen):
	listen(on_change=f"{HERE}.on_change")
	name = run(world, queue, "fail_for_a_while", attempts=9)
	assert moves(name)[-2:] == [("Running", "Failed"), ("Failed", "Queued")]


def test_what_is_rolled_back_is_not_heard(world, queue, listen):
	listen(on_change=f"{HERE}.on_change", after_insert=f"{HERE}.after_insert")
	submit(REPEATABLE, None, world.a, job_queue=queue)
	assert listening.heard == []
	frappe.db.rollback()
	frappe.db.commit()
	assert listening.heard == []


def test_a_listener_that_fails_changes_nothing(world, queue, listen):
	listen(on_update=f"{HERE}.write_and_fail", on_change=f"{HERE}.on_change")
	name = run(world, queue, steps=1)
	assert stored_status(name) == "Completed"
	job_type = frappe.db.get_value("Background Job", name, "job_type")
	assert not frappe.db.get_value("Job Type", job_type, "description")
	errors = frappe.get_all("Error Log", filters={"method": ["like", f"%{name}%"]}, pluck="error")
	assert len(errors) == 3 and all("This listener always fails" in error for error in errors)


@pytest.mark.parametrize("somebody", [False, True])
def test_where_nobody_listens_no_document_is_loaded(world, queue, listen, monkeypatch, somebody):
	listen(**({"on_change": f"{HERE}.on_change"} if somebody else {}))
	loaded, get_doc = [], frappe.get_doc

	def counting(*args, **kwargs):
		loaded.extend(args[1:] if args[0] == "Background Job" else [])
		return get_doc(*args, **kwargs)

	monkeypatch.setattr(frappe, "get_doc", counting)
	name = run(world, queue, steps=1)
	assert (name in loaded) is somebody


@pytest.fixture
def stored(queue):
	"""Stores a listener in one of Frappe's tables, and takes it away again."""
	made = []

	def storing(doctype: str, **values):
		made.append(frappe.get_doc({"doctype": doctype, "enabled": 1, **values}).insert())
		frappe.db.commit()
		listeners.forget()

	get_queue("default").empty()
	yield storing
	frappe.db.rollback()
	for one in made:
		one.delete()
	frappe.db.commit()
	listeners.forget()
	for rq_queue in ("default", "short"):
		get_queue(rq_queue).empty()


TABLES = {
	"Notification": {
		"subject": "{{ doc.name }} has ended",
		"document_type": "Background Job",
		"event": "Value Change",
		"value_changed": "status",
		"condition": "doc.status == 'Completed'",
		"channel": "System Notification",
		"message": "done",
		"recipients": [{"receiver_by_document_field": "owner"}],
	},
	"Webhook": {
		"webhook_doctype": "Background Job",
		"webhook_docevent": "on_change",
		"condition": "doc.status == 'Completed'",
		"request_url": "http://127.0.0.1:9/",
		"request_method": "POST",
		"webhook_data": [{"fieldname": "name", "key": "name"}],
	},
}


@pytest.mark.parametrize("doctype", TABLES)
def test_listeners_that_people_store_hear_it_too(world, queue, stored, doctype):
	"""Frappe sends them through RQ. The embedded site has no such tables: nothing can be stored there."""
	if not frappe.db.exists("DocType", doctype):
		assert not listeners.somebody_listens()
		return
	stored(doctype, name=f"Listener {frappe.generate_hash(length=8)}", **TABLES[doctype])
	name = run(world, queue, steps=1)
	messages = [job for rq_queue in ("default", "short") for job in get_queue(rq_queue).jobs]
	told = [job for job in messages if name in str(job.kwargs)]
	assert len(told) == 1
