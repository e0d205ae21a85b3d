"""What could have no end has one: empty groups, files that stay, long histories, long lines of children."""

import os
from datetime import timedelta

import frappe
import pytest

from dartwing_jobs import cancel_group, clock, group, submit, submit_many
from dartwing_jobs.api import jobs as jobs_api
from dartwing_jobs.api import runs as runs_api
from dartwing_jobs.engine import dependents, metrics, retention, statements, submission, sweep
from dartwing_jobs.engine.groups import groups
from dartwing_jobs.engine.handling import outputs
from dartwing_jobs.errors import GroupEnded, InvalidJobError
from dartwing_jobs.tests.world import (
	REPEATABLE,
	make_job,
	make_job_type,
	make_organization,
	plant,
	stored_status,
)

OLD = timedelta(days=31)


@pytest.fixture
def now():
	return clock.now().replace(microsecond=0)


@pytest.fixture
def counted(monkeypatch):
	"""How many statements are sent inside."""
	real, sent = statements._send, []

	def send(statement: str, values: tuple | list):
		sent.append((statement, values))
		return real(statement, values)

	monkeypatch.setattr(statements, "_send", send)
	return sent


# groups without members


def test_a_group_that_is_made_without_jobs_ends_at_once(world):
	new = group("nothing to do", [], organization=world.a)
	frappe.db.commit()
	frappe.db.rollback()
	assert (new.reload().status, groups.group_status(new.name)) == ("Completed", "Completed")
	assert new.ended_at
	with pytest.raises(GroupEnded):
		submit(REPEATABLE, None, world.a, job_group=new.name)


def test_whoever_waits_for_an_empty_group_is_called_back(world):
	new = group("nothing to do", [], organization=world.a, on_completion=REPEATABLE)
	frappe.db.commit()
	frappe.db.rollback()
	assert stored_status(new.reload().callback_job) == "Queued"


def test_jobs_that_join_in_the_same_transaction_keep_a_group_open(world):
	new = group("filled later", [], organization=world.a)
	submit(REPEATABLE, None, world.a, job_group=new.name)
	frappe.db.commit()
	frappe.db.rollback()
	assert new.reload().status == "Queued"


def test_a_group_that_was_never_filled_goes_with_the_rest(world, now):
	old, young, filled = (_group_of(world.a) for _number in range(3))
	submit(REPEATABLE, None, world.a, job_group=filled)
	for name in (old, filled):
		frappe.db.set_value("Job Group", name, "modified", now - OLD, update_modified=False)
	frappe.db.commit()
	assert retention.delete_empty_groups(now) >= 1
	assert [bool(frappe.db.exists("Job Group", name)) for name in (old, young, filled)] == [False, True, True]
	assert "groups" in retention.clean_up()


def _group_of(organization: str) -> str:
	fields = {"doctype": "Job Group", "group_name": "open", "organization": organization}
	return frappe.get_doc(fields).insert().name


# files that cannot be deleted


def test_one_file_that_cannot_be_deleted_does_not_stop_retention(world, now):
	job_type = make_job_type().name
	stuck, free = (_old_job_with_a_file(world.a, job_type, now) for _number in range(2))
	address = frappe.get_doc("File", {"attached_to_name": stuck}).get_full_path()
	os.remove(address)
	os.mkdir(address)  # what is no file cannot be removed as one
	frappe.db.commit()
	retention.delete_expired_jobs(now)
	frappe.db.rollback()
	assert [bool(frappe.db.exists("Background Job", name)) for name in (stuck, free)] == [True, False]
	assert frappe.db.exists("File", {"attached_to_name": stuck})
	assert frappe.db.get_value("Job Trouble", {"about": stuck}, "failures") == 1
	os.rmdir(address)
	frappe.db.delete("Job Trouble", {"about": stuck})
	frappe.db.commit()
	retention.delete_expired_jobs(now)
	assert not frappe.db.exists("Background Job", stuck)


def _old_job_with_a_file(organization: str, job_type: str, now) -> str:
	name = make_job(organization, job_type=job_type).name
	outputs.attach(name, "result.csv", frappe.generate_hash())
	plant(name, status="Completed", modified=now - OLD, run_at=None)
	return name


# pages


def test_a_history_is_read_in_pages(world):
	job = submit(REPEATABLE, None, world.a).name
	frappe.db.commit()
	whole = [event["event"] for event in jobs_api.history(job)]
	first = jobs_api.history(job, limit=1)
	second = jobs_api.history(job, cursor=first[-1]["cursor"], limit=1)
	assert [event["event"] for event in first + second] == whole == ["job.created", "job.enqueued"]
	assert jobs_api.history(job, cursor=second[-1]["cursor"]) == []


def test_a_history_has_no_more_than_a_page(world):
	job = submit(REPEATABLE, None, world.a)
	row = {"background_job": job.name, "organization": world.a, "event": "note", "timestamp": clock.now()}
	names = [frappe.generate_hash(length=20) for _number in range(250)]
	statements.insert("Job Execution Log", [{"name": name, **row} for name in names])
	assert len(jobs_api.history(job.name)) == 200
	assert len(jobs_api.history(job.name, limit=10**6)) == 200


def test_a_chain_is_read_in_pages(world):
	links = [make_job(world.a).name]
	for _number in range(3):
		links.append(make_job(world.a, retry_of=links[-1]).name)
	first = runs_api.chain(links[0], limit=3)
	rest = runs_api.chain(links[0], cursor=first[-1]["name"], limit=3)
	assert [link["name"] for link in first + rest] == links


# what is done in one go


def test_a_cancel_of_a_group_is_bounded_and_the_sweep_goes_on(world, monkeypatch):
	monkeypatch.setattr(groups, "BATCH", 2)
	monkeypatch.setattr(groups, "BATCHES_AT_ONCE", 2)
	monkeypatch.setattr(groups, "BATCHES_OF_A_SWEEP", 3)
	new = group("many", {"job_type": REPEATABLE, "parameters": [{}] * 12}, organization=world.a)
	frappe.db.commit()
	cancel_group(new.name, "enough")
	frappe.db.commit()
	assert _canceled(new.name) == 4
	groups.cancel_left_behind()
	assert _canceled(new.name) == 10
	groups.cancel_left_behind()
	assert (_canceled(new.name), new.reload().status) == (12, "Canceled")


def _canceled(name: str) -> int:
	frappe.db.rollback()
	return frappe.db.count("Background Job", {"job_group": name, "status": "Canceled"})


def test_a_cancel_does_not_read_again_what_it_has_canceled(world, monkeypatch, counted):
	"""Each page begins behind the last one: else a group of a thousand is read a hundred times."""
	monkeypatch.setattr(groups, "BATCH", 5)
	new = group("many", {"job_type": REPEATABLE, "parameters": [{}] * 30}, organization=world.a)
	frappe.db.commit()
	cancel_group(new.name)
	frappe.db.commit()
	look = groups.WAITING.format(groups.BATCH)
	places = [values[1] for statement, values in counted if statement == look]
	assert places[:7] == [groups.LAST_PLACE, 26, 21, 16, 11, 6, 1]


def test_who_follows_children_stops_in_time_and_the_sweep_goes_on(world, monkeypatch):
	monkeypatch.setattr(dependents, "BATCH", 1)
	monkeypatch.setattr(dependents, "ROUNDS_AT_ONCE", 3)
	line = [submit(REPEATABLE, None, world.a).name]
	for _number in range(10):
		line.append(submit(REPEATABLE, None, world.a, depends_on=line[-1]).name)
	frappe.db.commit()
	plant(line[0], status="Canceled", run_at=None, line=None, claim_key=0)
	frappe.db.commit()
	dependents.follow_all([line[0]])
	frappe.db.rollback()
	waiting = [name for name in line if stored_status(name) == "Pending"]
	assert 0 < len(waiting) < 10
	for _number in range(10):
		sweep.sweep()
	frappe.db.rollback()
	assert {stored_status(name) for name in line} == {"Canceled"}


def test_a_long_line_of_parents_is_one_question(world, counted):
	parents = [make_job(world.a).name]
	for _number in range(150):
		parents.append(make_job(world.a).name)
		plant(parents[-1], depends_on=parents[-2], run_at=None)
	del counted[:]
	submission.check_dependency(frappe._dict(name=None, depends_on=parents[-1]))
	assert len(counted) == 1


def test_parents_that_have_ended_are_not_asked_whom_they_waited_for(world, counted):
	"""They wait for no job: a circle behind them is history."""
	first, second = make_job(world.a).name, make_job(world.a).name
	plant(first, depends_on=second, status="Completed", run_at=None)
	plant(second, depends_on=first, status="Completed", run_at=None)
	submission.check_dependency(frappe._dict(name=None, depends_on=second))


def test_figures_do_not_grow_with_history(world, monkeypatch):
	monkeypatch.setattr(metrics, "MOST_COUNTED", 3)
	monkeypatch.setattr(metrics, "MOST_RUNS", 4)
	organization = make_organization("Long history")
	submit_many(REPEATABLE, [{}] * 5, organization)
	figures = metrics.get_job_metrics(organization)
	assert (figures["statuses"]["Queued"], figures["statuses"]["Completed"]) == (3, 0)
	assert figures["counted_up_to"] == 3
	assert sum(one["runs"] for one in figures["types"]) <= 4


def test_figures_of_the_site_count_every_type(world):
	before = metrics.get_job_metrics()["statuses"]
	submit_many(make_job_type().name, [{}] * 2, world.a)
	submit_many(make_job_type().name, [{}] * 3, world.b)
	assert metrics.get_job_metrics()["statuses"]["Queued"] == before["Queued"] + 5


def test_a_circle_among_those_who_wait_is_still_refused(world):
	first, second = make_job(world.a).name, make_job(world.a).name
	plant(first, depends_on=second, run_at=None)
	plant(second, depends_on=first, run_at=None)
	with pytest.raises(InvalidJobError, match="circle"):
		submission.check_dependency(frappe._dict(name=None, depends_on=first))
