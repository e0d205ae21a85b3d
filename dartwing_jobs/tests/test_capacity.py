"""How many may wait: what is too much is refused, leaves no row, and nobody slips in beside."""

import time
from contextlib import contextmanager

import frappe
import pytest

from dartwing_jobs.engine.submit import submit, submit_many
from dartwing_jobs.errors import InvalidJobError, QueueFull
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.processes import in_other_processes
from dartwing_jobs.tests.world import make_job_type, make_organization, make_queue, new_job


@pytest.fixture
def queue():
	return make_queue()


@pytest.fixture
def job_type():
	return make_job_type(handler_method="dartwing_jobs.samples.do_nothing").name


def limit_queue(queue: str, most: int) -> None:
	row = frappe.get_doc("Job Queue", queue)
	row.max_waiting = most
	row.save()
	frappe.db.commit()


def limit_organization(organization: str, most: int) -> None:
	policy = {"doctype": "Job Organization Policy", "organization": organization, "max_waiting": most}
	frappe.get_doc(policy).insert()
	frappe.db.commit()


def waiting_in(queue: str) -> int:
	return frappe.db.count("Background Job", {"job_queue": queue})


def test_a_full_queue_takes_no_more(world, queue, job_type):
	limit_queue(queue, 2)
	submit(job_type, {}, world.a, job_queue=queue)
	submit(job_type, {"later": 1}, world.a, job_queue=queue, scheduled_for="2099-01-01 00:00:00")
	with pytest.raises(QueueFull, match=r"Queue full: .* at most 2 waiting jobs"):
		submit(job_type, {"third": 1}, world.a, job_queue=queue)
	assert waiting_in(queue) == 2


def test_many_jobs_that_do_not_all_fit_are_refused_together(world, queue, job_type):
	limit_queue(queue, 5)
	with pytest.raises(QueueFull):
		submit_many(job_type, [{"number": number} for number in range(6)], world.a, job_queue=queue)
	assert waiting_in(queue) == 0
	assert (
		len(submit_many(job_type, [{"number": number} for number in range(5)], world.a, job_queue=queue)) == 5
	)


def test_a_limit_may_be_set_and_used_in_one_transaction(world, queue, job_type):
	row = frappe.get_doc("Job Queue", queue)
	row.max_waiting = 1
	row.save()
	submit(job_type, {}, world.a, job_queue=queue)
	with pytest.raises(QueueFull):
		submit(job_type, {"second": 1}, world.a, job_queue=queue)


def test_documents_are_counted_too(world, queue, job_type):
	limit_queue(queue, 1)
	new_job(world.a, job_type=job_type, job_queue=queue).insert()
	frappe.db.commit()
	with pytest.raises(QueueFull):
		new_job(world.a, job_type=job_type, job_queue=queue).insert()


def test_what_has_started_makes_room(world, queue, job_type):
	from dartwing_jobs import testing

	limit_queue(queue, 1)
	submit(job_type, {}, world.a, job_queue=queue)
	testing.run_all_due(queue)
	assert submit(job_type, {"next": 1}, world.a, job_queue=queue)


def test_what_is_rolled_back_takes_no_place(world, queue, job_type):
	limit_queue(queue, 1)
	submit(job_type, {}, world.a, job_queue=queue)
	frappe.db.rollback()
	assert submit(job_type, {}, world.a, job_queue=queue)


def test_what_a_savepoint_takes_back_takes_no_place(world, queue, job_type):
	"""A transaction that goes on would otherwise hear that the queue is full when it is empty."""
	limit_queue(queue, 2)
	submit(job_type, {"kept": 1}, world.a, job_queue=queue)
	for number in range(3):
		frappe.db.savepoint("tried")
		submit(job_type, {"tried": number}, world.a, job_queue=queue)
		frappe.db.rollback(save_point="tried")
	submit(job_type, {"second": 1}, world.a, job_queue=queue)
	with pytest.raises(QueueFull):
		submit(job_type, {"third": 1}, world.a, job_queue=queue)
	frappe.db.commit()
	assert waiting_in(queue) == 2


def test_an_organization_has_a_limit_of_its_own(world, queue, job_type):
	organization = make_organization("Small")
	limit_organization(organization, 1)
	submit(job_type, {}, organization, job_queue=queue)
	with pytest.raises(QueueFull, match="at most 1 waiting jobs"):
		submit(job_type, {"second": 1}, organization, job_queue=queue)
	assert submit(job_type, {}, world.b, job_queue=queue)


def test_a_transaction_sees_what_others_have_submitted_since_it_began(world, queue, job_type):
	limit_queue(queue, 1)
	frappe.db.count("Background Job")  # its view is from here on
	in_other_processes(_submit_one, (job_type, world.a, queue))
	with pytest.raises(QueueFull):
		submit(job_type, {"second": 1}, world.a, job_queue=queue)


@pytest.mark.parametrize("what", ["queue", "organization"])
def test_processes_that_submit_at_once_never_exceed_a_limit(world, queue, job_type, what):
	organization = make_organization("Crowded")
	if what == "queue":
		limit_queue(queue, 10)
	else:
		limit_organization(organization, 10)
	taken = in_other_processes(_submit_until_full, *[(job_type, organization, queue)] * 5)
	frappe.db.rollback()
	assert sum(taken) == waiting_in(queue) == 10


@contextmanager
def somebody_elses_transaction():
	"""Another connection of this process: what is done inside is not committed before the test says so."""
	own = frappe.local.db
	frappe.connect(set_admin_as_user=False)
	theirs = frappe.local.db
	frappe.local.db = own

	@contextmanager
	def inside():
		frappe.local.db = theirs
		try:
			yield theirs
		finally:
			frappe.local.db = own

	try:
		yield inside
	finally:
		with inside():
			theirs.rollback()
			theirs.close()


@pytest.mark.parametrize("what", ["queue", "organization"])
def test_nobody_waits_for_the_commit_of_somebody_else(world, queue, job_type, what):
	"""One open transaction closed a limited queue to everybody for five seconds."""
	organization = make_organization("Shared")
	if what == "queue":
		limit_queue(queue, 10)
	else:
		limit_organization(organization, 10)
	with somebody_elses_transaction() as theirs:
		with theirs():
			submit(job_type, {}, organization, job_queue=queue)
		began = time.monotonic()
		submit(job_type, {"mine": 1}, organization, job_queue=queue)
		assert time.monotonic() - began < 1


def test_places_of_an_open_transaction_are_taken_until_it_is_rolled_back(world, queue, job_type):
	limit_queue(queue, 2)
	with somebody_elses_transaction() as theirs:
		with theirs():
			submit_many(job_type, [{"one": 1}, {"two": 2}], world.a, job_queue=queue)
		with pytest.raises(QueueFull):
			submit(job_type, {}, world.b, job_queue=queue)
		with theirs() as connection:
			connection.rollback()
		assert submit(job_type, {}, world.b, job_queue=queue)


def test_what_is_committed_is_counted_once(world, queue, job_type):
	limit_queue(queue, 2)
	with somebody_elses_transaction() as theirs, theirs() as connection:
		submit(job_type, {}, world.a, job_queue=queue)
		connection.commit()
	assert submit(job_type, {"mine": 1}, world.a, job_queue=queue)
	with pytest.raises(QueueFull):
		submit(job_type, {"third": 1}, world.a, job_queue=queue)


def test_a_process_that_was_killed_gives_its_places_back_after_a_while(world, queue, job_type):
	limit_queue(queue, 1)
	with somebody_elses_transaction() as theirs:
		with theirs():
			submit(job_type, {}, world.a, job_queue=queue)
		frappe.db.set_value("Job Reservation", {"places": 1}, "expires_at", "2020-01-01 00:00:00")
		frappe.db.commit()
		assert submit(job_type, {"mine": 1}, world.b, job_queue=queue)


def test_a_commit_does_not_fail_because_places_cannot_be_given_back(world, queue, job_type, monkeypatch):
	limit_queue(queue, 2)
	job = submit(job_type, {}, world.a, job_queue=queue)

	def refuse(*args, **kwargs):
		raise OSError("Too many connections")

	with monkeypatch.context() as broken:
		broken.setattr(frappe, "connect", refuse)
		frappe.db.commit()
	assert frappe.db.exists("Background Job", job.name)
	# it is seen now, and so its place is counted once
	assert submit(job_type, {"second": 1}, world.a, job_queue=queue)


def _submit_one(job_type: str, organization: str, queue: str) -> None:
	submit(job_type, {}, organization, job_queue=queue)
	frappe.db.commit()


def _submit_until_full(job_type: str, organization: str, queue: str) -> int:
	taken = 0
	while True:
		try:
			submit(job_type, {"unlike": frappe.generate_hash()}, organization, job_queue=queue)
			frappe.db.commit()
			taken += 1
		except QueueFull:
			frappe.db.rollback()
			return taken


def test_the_critical_queue_is_small_and_only_for_those_who_may(world, job_type):
	with pytest.raises(InvalidJobError, match="may not use q:critical"):
		submit(job_type, {}, world.a, job_queue="q:critical")
	urgent = make_job_type(handler_method="dartwing_jobs.samples.do_nothing", allow_critical=1).name
	room = 100 - waiting_in("q:critical")
	submit_many(urgent, [{"number": number} for number in range(room)], world.a, job_queue="q:critical")
	with pytest.raises(QueueFull):
		submit(urgent, {}, world.a, job_queue="q:critical")
	frappe.db.rollback()


@pytest.mark.parametrize(
	("category", "named", "allowed"),
	[
		("General", "q:default", True),
		("General", "q:exports", False),
		("Planning", "q:planning", True),
		("Planning", "q:default", False),
		("Notification", "q:maintenance", False),
		("General", "q:deadletter", False),
	],
)
def test_a_submit_names_only_queues_that_are_for_it(world, category, named, allowed):
	job_type = make_job_type(category=category).name
	if allowed:
		assert submit(job_type, {}, world.a, job_queue=named).job_queue == named
	else:
		with pytest.raises(InvalidJobError, match=f"do not wait in {named}"):
			submit(job_type, {}, world.a, job_queue=named, must_submit=True)


def test_a_type_says_its_own_queue_and_operators_queues_are_open(world, queue):
	elsewhere = make_job_type(job_queue="q:exports").name
	assert submit(elsewhere, {}, world.a).job_queue == "q:exports"
	assert submit(elsewhere, {"other": 1}, world.a, job_queue=queue).job_queue == queue


def test_over_http_a_full_queue_is_too_many_requests(world, queue, job_type):
	limit_queue(queue, 1)
	frappe.db.set_value("Job Type", job_type, "job_queue", queue)
	frappe.clear_document_cache("Job Type", job_type)
	frappe.db.commit()
	browser = Browser(world.user_a)
	frappe.db.commit()
	first, second = (_post(browser, "", job_type, number) for number in (1, 2))
	assert (first.status_code, second.status_code) == (200, 429)
	assert (first.headers.get("Retry-After"), second.headers.get("Retry-After")) == (None, "5")
	assert _post(browser, "/v2", job_type, 3).headers.get("Retry-After") == "5"


def test_only_what_may_go_away_says_when_to_come_back(world, job_type):
	"""A key that belongs to other parameters is refused for good, with the same status as a conflict."""
	browser, key = Browser(world.user_a), frappe.generate_hash()
	frappe.db.commit()
	_post(browser, "", job_type, 1, idempotency_key=key)
	refused = _post(browser, "", job_type, 2, idempotency_key=key)
	assert (refused.status_code, refused.headers.get("Retry-After")) == (409, None)


def _post(browser, version: str, job_type: str, number: int, **options):
	arguments = {"job_type": job_type, "parameters": {"number": number}, **options}
	return browser.post(f"/api{version}/method/dartwing_jobs.api.jobs.submit", **arguments)
