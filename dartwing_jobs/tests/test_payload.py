"""The payload contract: who asked for a job, in which request, as a part of what."""

import contextvars
import json
import uuid

import frappe
import pytest
from werkzeug.test import Client

from dartwing_jobs import submit
from dartwing_jobs.engine import drain
from dartwing_jobs.engine.intake import payload
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.testing import run_job
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.world import REPEATABLE, make_job_type, make_queue, new_job

API = "dartwing_jobs.api.jobs"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CONTRACT = ("request_id", "correlation_id", "traceparent", "actor_type", "actor_id", "project_id")
BAD_TRACES = [
	"00-1",
	TRACE.upper(),
	TRACE.replace("00-", "ff-", 1),
	f"00-{'0' * 32}-b7ad6b7169203331-01",
	f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01",
	f"{TRACE}-more",
]


@pytest.fixture(scope="module")
def browser(world):
	return Browser(world.user_a)


def contract_of(job_name: str) -> tuple:
	frappe.db.rollback()
	return frappe.db.get_value("Background Job", job_name, CONTRACT)


def post(browser: Browser, headers: dict, **body) -> str:
	"""Submits over HTTP with these headers; returns the job's name."""
	asked = {"job_type": REPEATABLE, **body}
	headers = {
		"X-Frappe-Site-Name": frappe.local.site,
		"Authorization": f"token {browser.token}",
		**headers,
	}

	def send():
		from frappe.app import application

		return Client(application).post(f"/api/method/{API}.submit", json=asked, headers=headers)

	answer = contextvars.Context().run(send)
	assert answer.status_code == 200, answer.get_data(as_text=True)[-2000:]
	return answer.json["message"]["name"]


def test_a_request_says_what_it_is_a_part_of(world, browser):
	headers = {"X-Request-Id": "r-1", "X-Correlation-Id": "c-1", "traceparent": TRACE}
	name = post(browser, headers, project_id="P-1")
	assert contract_of(name) == ("r-1", "c-1", TRACE, "api_key", world.user_a, "P-1")
	log = frappe.get_last_doc("Job Execution Log", {"background_job": name})
	assert [log.get(field) for field in CONTRACT if field != "traceparent"] == [
		"r-1",
		"c-1",
		"api_key",
		world.user_a,
		"P-1",
	]


def test_the_key_itself_is_never_stored(browser):
	name = post(browser, {})
	row = json.dumps(frappe.get_doc("Background Job", name).as_dict(), default=str)
	key, secret = browser.token.split(":")
	assert key not in row and secret not in row


def test_without_headers_a_request_gets_an_id(browser):
	request_id, correlation_id, trace, *_rest = contract_of(post(browser, {}))
	assert str(uuid.UUID(request_id)) == request_id == correlation_id
	assert trace is None
	assert contract_of(post(browser, {}))[0] != request_id


def test_jobs_of_one_request_have_one_id(world, browser):
	asked = {"job_type": REPEATABLE, "organization": world.a, "parameters": [{"n": 1}, {"n": 2}]}
	names = browser.call(f"{API}.submit_many", **asked).json["message"]
	assert len({contract_of(name)[0] for name in names}) == 1


def test_the_body_wins_over_the_headers(browser):
	headers = {"X-Correlation-Id": "c-1", "traceparent": TRACE}
	other = TRACE.replace("b7", "c7", 1)
	name = post(browser, headers, correlation_id="mine", traceparent=other)
	assert contract_of(name)[1:3] == ("mine", other)


@pytest.mark.parametrize("trace", BAD_TRACES)
def test_a_trace_that_is_none_is_dropped_from_headers_and_refused_from_options(world, browser, trace):
	assert contract_of(post(browser, {"traceparent": trace}))[2] is None
	with pytest.raises(InvalidJobError, match="traceparent"):
		submit(REPEATABLE, None, world.a, traceparent=trace)


def test_a_header_that_is_too_long_is_cut(browser):
	assert contract_of(post(browser, {"X-Request-Id": "r" * 300}))[0] == "r" * 140


def test_who_submits_without_a_request(world):
	assert contract_of_new(world)[3:5] == ("system", "Administrator")
	frappe.set_user(world.user_a)
	assert contract_of_new(world)[3:5] == ("user", world.user_a)


def contract_of_new(world) -> tuple:
	job = submit(REPEATABLE, None, world.a)
	return tuple(job.get(field) for field in CONTRACT)


def test_a_person_with_a_session_is_a_user(world):
	"""A request that shows no key: as from the Desk, where a login made the session."""
	frappe.set_user(world.user_a)
	frappe.local.request = frappe._dict(headers={"X-Request-Id": "desk"})
	frappe.session.sid = frappe.generate_hash(length=20)
	try:
		contract = contract_of_new(world)
		assert (contract[0], *contract[3:5]) == ("desk", "user", world.user_a)
		frappe.local.request.headers["Authorization"] = "nonsense"
		assert contract_of_new(world)[3] == "user"
	finally:
		del frappe.local.request


def test_who_submits_for_somebody_else_is_the_actor(world):
	job = submit(REPEATABLE, None, world.a, owner_user=world.user_a)
	assert (job.owner_user, job.actor_type, job.actor_id) == (world.user_a, "system", "Administrator")


def test_nobody_says_who_the_actor_is(world):
	job = new_job(world.a, actor_type="api_key", actor_id="somebody").insert()
	assert (job.actor_type, job.actor_id) == ("system", "Administrator")
	with pytest.raises(InvalidJobError, match="no option actor_id"):
		submit(REPEATABLE, None, world.a, actor_id="somebody")


def test_children_inherit_and_strangers_projects_do_not_mix(world):
	queue = make_queue()
	handler = "dartwing_jobs.tests.contracts.submit_children"
	job_type = make_job_type(handler_method=handler, job_queue=queue).name
	given = {"request_id": "r-9", "correlation_id": "c-9", "traceparent": TRACE, "project_id": "P-9"}
	parent = submit(job_type, {"elsewhere": world.b}, world.a, **given)
	frappe.db.commit()
	drain.drain([queue])
	(output,) = frappe.get_all("Job Run", {"background_job": parent.name}, pluck="output")
	found = frappe.parse_json(output)
	inherited = ("r-9", "c-9", TRACE, "system", "Administrator", "P-9")
	assert [contract_of(name) for name in found["children"]] == [inherited] * 2
	assert contract_of(found["own"]) == ("r-9", "own", TRACE, "system", "Administrator", "own")
	assert contract_of(found["elsewhere"]) == (*inherited[:-1], None)
	assert payload.current_job() is None
	assert contract_of_new(world)[1] != "c-9"


@pytest.mark.parametrize("field", ["project_id", "request_id", "correlation_id"])
@pytest.mark.parametrize("bad", ["x" * 141, "a\nb", "a\x1bb", 7, {"a": 1}])
def test_what_cannot_be_kept_is_refused(world, field, bad):
	with pytest.raises(InvalidJobError, match=field):
		submit(REPEATABLE, None, world.a, **{field: bad})


@pytest.mark.parametrize("bad", ["a\nb", "a\x7fb"])
def test_a_document_is_held_to_the_same(world, bad):
	with pytest.raises(InvalidJobError, match="control character"):
		new_job(world.a, correlation_id=bad).insert()


def test_every_option_can_be_given_over_http(world, browser):
	queue = make_queue()
	frappe.db.commit()
	given = {"job_queue": queue, "timeout_seconds": 17, "max_retries": 2, "priority": "High"}
	moment = {"scheduled_for": "2099-06-01T12:00:00+02:00"}
	name = post(browser, {}, organization=world.a, unique_key=f"http-{queue}", **given, **moment)
	frappe.db.rollback()
	job = frappe.get_doc("Background Job", name)
	assert {field: job.get(field) for field in given} == given
	assert (job.status, job.unique_key) == ("Pending", f"http-{queue}")
	answer = browser.call(f"{API}.status", job=name).json["message"]
	assert (answer["actor_type"], answer["request_id"]) == ("api_key", job.request_id)
	bad = browser.call(f"{API}.submit", job_type=REPEATABLE, organization=world.a, max_retries="many")
	assert bad.status_code == 417


def test_each_job_has_the_whole_contract(world):
	job = submit(REPEATABLE, None, world.a)
	must = ("job_id", "job_type", "organization", "actor_type", "actor_id", "request_id", "correlation_id")
	assert all(job.get(field) for field in (*must, "idempotency_key", "created_at"))
	document = new_job(world.a).insert()
	assert all(document.get(field) for field in (*must, "idempotency_key", "created_at"))
	frappe.db.commit()
	assert run_job(job.name).status == "Completed"
