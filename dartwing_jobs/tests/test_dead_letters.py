"""Dead letters: where they rest, what is known of them, and what people may do with them."""

import frappe
import pytest

import dartwing_jobs
from dartwing_jobs.api import dead_letters as api
from dartwing_jobs.engine import control, drain, sweep
from dartwing_jobs.errors import DuplicateJob, InvalidJobError
from dartwing_jobs.testing import fall_due, lose_worker, run_job, start_job
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.test_execute import execute
from dartwing_jobs.tests.world import (
	REPEATABLE,
	make_job,
	make_job_type,
	make_organization,
	make_queue,
	make_user,
	stored_status,
)

API = "dartwing_jobs.api.dead_letters"


@pytest.fixture
def queue():
	return make_queue()


@pytest.fixture
def job_type(queue):
	fields = {"job_queue": queue, "allowed_secrets": "message"}
	return make_job_type(handler_method="dartwing_jobs.samples.fail_for_good", **fields).name


@pytest.fixture
def bury(world, job_type, queue):
	"""Submits jobs that die at once; returns their names."""

	def burying(number: int = 1, owner: str | None = None, **options) -> list[str]:
		given = [{"message": f"no {index}"} for index in range(number)]
		options = {"owner_user": owner or world.user_a, **options}
		organization = options.pop("organization", world.a)
		names = dartwing_jobs.submit_many(job_type, given, organization, **options)
		frappe.db.commit()
		drain.drain([queue])
		return names

	return burying


@pytest.fixture(scope="module")
def browsers(world):
	people = ["user_a", "colleague_a", "admin_a", "user_b", "admin_b", "stranger", "manager"]
	return {person: Browser(getattr(world, person)) for person in people}


def read(job_name: str):
	return frappe.get_doc("Background Job", job_name)


def last_event(job_name: str, event: str):
	return frappe.get_last_doc("Job Execution Log", {"background_job": job_name, "event": event})


def details_of(job_name: str, event: str) -> dict:
	return frappe.parse_json(last_event(job_name, event).details)


def allow(browsers, person: str, method: str, **arguments):
	answer = browsers[person].call(f"{API}.{method}", **arguments)
	assert answer.status_code == 200, answer.get_data(as_text=True)[-2000:]
	frappe.db.rollback()
	return answer.json["message"]


# where they rest


def test_a_hopeless_job_rests_and_remembers_where_it_waited(bury, queue):
	(dead,) = bury()
	assert (read(dead).job_queue, read(dead).origin_queue) == ("q:deadletter", queue)
	told, run = details_of(dead, "job.deadlettered"), frappe.get_last_doc("Job Run", {"background_job": dead})
	assert told == {
		"error_class": "dartwing_jobs.errors.PermanentError",
		"message": "no 0",
		"attempt": 1,
		"retry_count": 0,
		"max_retries": 4,
		"worker": run.worker,
		"run": run.name,
		"origin_queue": queue,
	}


def test_what_the_log_keeps_has_no_secrets(world, job_type, queue):
	job = dartwing_jobs.submit(job_type, {"message": "refused: password=geheim"}, world.a)
	frappe.db.commit()
	drain.drain([queue])
	assert details_of(job.name, "job.deadlettered")["message"] == "refused: password=***"


def test_an_exhausted_job_rests_too(world, queue):
	handler = "dartwing_jobs.samples.fail_for_a_while"
	job_type = make_job_type(handler_method=handler, job_queue=queue).name
	job = dartwing_jobs.submit(job_type, {"attempts": 9}, world.a, max_retries=1).name
	frappe.db.commit()
	drain.drain([queue])
	assert (read(job).job_queue, read(job).origin_queue) == (queue, None)
	fall_due(job)
	drain.drain([queue])
	assert (read(job).job_queue, read(job).origin_queue) == ("q:deadletter", queue)
	told = details_of(job, "job.deadlettered")
	assert (told["attempt"], told["retry_count"], told["message"]) == (2, 1, "The service is busy")
	assert told["error_class"] == "dartwing_jobs.errors.TransientError"


def test_the_job_of_a_lost_worker_rests_with_that_workers_name(world, queue):
	job = dartwing_jobs.submit("sample_job", None, world.a, job_queue=queue, max_retries=0).name
	frappe.db.commit()
	frappe.db.set_value("Job Run", start_job(job).run_name, "worker", "elsewhere:7")
	lose_worker(job)
	sweep.reap_expired()
	assert (stored_status(job), read(job).origin_queue) == ("Dead Letter", queue)
	assert details_of(job, "job.deadlettered")["worker"] == "elsewhere:7"


def test_a_job_that_may_not_run_rests_too(queue):
	organization = make_organization()
	user = make_user("expelled", ["Dartwing User"], [organization])
	job = dartwing_jobs.submit("sample_job", None, organization, job_queue=queue, owner_user=user).name
	frappe.db.set_value("User", user, "enabled", 0)
	frappe.db.commit()
	drain.drain([queue])
	assert (stored_status(job), read(job).origin_queue) == ("Dead Letter", queue)
	assert "is disabled or gone" in details_of(job, "job.deadlettered")["message"]


def test_the_queue_where_a_dead_letter_waited_is_kept(bury, queue):
	bury()
	with pytest.raises(frappe.LinkExistsError):
		frappe.delete_doc("Job Queue", queue)


def test_workers_leave_the_dead_alone(bury):
	(dead,) = bury()
	drain.drain(["q:deadletter"])
	assert (stored_status(dead), read(dead).attempt) == ("Dead Letter", 1)


# replay


def test_a_replay_is_a_new_job_like_the_old_one(world, bury, queue):
	options = {"priority": "High", "timeout_seconds": 77, "max_retries": 3}
	(dead,) = bury(**options, project_id="p-1", correlation_id="c-1")
	frappe.set_user(world.admin_a)
	new = dartwing_jobs.replay(dead, reason="the line is back")
	assert (new.retry_of, new.status, new.job_queue, new.origin_queue) == (dead, "Queued", queue, None)
	kept = ("job_type", "organization", "owner_user", "owner", *options, "project_id", "correlation_id")
	assert {name: new.get(name) for name in kept} == {name: read(dead).get(name) for name in kept}
	assert frappe.parse_json(new.input_parameters) == {"message": "no 0"}
	assert (stored_status(dead), new.owner_user) == ("Dead Letter", world.user_a)
	told = last_event(dead, "job.replayed")
	assert (told.actor, told.message) == (world.admin_a, "the line is back")
	both = {"by": world.admin_a, "reason": "the line is back", "difference": []}
	assert details_of(dead, "job.replayed") == {"replayed_as": new.name, **both}
	assert details_of(new.name, "job.created") == {"retry_of": dead, **both}


def test_a_replay_runs_with_its_owners_rights(world, queue):
	job_type = make_job_type(
		handler_method="dartwing_jobs.tests.retrying.pay_then_fail", job_queue=queue
	).name
	options = {"owner_user": world.user_a, "max_retries": 0}
	dead = dartwing_jobs.submit(job_type, {"attempts": 1}, world.a, **options).name
	frappe.db.commit()
	started = start_job(dead)
	lose_worker(dead)
	sweep.reap_expired()
	assert stored_status(dead) == "Dead Letter", started
	frappe.set_user(world.admin_a)
	new = dartwing_jobs.replay(dead).name
	frappe.set_user("Administrator")
	frappe.db.commit()
	assert run_job(new).status == "Completed"
	assert world.user_a in frappe.get_last_doc("Job Run", {"background_job": new}).output


def test_an_edited_replay_says_what_was_edited(world, bury):
	(dead,) = bury()
	frappe.set_user(world.user_a)
	new = dartwing_jobs.replay(dead, {"message": "yes", "times": [1]}, "a typo")
	assert frappe.parse_json(new.input_parameters) == {"message": "yes", "times": [1]}
	difference = [{"path": "/message", "from": "no 0", "to": "yes"}, {"path": "/times", "to": [1]}]
	assert details_of(dead, "job.replayed")["difference"] == difference
	assert details_of(new.name, "job.created")["difference"] == difference
	assert details_of(new.name, "job.created")["by"] == world.user_a


@pytest.mark.parametrize(
	("person", "owner"), [("user_a", "user_a"), ("admin_a", "admin_a"), ("manager", "user_a")]
)
def test_nobody_edits_what_runs_with_anothers_rights(world, bury, person, owner):
	"""But a System Manager, who may submit in another's name anyway."""
	(dead,) = bury()
	frappe.set_user(getattr(world, person))
	assert dartwing_jobs.replay(dead, {"message": "x"}).owner_user == getattr(world, owner)


def test_being_allowed_to_replay_is_no_leave_to_submit_for_others(world, bury, job_type):
	(dead,) = bury()
	frappe.set_user(world.admin_a)
	dartwing_jobs.replay(dead)
	with pytest.raises(frappe.PermissionError, match="in the name of"):
		dartwing_jobs.submit(job_type, {}, world.a, owner_user=world.user_a)


def test_edited_parameters_must_fit_the_schema(world, queue):
	schema = '{"type": "object", "properties": {"message": {"type": "string"}}}'
	handler = "dartwing_jobs.samples.fail_for_good"
	job_type = make_job_type(handler_method=handler, job_queue=queue, parameters_schema=schema).name
	dead = dartwing_jobs.submit(job_type, {}, world.a).name
	frappe.db.commit()
	drain.drain([queue])
	with pytest.raises(InvalidJobError):
		dartwing_jobs.replay(dead, {"message": 7})
	assert not frappe.db.exists("Background Job", {"retry_of": dead})
	assert not frappe.db.exists("Job Execution Log", {"background_job": dead, "event": "job.replayed"})


def test_what_was_replayed_is_not_replayed_again_unless_asked(bury):
	(dead,) = bury()
	first = dartwing_jobs.replay(dead).name
	with pytest.raises(InvalidJobError, match=f"was replayed already, as {first}"):
		dartwing_jobs.replay(dead)
	assert dartwing_jobs.replay(dead, again=True).name != first


def test_only_the_dead_are_replayed_and_discarded(world):
	job = make_job(world.a).name
	for act in (dartwing_jobs.replay, lambda name: dartwing_jobs.discard(name, "why not")):
		with pytest.raises(InvalidJobError, match="is Pending, not a dead letter"):
			act(job)


def test_of_two_who_decide_at_once_one_is_refused(bury, monkeypatch):
	from dartwing_jobs.engine import control, dead_letters

	(dead,) = bury()
	seen = control.job_to_act_on(dead)
	dartwing_jobs.discard(dead, "first")
	monkeypatch.setattr(control, "job_to_act_on", lambda _name: seen)
	with pytest.raises(InvalidJobError, match="Somebody else has just decided"):
		dead_letters.discard(dead, "second")


def test_a_retry_of_a_dead_letter_goes_where_it_waited(world, bury, queue):
	(dead,) = bury()
	frappe.set_user(world.user_a)
	again = dartwing_jobs.retry(dead)
	assert (again.job_queue, again.owner_user) == (queue, world.user_a)
	assert last_event(dead, "job.replayed").actor == world.user_a


def test_what_was_retried_is_not_retried_or_replayed_again_unless_asked(bury):
	(dead,) = bury()
	first = dartwing_jobs.retry(dead).name
	for act in (dartwing_jobs.retry, dartwing_jobs.replay):
		with pytest.raises(InvalidJobError, match=f"was replayed already, as {first}"):
			act(dead)
	assert dartwing_jobs.retry(dead, again=True).name != first


def test_a_canceled_job_is_retried_once_unless_asked(world):
	job = dartwing_jobs.submit(REPEATABLE, None, world.a).name
	dartwing_jobs.cancel(job)
	first = dartwing_jobs.retry(job).name
	with pytest.raises(InvalidJobError, match=f"was replayed already, as {first}"):
		dartwing_jobs.retry(job)
	assert dartwing_jobs.retry(job, again=True).name != first


def test_a_discarded_job_is_not_retried_unless_asked(bury):
	(dead,) = bury()
	dartwing_jobs.discard(dead, "not needed")
	with pytest.raises(InvalidJobError, match="was discarded by Administrator: not needed"):
		dartwing_jobs.retry(dead)
	assert dartwing_jobs.retry(dead, again=True).retry_of == dead


def test_of_two_who_retry_at_once_one_must_look_again(bury, monkeypatch):
	(dead,) = bury()
	seen = control.job_to_act_on(dead)
	dartwing_jobs.retry(dead)
	monkeypatch.setattr(control, "job_to_act_on", lambda _name: seen)
	monkeypatch.setattr(control, "check_nothing_was_decided", lambda _job: None)
	with pytest.raises(InvalidJobError, match="Somebody else has just decided"):
		control.retry(dead)
	assert frappe.db.count("Background Job", {"retry_of": dead}) == 1


def test_two_clicks_on_retry_over_http_make_one_job(world, browsers, bury):
	(dead,) = bury()
	frappe.db.commit()
	clicked = browsers["user_a"]
	first = clicked.call("dartwing_jobs.api.jobs.retry", job=dead)
	second = clicked.call("dartwing_jobs.api.jobs.retry", job=dead)
	assert (first.status_code, second.status_code) == (200, 417)
	frappe.db.rollback()
	assert frappe.db.count("Background Job", {"retry_of": dead}) == 1


# discard


def test_a_discarded_job_stays_and_says_who_and_why(world, bury):
	(dead,) = bury()
	frappe.set_user(world.user_a)
	dartwing_jobs.discard(dead, " nobody needs it ")
	frappe.set_user("Administrator")
	job, told = read(dead), last_event(dead, "job.discarded")
	assert (job.status, job.discarded_by, job.discard_reason) == (
		"Dead Letter",
		world.user_a,
		"nobody needs it",
	)
	assert job.discarded_at
	assert (told.actor, told.message) == (world.user_a, "nobody needs it")


def test_a_discarded_job_is_not_replayed_or_discarded_again(bury):
	(dead,) = bury()
	dartwing_jobs.discard(dead, "not needed")
	with pytest.raises(InvalidJobError, match="was discarded by Administrator: not needed"):
		dartwing_jobs.replay(dead)
	with pytest.raises(InvalidJobError, match="was discarded by Administrator"):
		dartwing_jobs.discard(dead, "again")
	assert dartwing_jobs.replay(dead, again=True).retry_of == dead


@pytest.mark.parametrize("reason", [None, "", "  "])
def test_a_reason_is_needed(bury, reason):
	(dead,) = bury()
	with pytest.raises(InvalidJobError, match="Say why"):
		dartwing_jobs.discard(dead, reason)


def test_a_reason_that_cannot_be_stored_is_refused(bury):
	(dead,) = bury()
	for act in (
		lambda: dartwing_jobs.discard(dead, "a\x00b"),
		lambda: dartwing_jobs.replay(dead, reason="\x00"),
	):
		with pytest.raises(InvalidJobError, match="NUL"):
			act()


# many


def test_many_are_replayed_by_filter(bury, job_type):
	names = bury(5)
	dartwing_jobs.discard(names[0], "not this one")
	dartwing_jobs.replay(names[1])
	answer = dartwing_jobs.replay_many({"job_type": job_type}, limit=2, reason="all is well")
	assert answer == {"done": names[2:4], "failed": {}, "left": 1}
	assert dartwing_jobs.replay_many({"job_type": job_type})["done"] == names[4:]
	assert dartwing_jobs.replay_many({"job_type": job_type}) == {"done": [], "failed": {}, "left": 0}
	assert last_event(names[2], "job.replayed").message == "all is well"


def test_many_are_discarded_by_filter(bury, job_type):
	names = bury(3)
	assert dartwing_jobs.discard_many({"names": names[:2]}, "old")["done"] == names[:2]
	assert dartwing_jobs.discard_many({"job_type": job_type}, "old")["done"] == names[2:]
	assert {read(name).discard_reason for name in names} == {"old"}


def test_filters_find_by_organization_moment_and_error(world, bury, job_type):
	names = bury(2)
	early, late = (f"{day} 00:00:00" for day in ("2000-01-01", "2099-01-01"))
	none = [
		{"organization": world.b},
		{"before": early},
		{"after": late},
		{"error_class": "builtins.ValueError"},
	]
	all_of_them = [{"organization": world.a, "names": names}, {"after": early, "before": late}]
	all_of_them += [{"error_class": "dartwing_jobs.errors.PermanentError"}]
	for filters in none:
		assert dartwing_jobs.discard_many({"job_type": job_type, **filters}, "no")["done"] == [], filters
	for filters in all_of_them:
		frappe.db.savepoint("untouched")
		assert dartwing_jobs.discard_many({"job_type": job_type, **filters}, "no")["done"] == names, filters
		frappe.db.rollback(save_point="untouched")


def test_one_that_fails_stops_none_of_the_others(world, bury, job_type):
	names = bury(2)
	owner = make_user("leaver", ["Dartwing User"], [world.a])
	(orphan,) = bury(owner=owner)
	frappe.delete_doc("User Permission", frappe.db.get_value("User Permission", {"user": owner}))
	answer = dartwing_jobs.replay_many({"job_type": job_type})
	assert answer["done"] == names
	assert "is not in organization" in answer["failed"][orphan]
	assert not frappe.db.exists("Background Job", {"retry_of": orphan})
	assert frappe.local.message_log == []


@pytest.mark.parametrize("filters", [{}, {"organization": ""}, {"colour": "red"}, {"before": "soonish"}])
def test_filters_that_say_nothing_or_nonsense_are_refused(filters):
	with pytest.raises(InvalidJobError):
		dartwing_jobs.replay_many(filters)


# who may


@pytest.mark.parametrize("person", ["user_a", "admin_a", "manager"])
def test_owners_admins_and_managers_may(world, browsers, bury, person, job_type):
	replayed, edited, discarded, many, more = bury(5)
	new = allow(browsers, person, "replay", job=replayed, reason="r")
	assert (new["retry_of"], new["owner_user"], new["status"]) == (replayed, world.user_a, "Queued")
	new = allow(browsers, person, "edit_and_replay", job=edited, parameters={"message": "b"})
	assert (new["retry_of"], new["parameters"]) == (edited, {"message": "b"})
	assert allow(browsers, person, "discard", job=discarded, reason="r") == {"job": discarded}
	assert allow(browsers, person, "replay_many", filters={"names": [many]})["done"] == [many]
	assert allow(browsers, person, "discard_many", filters={"names": [more]}, reason="r")["done"] == [more]
	actor = getattr(world, person)
	assert {last_event(name, "job.replayed").actor for name in (replayed, edited, many)} == {actor}
	assert {last_event(name, "job.discarded").actor for name in (discarded, more)} == {actor}


@pytest.mark.parametrize("person", ["colleague_a", "user_b", "admin_b", "stranger"])
def test_others_find_nothing(world, browsers, bury, person, job_type):
	(dead,) = bury()
	calls = {"replay": {}, "edit_and_replay": {"parameters": {}}, "discard": {"reason": "r"}}
	for method, arguments in calls.items():
		answer = browsers[person].call(f"{API}.{method}", job=dead, **arguments)
		assert answer.status_code == 404, method
	for method in ("replay_many", "discard_many"):
		for filters in ({"names": [dead]}, {"organization": world.a}, {"job_type": job_type}):
			reason = {"reason": "r"}
			assert allow(browsers, person, method, filters=filters, **reason)["done"] == [], (method, filters)
	assert allow(browsers, person, "list_dead_letters", job_type=job_type)["dead_letters"] == []
	assert read(dead).discarded_at is None
	assert not frappe.db.exists("Background Job", {"retry_of": dead})


def test_writes_are_posts(browsers, bury):
	(dead,) = bury()
	for method in ("replay", "edit_and_replay", "discard", "replay_many", "discard_many"):
		assert browsers["admin_a"].get(f"/api/method/{API}.{method}", job=dead).status_code == 403, method


# lists


def test_lists_page_newest_first(browsers, bury, job_type, queue):
	names = bury(7)
	seen, cursor = [], None
	while True:
		page = allow(browsers, "admin_a", "list_dead_letters", job_type=job_type, limit=3, cursor=cursor)
		seen += [row["name"] for row in page["dead_letters"]]
		if not (cursor := page["next"]):
			break
	assert seen == names[::-1]
	row = page["dead_letters"][0]
	assert (row["status"], row["origin_queue"], row["error_message"]) == ("Dead Letter", queue, "no 0")
	assert row["completed_at"][-6] in "+-"


def test_lists_hide_what_was_discarded_and_can_hide_what_was_replayed(bury, job_type):
	open_one, replayed, discarded = bury(3)
	new = dartwing_jobs.replay(replayed).name
	dartwing_jobs.discard(discarded, "gone")

	def listed(**kinds) -> dict:
		return {row["name"]: row for row in api.list_dead_letters(job_type=job_type, **kinds)["dead_letters"]}

	assert set(listed()) == {open_one, replayed}
	assert (listed()[replayed]["replayed_as"], listed()[open_one]["replayed_as"]) == (new, None)
	assert set(listed(replayed="0")) == {open_one}
	assert set(listed(discarded="1")) == {open_one, replayed, discarded}
	assert listed(discarded=True)[discarded]["discard_reason"] == "gone"
	assert listed(discarded=True)[discarded]["discarded_at"][-6] in "+-"


@pytest.mark.parametrize("cursor", ["rubbish", "2026-01-01 00:00:00", "2026-01-01 00:00:00|", "never|JOB-1"])
def test_a_cursor_that_is_none_is_refused(cursor):
	with pytest.raises(InvalidJobError, match="not where a page ended"):
		api.list_dead_letters(cursor=cursor)


def test_a_replay_takes_the_key_of_the_dead_one_along(world, bury, job_type):
	"""Whoever submits the same again is answered with the replay."""
	(dead,) = bury(1, idempotency_keys=["once-only"])
	new = dartwing_jobs.replay(dead).name
	key = {"idempotency_key": "once-only"}
	assert frappe.db.get_value("Job Idempotency Key", key, "background_job") == new
	frappe.db.commit()
	given = read(new).input_parameters
	assert dartwing_jobs.submit(job_type, given, world.a, **key).name == new


def test_a_replay_is_never_somebody_elses_job(world, bury, job_type):
	"""Who has submitted the same since, under the same key, has a job of their own."""
	(dead,) = bury(1, idempotency_keys=["taken-over"])
	given = read(dead).input_parameters
	other = dartwing_jobs.submit(job_type, given, world.a, idempotency_key="taken-over").name
	frappe.db.commit()
	with pytest.raises(DuplicateJob):
		dartwing_jobs.replay(dead)
	frappe.db.rollback()
	assert "details" not in (details_of(other, "job.created") or {})


def test_a_replay_waits_where_its_type_waits_now(bury, job_type, queue):
	(dead,) = bury(1)
	frappe.db.set_value("Background Job", dead, "origin_queue", "q:exports")
	assert dartwing_jobs.replay(dead).job_queue == queue


def test_at_a_terminal(bury, job_type):
	first, second, third = bury(3)
	assert len(execute(f"{API}.list_dead_letters", job_type=job_type)["dead_letters"]) == 3
	assert execute("dartwing_jobs.replay", job=first)["retry_of"] == first
	execute(f"{API}.discard", job=second, reason="old")
	assert execute("dartwing_jobs.replay_many", filters={"job_type": job_type})["done"] == [third]
	assert read(second).discard_reason == "old"
