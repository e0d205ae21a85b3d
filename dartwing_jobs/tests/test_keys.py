"""Keys: what is submitted again is answered with the job that is there, and what is new becomes a job."""

import json
from datetime import datetime, timedelta, timezone

import frappe
import pytest

from dartwing_jobs import clock, stable_key, submit, submit_many
from dartwing_jobs.api import jobs as api
from dartwing_jobs.engine import attempt, control, database, drain, retention, statements
from dartwing_jobs.engine.intake import keys
from dartwing_jobs.errors import DuplicateJob, InvalidJobError, KeyConflict
from dartwing_jobs.testing import fall_due, run_job, start_job
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.world import make_job_type, make_queue, new_job, plant, stored_status

API = "dartwing_jobs.api.jobs"


@pytest.fixture
def queue():
	return make_queue()


@pytest.fixture
def plain(queue):
	return make_job_type(job_queue=queue).name


@pytest.fixture
def windowed(queue):
	return make_job_type(job_queue=queue, deduplication_window=300).name


@pytest.fixture
def key():
	return f"key-{frappe.generate_hash(length=10)}"


@pytest.fixture(scope="module")
def people(world):
	return {name: Browser(getattr(world, name)) for name in ("user_a", "colleague_a", "admin_a")}


def row_of(key: str):
	return frappe.get_doc("Job Idempotency Key", {"idempotency_key": key})


def count(job_type: str) -> int:
	return frappe.db.count("Background Job", {"job_type": job_type})


def end_as(job_name: str, status: str) -> None:
	plant(job_name, status=status, unique_key=None, line=None, claim_key=0)


class TestIdempotencyKey:
	def test_the_same_key_is_the_same_job(self, world, plain, key):
		first = submit(plain, {"a": 1, "b": [2]}, world.a, idempotency_key=key)
		again = submit(plain, {"b": [2], "a": 1}, world.a, idempotency_key=key)
		assert (again.name, again.duplicate, first.duplicate) == (first.name, True, False)
		assert count(plain) == 1

	def test_the_answer_has_the_result_once_there_is_one(self, world, plain, key):
		first = submit(plain, {"steps": 2}, world.a, idempotency_key=key)
		frappe.db.commit()
		assert submit(plain, {"steps": 2}, world.a, idempotency_key=key).output is None
		run_job(first.name)
		again = submit(plain, {"steps": 2}, world.a, idempotency_key=key)
		assert (again.name, again.status, again.output) == (first.name, "Completed", {"steps": 2})

	def test_other_parameters_or_another_type_under_the_same_key_are_refused(self, world, plain, key):
		submit(plain, {"a": 1}, world.a, idempotency_key=key)
		with pytest.raises(KeyConflict, match="other parameters"):
			submit(plain, {"a": 2}, world.a, idempotency_key=key)
		with pytest.raises(KeyConflict):
			submit(make_job_type().name, {"a": 1}, world.a, idempotency_key=key)
		assert submit(plain, {"a": 1}, world.a, idempotency_key=key).duplicate

	def test_each_organization_has_keys_of_its_own(self, world, plain, key):
		names = {submit(plain, None, each, idempotency_key=key).name for each in (world.a, world.b)}
		assert len(names) == 2

	def test_upper_and_lower_case_are_two_keys(self, world, plain, key):
		names = {submit(plain, None, world.a, idempotency_key=one).name for one in (key, key.upper())}
		assert len(names) == 2

	@pytest.mark.parametrize("status", ["Dead Letter", "Canceled"])
	def test_a_job_without_an_answer_hands_its_key_on(self, world, plain, key, status):
		first = submit(plain, None, world.a, idempotency_key=key)
		end_as(first.name, status)
		second = submit(plain, {"other": 1}, world.a, idempotency_key=key)
		assert second.name != first.name and not second.duplicate
		assert row_of(key).background_job == second.name
		assert submit(plain, {"other": 1}, world.a, idempotency_key=key).name == second.name

	@pytest.mark.parametrize("status", ["Pending", "Running", "Failed", "Timed Out", "Completed"])
	def test_any_other_job_keeps_its_key(self, world, plain, key, status):
		first = submit(plain, None, world.a, idempotency_key=key)
		plant(first.name, status=status)
		assert submit(plain, None, world.a, idempotency_key=key).name == first.name

	def test_an_expired_key_is_free(self, world, plain, key):
		first = submit(plain, None, world.a, idempotency_key=key)
		end_as(first.name, "Completed")
		frappe.db.set_value("Job Idempotency Key", row_of(key).name, "expires_at", "2020-01-01 00:00:00")
		second = submit(plain, None, world.a, idempotency_key=key)
		assert second.name != first.name
		assert row_of(key).expires_at > database.utc_now()

	@pytest.mark.parametrize(("category", "days"), [("Planning", 30), ("Maintenance", 7), ("General", 7)])
	def test_a_key_lives_as_long_as_its_category_says(self, world, key, category, days):
		submit(make_job_type(category=category).name, None, world.a, idempotency_key=key)
		left = row_of(key).expires_at - datetime.now(timezone.utc).replace(tzinfo=None)
		assert timedelta(days=days, minutes=-5) < left < timedelta(days=days, minutes=5)

	def test_the_key_tells_how_its_job_is(self, world, plain, key, queue):
		job = submit(plain, {"steps": 1}, world.a, idempotency_key=key)
		frappe.db.commit()
		assert (row_of(key).status, row_of(key).kind) == ("pending", "Idempotency Key")
		started = start_job(job.name)
		assert row_of(key).status == "running"
		attempt.run(started)
		assert (row_of(key).status, row_of(key).result_ref) == ("succeeded", job.name)

	def test_the_key_tells_of_failures(self, world, key, queue):
		path = "dartwing_jobs.samples.fail_for_a_while"
		flaky = make_job_type(handler_method=path, job_queue=queue, max_retries=1).name
		job = submit(flaky, {"attempts": 9, "retry_after": 0}, world.a, idempotency_key=key)
		run_job(job.name)
		assert (row_of(key).status, row_of(key).error_ref) == ("pending", job.name)
		run_job(job.name)
		assert stored_status(job.name) == "Dead Letter"
		assert row_of(key).status == "dead"

	def test_a_canceled_job_leaves_a_dead_key(self, world, plain, key):
		control.cancel(submit(plain, None, world.a, idempotency_key=key).name)
		assert row_of(key).status == "dead"

	def test_a_successor_is_the_answer(self, world, key, queue):
		path = "dartwing_jobs.samples.fail_for_a_while"
		fields = {"handler_method": path, "retry_mode": "New Job", "job_queue": queue}
		first = submit(make_job_type(**fields).name, {"attempts": 2}, world.a, idempotency_key=key)
		frappe.db.commit()
		drain.drain([queue])
		successor = frappe.db.get_value("Background Job", {"retry_of": first.name})
		assert (row_of(key).background_job, row_of(key).status) == (successor, "pending")
		assert submit(first.job_type, {"attempts": 2}, world.a, idempotency_key=key).name == successor
		fall_due(successor)
		drain.drain([queue])
		assert row_of(key).status == "succeeded"

	def test_a_repeated_question_is_remembered(self, world, plain, key):
		submit(plain, None, world.a, idempotency_key=key)
		long_ago = clock.now() - timedelta(days=1)
		seen = {"first_seen_at": long_ago, "last_seen_at": long_ago}
		frappe.db.set_value("Job Idempotency Key", row_of(key).name, seen)
		frappe.db.commit()
		submit(plain, None, world.a, idempotency_key=key)
		frappe.db.commit()
		assert row_of(key).first_seen_at == long_ago < row_of(key).last_seen_at

	def test_a_job_without_a_key_gets_one_that_nothing_else_has(self, world, plain):
		job = submit(plain, None, world.a, project_id="P1")
		assert job.idempotency_key == f"{plain}:{world.a}:P1:{job.job_id}"
		many = submit_many(plain, [{}, {}], world.a)
		given = [frappe.db.get_value("Background Job", name, "idempotency_key") for name in many]
		assert len({*given, job.idempotency_key}) == 3
		assert not frappe.db.exists("Job Idempotency Key", {"background_job": ["in", [job.name, *many]]})

	def test_a_stable_key_knows_the_same_inputs_again(self):
		one = stable_key("t", "o", {"b": 1, "a": "2026-01-01T12:00:00Z"}, "p")
		assert one.startswith("t:o:p:")
		assert one == stable_key("t", "o", {"a": "2026-01-01T13:00:00.000+01:00", "b": 1}, "p")
		assert one == stable_key("t", "o", {"a": datetime(2026, 1, 1, 12, tzinfo=timezone.utc), "b": 1}, "p")
		others = [
			stable_key("t", "o", {"b": 1, "a": "2026-01-01T12:00:01Z"}, "p"),
			stable_key("t", "o", {}, "p"),
		]
		assert len({one, stable_key("t", "o", {"b": 1}), *others}) == 4
		assert len(stable_key("t" * 140, "o" * 140, {})) == 255

	def test_retention_deletes_old_keys(self, world, plain, key):
		end_as(submit(plain, None, world.a, idempotency_key=key).name, "Completed")
		frappe.db.set_value("Job Idempotency Key", row_of(key).name, "expires_at", "2020-01-01 00:00:00")
		frappe.db.commit()
		retention.delete_expired_keys(database.utc_now())
		assert not frappe.db.exists("Job Idempotency Key", {"idempotency_key": key})

	@pytest.mark.parametrize("bad", ["", "  ", "x" * 256, "a\nb", 7])
	def test_a_key_must_be_a_text_that_can_be_kept(self, world, plain, bad):
		with pytest.raises(InvalidJobError):
			submit(plain, None, world.a, idempotency_key=bad)


class TestLifeOfAKey:
	"""As long as its category says, whatever becomes of the job's row; and never shorter than the job."""

	@pytest.fixture
	def planning(self, queue):
		return make_job_type(job_queue=queue, category="Planning", retention_days=1).name

	def clean_up(self, job_name: str) -> None:
		plant(job_name, modified=clock.now() - timedelta(days=2))
		frappe.db.commit()
		for _hour in range(2):  # a job goes after the one that it is the retry of
			retention.clean_up()
		assert not frappe.db.exists("Background Job", job_name)

	def expire(self, key: str) -> None:
		frappe.db.set_value("Job Idempotency Key", row_of(key).name, "expires_at", "2020-01-01 00:00:00")
		frappe.db.commit()

	def test_it_answers_after_its_job_was_cleaned_up(self, world, planning, key):
		asked = {"parameters": {"steps": 2}, "organization": world.a, "idempotency_key": key}
		first = submit(planning, project_id="P1", **asked)
		run_job(first.name)
		self.clean_up(first.name)
		again = submit(planning, project_id="P1", **asked)
		assert (again.name, again.duplicate, again.status) == (first.name, True, "Completed")
		same = ("job_id", "job_type", "organization", "project_id", "owner_user", "idempotency_key")
		same += ("created_at",)
		assert [again.get(name) for name in same] == [first.get(name) for name in same]
		assert json.loads(again.input_parameters) == {"steps": 2}
		assert count(planning) == 0
		frappe.db.commit()
		with pytest.raises(KeyConflict):
			submit(planning, {"steps": 3}, world.a, idempotency_key=key, project_id="P1")

	def test_many_and_documents_are_answered_too(self, world, planning, key):
		first = submit(planning, {"steps": 1}, world.a, idempotency_key=key)
		run_job(first.name)
		self.clean_up(first.name)
		names = submit_many(planning, [{"steps": 1}, {}], world.a, idempotency_keys=[key, f"{key}-2"])
		assert names[0] == first.name != names[1]
		with pytest.raises(DuplicateJob, match=first.name):
			new_job(world.a, job_type=planning, idempotency_key=key, input_parameters={"steps": 1}).insert()

	def test_over_http(self, world, people, planning, key):
		asked = {"job_type": planning, "parameters": {"steps": 1}, "organization": world.a}
		frappe.db.commit()
		first = people["user_a"].call(f"{API}.submit", **asked, idempotency_key=key).json["message"]
		frappe.db.rollback()
		run_job(first["name"])
		self.clean_up(first["name"])
		again = people["user_a"].call(f"{API}.submit", **asked, idempotency_key=key).json["message"]
		known = ("name", "job_id", "job_type", "organization", "parameters", "owner_user")
		assert {name: again[name] for name in known} == {name: first[name] for name in known}
		assert (again["status"], again["duplicate"]) == ("Completed", True)
		other = people["colleague_a"].call(f"{API}.submit", **asked, idempotency_key=key).json["message"]
		assert set(other) == {"name", "job_id", "job_type", "organization", "status", "duplicate"}

	def test_it_answers_no_longer_than_its_category_says(self, world, planning, key):
		first = submit(planning, None, world.a, idempotency_key=key)
		run_job(first.name)
		self.clean_up(first.name)
		self.expire(key)
		assert not submit(planning, None, world.a, idempotency_key=key).duplicate

	def test_one_that_a_dead_job_leaves_is_free(self, world, planning, key):
		first = submit(planning, None, world.a, idempotency_key=key)
		control.cancel(first.name)
		self.clean_up(first.name)
		assert not submit(planning, None, world.a, idempotency_key=key).duplicate

	def test_a_successor_is_the_answer_after_it_was_cleaned_up(self, world, queue, key):
		path = "dartwing_jobs.samples.fail_for_a_while"
		fields = {"handler_method": path, "retry_mode": "New Job", "job_queue": queue, "retention_days": 1}
		first = submit(make_job_type(**fields).name, {}, world.a, idempotency_key=key)
		run_job(first.name)
		successor = frappe.get_doc("Background Job", {"retry_of": first.name})
		run_job(successor.name)
		plant(first.name, modified=clock.now() - timedelta(days=2))
		self.clean_up(successor.name)
		again = submit(first.job_type, {}, world.a, idempotency_key=key)
		assert (again.name, again.job_id, again.duplicate) == (successor.name, successor.job_id, True)

	def test_who_takes_it_over_is_its_owner(self, world, planning, key):
		control.cancel(submit(planning, None, world.a, idempotency_key=key).name)
		second = submit(planning, None, world.a, idempotency_key=key, owner_user=world.user_a)
		run_job(second.name)
		self.clean_up(second.name)
		again = submit(planning, None, world.a, idempotency_key=key)
		assert (again.name, again.job_id, again.owner_user) == (second.name, second.job_id, world.user_a)

	@pytest.mark.parametrize("status", ["Pending", "Queued", "Running"])
	def test_it_does_not_expire_before_its_job_has_ended(self, world, plain, key, status):
		first = submit(plain, None, world.a, idempotency_key=key)
		if status != "Queued":
			plant(first.name, status=status)
		self.expire(key)
		assert submit(plain, None, world.a, idempotency_key=key).name == first.name
		frappe.db.commit()
		retention.delete_expired_keys(database.utc_now())
		assert submit(plain, None, world.a, idempotency_key=key).name == first.name

	def test_cleaning_up_looks_at_a_key_that_must_stay_once_a_day(self, world, plain, key, monkeypatch):
		"""Many may stay: they must not be in the way of those that may go."""
		retention.delete_expired_keys(database.utc_now())
		monkeypatch.setattr(retention, "BATCH", 2)
		given = [f"{key}-{number}" for number in range(5)]
		names = submit_many(plain, [{"n": n} for n in range(5)], world.a, idempotency_keys=given)
		control.cancel(names[4])
		for one in given:
			self.expire(one)
		now = database.utc_now()
		assert retention.delete_expired_keys(now) == 1
		left = [row_of(one).expires_at for one in given[:4]]
		assert {now} < {now, *left} and min(left) > now + timedelta(hours=23)

	def test_a_window_does_not_outlive_its_job(self, world, queue):
		fields = {"deduplication_window": 9 * 24 * 3600, "retention_days": 1}
		windowed = make_job_type(job_queue=queue, **fields).name
		first = submit(windowed, None, world.a)
		run_job(first.name)
		self.clean_up(first.name)
		assert not submit(windowed, None, world.a).duplicate


class TestWindow:
	def test_the_same_within_the_window_is_the_same_job(self, world, windowed):
		first = submit(windowed, {"a": 1, "b": 2}, world.a)
		again = submit(windowed, {"b": 2, "a": 1}, world.a)
		assert (again.name, again.duplicate) == (first.name, True)
		assert len(first.job_hash) == 64

	def test_what_differs_is_another_job(self, world, windowed):
		parent = submit(windowed, {"parent": 1}, world.a).name
		submissions = [
			(None, world.a, {}),
			({"a": 1}, world.a, {}),
			(None, world.b, {}),
			(None, world.a, {"project_id": "P"}),
			(None, world.a, {"owner_user": world.user_a}),
			(None, world.a, {"scheduled_for": "2099-01-01 00:00:00"}),
			(None, world.a, {"depends_on": parent}),
		]
		names = {submit(windowed, given, org, **options).name for given, org, options in submissions}
		assert len(names) == len(submissions)

	def test_priority_does_not_make_another_job(self, world, windowed):
		first = submit(windowed, None, world.a)
		assert submit(windowed, None, world.a, priority="High").name == first.name

	def test_after_the_window_it_is_another_job(self, world, windowed):
		first = submit(windowed, None, world.a)
		row = frappe.get_doc("Job Idempotency Key", {"background_job": first.name})
		assert (row.kind, row.idempotency_key) == ("Deduplication Window", first.job_hash)
		assert timedelta(seconds=290) < row.expires_at - database.utc_now() <= timedelta(seconds=300)
		frappe.db.set_value(row.doctype, row.name, "expires_at", "2020-01-01 00:00:00")
		assert submit(windowed, None, world.a).name != first.name

	@pytest.mark.parametrize("status", ["Dead Letter", "Canceled"])
	def test_what_ended_badly_may_be_submitted_at_once(self, world, windowed, status):
		first = submit(windowed, None, world.a)
		end_as(first.name, status)
		second = submit(windowed, None, world.a)
		assert second.name != first.name
		assert submit(windowed, None, world.a).name == second.name

	def test_who_asks_is_refused_or_let_through(self, world, windowed):
		first = submit(windowed, None, world.a)
		with pytest.raises(DuplicateJob, match=first.name):
			submit(windowed, None, world.a, if_duplicate="refuse")
		other = submit(windowed, None, world.a, if_duplicate="allow")
		assert other.name != first.name and other.job_hash == first.job_hash
		assert submit(windowed, None, world.a).name == first.name
		with pytest.raises(InvalidJobError, match="if_duplicate"):
			submit(windowed, None, world.a, if_duplicate="perhaps")

	def test_sample_job_has_the_window_it_was_specified_with(self, world):
		assert (
			submit("sample_job", {"steps": 1}, world.a).name
			== submit("sample_job", {"steps": 1}, world.a).name
		)

	def test_a_type_without_a_window_repeats(self, world, plain):
		assert submit(plain, None, world.a).name != submit(plain, None, world.a).name
		assert submit(plain, None, world.a).job_hash is None

	def test_many_are_answered_in_their_order(self, world, windowed):
		known = submit(windowed, {"n": 1}, world.a).name
		names = submit_many(windowed, [{"n": 0}, {"n": 1}, {"n": 2}, {"n": 0}, {"n": 3}], world.a)
		assert names[1] == known and names[0] == names[3]
		assert len(set(names)) == 4 and count(windowed) == 4
		assert submit_many(windowed, [{"n": 3}, {"n": 0}], world.a) == [names[4], names[0]]
		with pytest.raises(DuplicateJob):
			submit_many(windowed, [{"n": 9}, {"n": 0}], world.a, if_duplicate="refuse")
		assert count(windowed) == 4

	def test_many_with_keys(self, world, plain, key):
		given = [f"{key}-{number}" for number in range(3)]
		names = submit_many(plain, [{"n": 0}, {"n": 1}, {"n": 2}], world.a, idempotency_keys=given)
		again = submit_many(plain, [{"n": 2}, {"n": 7}], world.a, idempotency_keys=[given[2], f"{key}-7"])
		assert again[0] == names[2] and again[1] not in names
		with pytest.raises(KeyConflict):
			submit_many(plain, [{"n": 5}], world.a, idempotency_keys=given[:1])
		with pytest.raises(InvalidJobError, match="as many"):
			submit_many(plain, [{}, {}], world.a, idempotency_keys=given[:1])
		with pytest.raises(InvalidJobError, match="belongs to one job"):
			submit_many(plain, [{}], world.a, unique_key=key)

	def test_a_key_that_is_not_needed_after_all_stays_free(self, world, windowed, key):
		first = submit(windowed, {"n": 1}, world.a)
		assert submit(windowed, {"n": 1}, world.a, idempotency_key=key).name == first.name
		assert not frappe.db.exists("Job Idempotency Key", {"idempotency_key": key})

	@pytest.mark.parametrize("status", ["Dead Letter", "Canceled"])
	def test_a_retry_by_hand_is_never_answered_with_another_job(self, world, windowed, status):
		dead = submit(windowed, None, world.a)
		end_as(dead.name, status)
		names = {control.retry(dead.name, again=True).name for _ in range(2)}
		assert len(names | {dead.name}) == 3


class TestUniqueKey:
	def test_only_one_is_active(self, world, plain, key):
		first = submit(plain, {"a": 1}, world.a, unique_key=key)
		again = submit(plain, {"a": 2}, world.a, unique_key=key)
		assert (again.name, again.duplicate) == (first.name, True)
		assert submit(plain, None, world.b, unique_key=key).name != first.name
		with pytest.raises(DuplicateJob, match=first.name):
			submit(plain, None, world.a, unique_key=key, if_duplicate="refuse")
		assert submit(plain, None, world.a, unique_key=key, if_duplicate="allow").name == first.name

	def test_the_index_refuses_a_second_one(self, world, plain, key):
		submit(plain, None, world.a, unique_key=key)
		other = submit(plain, None, world.a)
		with pytest.raises(Exception, match=keys.UNIQUE_INDEX):
			statements.update("Background Job", other.name, {"unique_key": key})

	@pytest.mark.parametrize(
		("handler", "parameters", "status"),
		[
			("execute_sample_job", {"steps": 1}, "Completed"),
			("fail_for_good", {}, "Dead Letter"),
			("fail_for_a_while", {"attempts": 9}, "Dead Letter"),
		],
	)
	def test_it_is_free_again_when_the_job_has_ended(self, world, queue, key, handler, parameters, status):
		path = f"dartwing_jobs.samples.{handler}"
		job_type = make_job_type(handler_method=path, job_queue=queue, max_retries=0).name
		first = submit(job_type, parameters, world.a, unique_key=key)
		assert run_job(first.name).status == status
		assert submit(job_type, parameters, world.a, unique_key=key).name != first.name

	def test_it_is_held_between_attempts(self, world, queue, key):
		path = "dartwing_jobs.samples.fail_for_a_while"
		job_type = make_job_type(handler_method=path, job_queue=queue).name
		first = submit(job_type, {"attempts": 2}, world.a, unique_key=key)
		run_job(first.name)
		assert submit(job_type, None, world.a, unique_key=key).name == first.name
		assert run_job(first.name).status == "Completed"
		assert submit(job_type, None, world.a, unique_key=key).name != first.name

	def test_a_canceled_job_lets_it_go(self, world, plain, key):
		first = submit(plain, None, world.a, unique_key=key)
		control.cancel(first.name)
		assert submit(plain, None, world.a, unique_key=key).name != first.name

	def test_a_child_that_is_settled_lets_it_go(self, world, plain, key):
		parent = submit(plain, None, world.a)
		child = submit(plain, None, world.a, unique_key=key, depends_on=parent.name)
		control.cancel(parent.name)
		assert stored_status(child.name) == "Canceled"
		assert submit(plain, None, world.a, unique_key=key).name != child.name

	@pytest.mark.parametrize("bad", ["", "   ", "x" * 141, "a\tb", ["a"]])
	def test_it_must_be_a_text(self, world, plain, bad):
		with pytest.raises(InvalidJobError):
			submit(plain, None, world.a, unique_key=bad)

	def test_a_given_number_that_exists_is_no_unique_key(self, world, plain, key):
		"""Another unique index refuses: that is an error, and not the answer to this key."""
		first = submit(plain, None, world.a)
		with pytest.raises(Exception, match="job_id"):
			submit(plain, None, world.a, unique_key=key, job_id=first.job_id)


class TestDocuments:
	"""An insert cannot answer with another row, so a duplicate is refused."""

	def test_a_key(self, world, plain, key):
		first = new_job(world.a, job_type=plain, idempotency_key=key).insert()
		with pytest.raises(DuplicateJob, match=first.name):
			new_job(world.a, job_type=plain, idempotency_key=key).insert()
		with pytest.raises(KeyConflict):
			new_job(world.a, job_type=plain, idempotency_key=key, input_parameters={"a": 1}).insert()
		assert submit(plain, None, world.a, idempotency_key=key).name == first.name

	def test_a_window(self, world, windowed):
		first = submit(windowed, {"a": 1}, world.a)
		with pytest.raises(DuplicateJob, match=first.name):
			new_job(world.a, job_type=windowed, input_parameters={"a": 1}).insert()
		assert new_job(world.a, job_type=windowed, input_parameters={"a": 2}).insert().job_hash

	def test_a_unique_key(self, world, plain, key):
		first = new_job(world.a, job_type=plain, unique_key=key).insert()
		with pytest.raises(DuplicateJob, match=first.name):
			new_job(world.a, job_type=plain, unique_key=key).insert()
		assert submit(plain, None, world.a, unique_key=key).name == first.name
		assert new_job(world.a, job_type=plain, unique_key="").insert().unique_key is None

	def test_what_was_refused_leaves_the_transaction_alive(self, world, plain, key):
		new_job(world.a, job_type=plain, unique_key=key).insert()
		with pytest.raises(DuplicateJob):
			new_job(world.a, job_type=plain, unique_key=key).insert()
		assert submit(plain, {"after": 1}, world.a).name


class TestOverHttp:
	def test_the_answer_says_that_it_is_a_duplicate(self, world, people, plain, key):
		frappe.db.commit()
		asked = {
			"job_type": plain,
			"parameters": {"steps": 1},
			"organization": world.a,
			"idempotency_key": key,
		}
		first = people["user_a"].call(f"{API}.submit", **asked).json["message"]
		assert first["duplicate"] is False and "output" not in first
		frappe.db.rollback()
		run_job(first["name"])
		again = people["user_a"].call(f"{API}.submit", **asked).json["message"]
		assert (again["name"], again["duplicate"]) == (first["name"], True)
		assert (again["status"], again["output"]) == ("Completed", {"steps": 1})
		assert "output_reference" in again

	def test_a_conflict_of_keys_is_a_409(self, world, people, plain, windowed, key):
		frappe.db.commit()
		asked = {"job_type": plain, "organization": world.a, "idempotency_key": key}
		assert people["user_a"].call(f"{API}.submit", **asked, parameters={"a": 1}).status_code == 200
		refused = people["user_a"].call(f"{API}.submit", **asked, parameters={"a": 2})
		assert (refused.status_code, "other parameters" in refused.get_data(as_text=True)) == (409, True)
		twice = {"job_type": windowed, "organization": world.a, "if_duplicate": "refuse"}
		assert people["user_a"].call(f"{API}.submit", **twice).status_code == 200
		assert people["user_a"].call(f"{API}.submit", **twice).status_code == 409

	def test_a_colleague_learns_no_more_than_that_the_job_is_there(self, world, people, plain, key):
		frappe.db.commit()
		asked = {"job_type": plain, "organization": world.a, "unique_key": key}
		first = people["user_a"].call(f"{API}.submit", **asked, parameters={"secret": 1}).json["message"]
		other = people["colleague_a"].call(f"{API}.submit", **asked, parameters={"mine": 2}).json["message"]
		assert set(other) == {"name", "job_id", "job_type", "organization", "status", "duplicate"}
		assert other["name"] == first["name"]
		admin = people["admin_a"].call(f"{API}.submit", **asked).json["message"]
		assert admin["parameters"] == {"secret": 1}

	def test_many(self, world, people, windowed):
		frappe.db.commit()
		asked = {"job_type": windowed, "organization": world.a, "parameters": [{"n": 1}, {"n": 1}, {"n": 2}]}
		names = people["user_a"].call(f"{API}.submit_many", **asked).json["message"]
		assert names[0] == names[1] != names[2]


def trips_of(monkeypatch, action) -> int:
	"""How often a submit goes to the database, once everything it remembers is known."""
	action()
	real, trips = statements._send, []

	def send(statement: str, values: tuple | list):
		trips.append(statement)
		return real(statement, values)

	monkeypatch.setattr(statements, "_send", send)
	action()
	return len(trips)


def test_a_job_without_keys_pays_nothing_for_them(world, plain, monkeypatch):
	trips = {"mariadb": 2, "postgres": 3}[frappe.db.db_type]  # one question, then the job and its log
	assert trips_of(monkeypatch, lambda: submit(plain, {"a": 1}, world.a)) == trips


def test_a_thousand_jobs_with_keys_take_a_few_trips(world, windowed, monkeypatch):
	numbers = iter(range(10))

	def submit_a_thousand() -> None:
		run = next(numbers)
		submit_many(windowed, [{"run": run, "n": n} for n in range(1000)], world.a)

	assert trips_of(monkeypatch, submit_a_thousand) < 20


def test_the_rest_answers_of_one_job_agree(world, plain, key):
	job = submit(plain, None, world.a, idempotency_key=key)
	assert api.status(job.name)["idempotency_key"] == key
