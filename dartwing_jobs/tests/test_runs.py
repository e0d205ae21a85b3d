"""Job Run: one for each attempt, whatever became of it; and the chain of jobs that follow each other."""

import re
from pathlib import Path

import frappe
import pytest

import dartwing_jobs
from dartwing_jobs.api import runs as api
from dartwing_jobs.engine import attempt as attempts
from dartwing_jobs.engine import control, dead_letters, successors, sweep
from dartwing_jobs.errors import EngineOwnedError, InvalidJobError
from dartwing_jobs.parameters import load
from dartwing_jobs.testing import fall_due, lose_worker, run_job, start_job
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.world import (
	expel,
	make_job,
	make_job_type,
	make_queue,
	make_user,
	plant,
	stored_status,
)

API = "dartwing_jobs.api.runs"
TEXT = (Path(dartwing_jobs.__file__).parents[1] / "docs" / "runs.md").read_text()
ROWS = re.findall(r"^\| ([^|]+) \| (\w+) \| (yes|no) \| ([^|]+) \| ([^|]+) \|$", TEXT, re.M)
SAMPLES, HANDLERS = "dartwing_jobs.samples.", "dartwing_jobs.tests.handlers."
MODES = ["Same Job", "New Job"]
RETRYING = {"backoff_base_seconds": 1, "backoff_cap_seconds": 1}


def submit(organization: str, handler: str, parameters: dict | None = None, mode: str = "Same Job", **fields):
	job_type = make_job_type(handler_method=handler, retry_mode=mode, **RETRYING).name
	# a queue of its own: what other tests have left would be in the way
	place = {"job_type": job_type, "job_queue": make_queue()}
	job = make_job(organization, input_parameters=parameters, **place, **fields)
	frappe.db.commit()
	return job.name


def runs_of(job_name: str) -> list:
	fields = ["name", "status", "attempt", "uncounted", "finished_at", "error_message"]
	return frappe.get_all("Job Run", {"background_job": job_name}, fields, order_by="attempt asc, name asc")


# how an attempt ends: each makes a job's first attempt end in its way, and returns the job's name


def completed(world, mode):
	return _run(submit(world.a, SAMPLES + "execute_sample_job", {"steps": 1}, mode))


def failed(world, mode):
	return _run(submit(world.a, SAMPLES + "fail_for_a_while", {"attempts": 99}, mode))


def failed_for_good(world, mode):
	return _run(submit(world.a, SAMPLES + "fail_for_good", mode=mode))


def timed_out(world, mode):
	slow = {"steps": 1, "seconds": 30}
	return _run(submit(world.a, SAMPLES + "execute_sample_job", slow, mode, timeout_seconds=1))


def canceled(world, mode):
	job_name = submit(world.a, SAMPLES + "execute_sample_job", {"steps": 3}, mode)
	running = _start(job_name)
	control.cancel(job_name)
	frappe.db.commit()
	attempts.perform(running)
	return job_name


def failed_after_a_cancel(world, mode):
	job_name = submit(world.a, SAMPLES + "fail_for_a_while", {"attempts": 99}, mode)
	running = _start(job_name)
	control.cancel(job_name)
	frappe.db.commit()
	attempts.perform(running)
	return job_name


def worker_lost(world, mode):
	job_name = submit(world.a, SAMPLES + "execute_sample_job", mode=mode)
	_start(job_name)
	lose_worker(job_name)
	sweep.reap_expired()
	return job_name


def skipped(world, mode):
	leaver = make_user("leaver", ["Dartwing User"], [world.a])
	job_name = submit(world.a, SAMPLES + "execute_sample_job", mode=mode, owner_user=leaver)
	expel(leaver, world.a)
	frappe.db.commit()
	frappe.clear_cache(user=leaver)
	return _run(job_name)


def snoozed(world, mode):
	return _run(submit(world.a, HANDLERS + "snooze_once", mode=mode))


def handed_back(world, mode):
	return _run(submit(world.a, HANDLERS + "hand_back", {"attempts": 99}, mode))


ENDS = {
	"completed": completed,
	"failed, and may be tried again": failed,
	"failed for good": failed_for_good,
	"timed out": timed_out,
	"canceled at a checkpoint": canceled,
	"failed, timed out, snoozed or handed back after a cancel was asked for": failed_after_a_cancel,
	"worker lost": worker_lost,
	"skipped: what it needs is gone": skipped,
	"snoozed": snoozed,
	"handed back at a shutdown": handed_back,
}


def _run(job_name: str) -> str:
	run_job(job_name)
	frappe.set_user("Administrator")  # the job ran as its owner
	return job_name


def _start(job_name: str):
	fall_due(job_name)
	return start_job(job_name)


def test_the_page_has_every_end():
	assert {row[0] for row in ROWS} == set(ENDS)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_an_attempt_ends_as_the_page_says(world, row, mode):
	how, run_status, counts, *job = row
	job_name = ENDS[how](world, mode)
	frappe.db.rollback()
	(run,) = runs_of(job_name)
	assert (run.status, run.uncounted, run.attempt) == (run_status, counts == "no", 1)
	assert run.finished_at
	status, _comma, follows = job[MODES.index(mode)].partition(", ")
	assert stored_status(job_name) == status
	assert bool(frappe.db.exists("Background Job", {"retry_of": job_name})) == bool(follows)


@pytest.mark.parametrize("end", [snoozed, handed_back])
@pytest.mark.parametrize("mode", MODES)
def test_of_a_job_that_was_sent_back_one_run_counts(world, mode, end):
	job_name = end(world, mode)
	job_type = frappe.db.get_value("Background Job", job_name, "job_type")
	frappe.db.set_value("Job Type", job_type, "handler_method", SAMPLES + "execute_sample_job")
	assert run_job(job_name).status == "Completed"
	first, second = runs_of(job_name)
	assert (first.uncounted, second.uncounted) == (1, 0)
	assert (first.attempt, second.attempt, second.status) == (1, 1, "Completed")


def test_a_job_that_is_canceled_while_it_waits_has_no_run(world):
	job_name = submit(world.a, SAMPLES + "execute_sample_job")
	control.cancel(job_name)
	assert runs_of(job_name) == []


def test_no_job_of_the_suite_that_is_retried_as_a_new_one_has_two_runs_that_count(world):
	failed(world, "New Job")
	counts = frappe.db.sql(
		"""select job.name, count(*) from `tabJob Run` run
		join `tabBackground Job` job on job.name = run.background_job
		join `tabJob Type` kind on kind.name = job.job_type
		where kind.retry_mode = 'New Job' and run.uncounted = 0 group by job.name"""
	)
	assert counts
	assert [name for name, count in counts if count > 1] == []


def test_a_run_remembers_what_the_handler_was_given_not_what_it_made_of_it(world):
	job_name = submit(world.a, HANDLERS + "spoil_then_fail", {"steps": [1, 2]})
	for _attempt in range(2):
		_run(job_name)
	snapshots = frappe.get_all("Job Run", {"background_job": job_name}, pluck="params_snapshot")
	assert [load(one) for one in snapshots] == [{"steps": [1, 2]}] * 2


@pytest.mark.parametrize("person", ["manager", "admin_a"])
def test_nobody_changes_a_run(world, person):
	job_name = submit(world.a, SAMPLES + "execute_sample_job", {"steps": 1}, owner_user=world.user_a)
	_run(job_name)
	name = runs_of(job_name)[0].name
	before = frappe.get_doc("Job Run", name).as_dict()
	browser, change = Browser(getattr(world, person)), {"params_snapshot": "{}", "job_template": None}
	answers = [
		browser.put(f"/api/resource/Job Run/{name}", **change),
		browser.delete(f"/api/resource/Job Run/{name}"),
		browser.call("frappe.client.set_value", doctype="Job Run", name=name, fieldname=change),
		browser.call("frappe.client.save", doc=_as_sent({**before, **change})),
	]
	assert all(answer.status_code >= 400 for answer in answers)
	frappe.db.rollback()
	run = frappe.get_doc("Job Run", name)
	with pytest.raises(EngineOwnedError):
		run.db_set("params_snapshot", "{}")
	run.params_snapshot = "{}"
	with pytest.raises(EngineOwnedError):
		run.save()
	with pytest.raises(EngineOwnedError):
		run.delete()
	assert frappe.get_doc("Job Run", name).as_dict() == before


def _as_sent(row: dict) -> dict:
	return frappe.parse_json(frappe.as_json(row))


# the chain


def links(job_name: str) -> list[tuple]:
	return [(row.name, row.link) for row in successors.chain(job_name)]


def fail_until_dead(world, retries: int = 2) -> list[str]:
	"""A chain in the mode New Job, from the first failure to the dead letter."""
	fields = {"max_retries": retries, "owner_user": world.user_a}
	names = [submit(world.a, SAMPLES + "fail_for_a_while", {"attempts": 99}, "New Job", **fields)]
	for _retry in range(retries):
		_run(names[-1])
		names.append(frappe.db.get_value("Background Job", {"retry_of": names[-1]}))
	_run(names[-1])
	return names


def test_a_chain_is_the_same_from_each_of_its_links(world):
	first, second, third = fail_until_dead(world)
	expected = [(first, None), (second, "retry"), (third, "retry")]
	assert links(first) == links(second) == links(third) == expected
	rows = successors.chain(second)
	assert [row.status for row in rows] == ["Failed", "Failed", "Dead Letter"]
	assert [row.run for row in rows] == [runs_of(name)[-1].name for name in (first, second, third)]
	assert {row.run_status for row in rows} == {"Failed"}


def test_what_people_made_of_dead_and_canceled_jobs_belongs_to_the_story(world):
	first, dead = fail_until_dead(world, retries=1)
	replayed = dead_letters.replay(dead).name
	again = dead_letters.replay(dead, again=True).name
	control.cancel(replayed)
	retried = control.retry(replayed).name
	told = {first: None, dead: "retry", replayed: "replay", again: "replay", retried: "replay"}
	assert links(first) == links(retried) == list(told.items())
	by_name = {row.name: row for row in successors.chain(again)}
	assert [by_name[name].retry_of for name in (replayed, again, retried)] == [dead, dead, replayed]
	assert (by_name[retried].run, by_name[retried].run_status) == (None, None)


def test_a_job_alone_is_a_chain_of_one(world):
	job_name = submit(world.a, SAMPLES + "execute_sample_job")
	assert links(job_name) == [(job_name, None)]
	assert successors.chain("never-was") == []


def test_a_chain_begins_where_retention_has_left_it(world):
	first, second, third = fail_until_dead(world)
	frappe.db.delete("Background Job", {"name": first})
	assert links(third) == links(second) == [(second, None), (third, "retry")]


def test_a_circle_has_an_end(world):
	"""Nobody can make one through a document, but somebody's own SQL can."""
	one, other = (make_job(world.a).name for _ in range(2))
	plant(one, retry_of=other)
	plant(other, retry_of=one)
	assert {name for name, _link in links(one)} == {one, other}


def test_a_long_chain_is_read_in_part_and_with_the_one_that_was_asked_for(world, monkeypatch):
	monkeypatch.setattr(successors, "MOST_LINKS", 4)
	names = [make_job(world.a).name]
	for _number in range(6):
		names.append(make_job(world.a, retry_of=names[-1]).name)
	assert [name for name, _link in links(names[3])] == names[2:6]


def test_a_chain_is_found_by_indexes(world):
	"""Without one, each question would read every job of the site."""
	for table, column in (("tabBackground Job", "retry_of"), ("tabJob Run", "background_job")):
		query = f"explain select name from `{table}` where {column} in ('a', 'b')"
		if frappe.db.db_type == "mariadb":
			assert frappe.db.sql(query, as_dict=True)[0]["key"]
		else:
			frappe.db.sql("set local enable_seqscan = off")
			assert "Index" in str(frappe.db.sql(query))


# over HTTP


@pytest.fixture(scope="module")
def browsers(world):
	people = ["user_a", "colleague_a", "admin_a", "manager", "user_b", "admin_b", "stranger"]
	return {person: Browser(getattr(world, person)) for person in people}


@pytest.fixture(scope="module")
def dead(world):
	first, last = fail_until_dead(world, retries=1)
	return frappe._dict(first=first, last=last, run=runs_of(last)[0].name)


def call(browser, method: str, **arguments):
	answer = browser.get(f"/api/method/{API}.{method}", **arguments)
	assert answer.status_code == 200, answer.get_data(as_text=True)[-2000:]
	return answer.json["message"]


@pytest.mark.parametrize("person", ["user_a", "admin_a", "manager"])
def test_whoever_may_follow_a_job_reads_its_runs_and_chain(browsers, dead, person):
	(run,) = call(browsers[person], "list_runs", job=dead.last)["runs"]
	assert (run["name"], run["status"], run["attempt"], run["uncounted"]) == (dead.run, "Failed", 2, False)
	assert run["started_at"][-6] in "+-"
	whole = call(browsers[person], "get", run=dead.run)
	assert whole["parameters"] == {"attempts": 99}
	assert whole["error"]["type"] == "Transient"
	assert ("traceback" in whole) == (person != "user_a")
	told = call(browsers[person], "chain", job=dead.last)
	assert [(link["name"], link["link"]) for link in told] == [(dead.first, None), (dead.last, "retry")]
	assert told[1]["run"] == dead.run


@pytest.mark.parametrize("person", ["colleague_a", "user_b", "admin_b", "stranger"])
def test_others_find_nothing(browsers, dead, person):
	for arguments in ({"job": dead.last}, {"job": "never-was"}):
		assert browsers[person].call(f"{API}.list_runs", **arguments).status_code == 404
		assert browsers[person].call(f"{API}.chain", **arguments).status_code == 404
	for name in (dead.run, "never-was"):
		assert browsers[person].call(f"{API}.get", run=name).status_code == 404
	assert browsers["user_a"].get(f"/api/resource/Job Run/{dead.run}").status_code == 403


def test_an_edited_replay_is_its_editors_and_not_shown_to_the_owner(world, browsers):
	_first, last = fail_until_dead(world, retries=1)
	frappe.set_user(world.admin_a)
	edited = dead_letters.replay(last, {"attempts": 1}).name
	frappe.db.commit()
	assert edited not in [link["name"] for link in call(browsers["user_a"], "chain", job=last)]
	assert edited in [link["name"] for link in call(browsers["admin_a"], "chain", job=last)]


def test_runs_are_paged_newest_first_and_uncounted_ones_are_among_them(world, browsers):
	job_name = handed_back(world, "Same Job")
	_run(job_name)
	job_type = frappe.db.get_value("Background Job", job_name, "job_type")
	frappe.db.set_value("Job Type", job_type, "handler_method", SAMPLES + "fail_for_a_while")
	for _attempt in range(3):
		_run(job_name)
	seen, cursor = [], None
	while True:
		more = {"cursor": cursor} if cursor else {}
		page = call(browsers["manager"], "list_runs", job=job_name, limit=2, **more)
		seen += [(run["name"], run["attempt"], run["uncounted"]) for run in page["runs"]]
		if not (cursor := page["next"]):
			break
	assert [run[1:] for run in seen] == [(3, False), (2, False), (1, False), (1, True), (1, True)]
	assert [name for name, *_rest in reversed(seen)] == [run.name for run in runs_of(job_name)]
	with pytest.raises(InvalidJobError, match="not where a page ended"):
		api.list_runs(job_name, cursor="nonsense")


def test_runs_that_outlive_their_job_are_read_by_whoever_might_follow_it(world, browsers):
	_first, last = fail_until_dead(world, retries=1)
	(run,) = runs_of(last)
	frappe.db.delete("Background Job", {"name": last})
	frappe.db.commit()
	for person in ("user_a", "admin_a"):
		assert call(browsers[person], "list_runs", job=last)["runs"][0]["name"] == run.name
		assert call(browsers[person], "get", run=run.name)["status"] == "Failed"
	for person in ("colleague_a", "admin_b", "stranger"):
		assert browsers[person].call(f"{API}.list_runs", job=last).status_code == 404
		assert browsers[person].call(f"{API}.get", run=run.name).status_code == 404
