"""Retention: which jobs go and when, what goes along, and that nobody has to wait for it."""

import subprocess
import sys
from datetime import timedelta

import frappe
import pytest

from dartwing_jobs import clock, hooks
from dartwing_jobs.engine import database, retention, states
from dartwing_jobs.tests.world import make_job, make_job_type, plant, story

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
OLD = 31 * DAY


@pytest.fixture
def now():
	return clock.now().replace(microsecond=0)


@pytest.fixture
def job_type():
	return make_job_type().name


@pytest.fixture
def ended(world, now, job_type):
	"""Makes a job that ended so long ago, on a site where none is due yet."""
	retention.delete_expired_jobs(now)
	names = []

	def make(status: str = "Completed", ago: timedelta = OLD, **fields) -> str:
		job = make_job(world.a, **{"job_type": job_type, **fields})
		plant(job.name, status=status, modified=now - ago, run_at=None)
		names.append(job.name)
		return job.name

	yield make
	frappe.db.rollback()
	frappe.db.delete("Background Job", {"name": ["in", names]})
	frappe.db.commit()


@pytest.fixture
def small_batches(monkeypatch):
	monkeypatch.setattr(retention, "BATCH", 2)


def clean(now, **options) -> int:
	frappe.db.commit()
	return retention.delete_expired_jobs(now, **options)


def kept(*names: str) -> list[str]:
	return [name for name in names if frappe.db.exists("Background Job", name)]


def plant_row(doctype: str, **columns) -> str:
	"""A row of a DocType that only the engine writes."""
	columns["name"] = frappe.generate_hash(length=20)
	frappe.db.bulk_insert(doctype, list(columns), [list(columns.values())])
	return columns["name"]


def plant_key(world, **columns) -> str:
	now = clock.now()
	digest = frappe.generate_hash(length=64)
	times = {"first_seen_at": now, "last_seen_at": now}
	columns = {"organization": world.a, "key_hash": digest, "idempotency_key": digest, **times, **columns}
	return plant_row("Job Idempotency Key", **columns)


@pytest.mark.parametrize("status", states.ALL)
def test_only_ended_jobs_go(ended, now, status):
	name = ended(status)
	clean(now)
	assert kept(name) == ([] if status in states.TERMINAL else [name])


@pytest.mark.parametrize(("ago", "stays"), [(30 * DAY, True), (30 * DAY + SECOND, False), (29 * DAY, True)])
def test_they_stay_for_thirty_days(ended, now, ago, stays):
	name = ended(ago=ago)
	clean(now)
	assert bool(kept(name)) == stays


def test_a_job_type_has_its_own_days(ended, now):
	short, long = make_job_type(retention_days=1).name, make_job_type(retention_days=365).name
	names = [
		ended(ago=25 * timedelta(hours=1), job_type=short),
		ended(ago=23 * timedelta(hours=1), job_type=short),
		ended(ago=364 * DAY, job_type=long),
		ended(ago=366 * DAY, job_type=long),
	]
	clean(now)
	assert kept(*names) == names[1:3]


def test_the_settings_have_theirs(ended, now):
	settings = frappe.get_doc("Job Engine Settings")
	settings.update({"retention_days": 7}).save()
	name, younger = ended(ago=8 * DAY), ended(ago=6 * DAY)
	clean(now)
	settings.reload().update({"retention_days": 30}).save()
	frappe.db.commit()
	assert kept(name, younger) == [younger]


def test_jobs_of_a_type_that_is_gone_go_too(ended, now):
	job_type = make_job_type().name
	name = ended(job_type=job_type)
	frappe.db.delete("Job Type", {"name": job_type})
	clean(now)
	assert kept(name) == []


@pytest.mark.parametrize("status", ["Failed", "Timed Out"])
def test_a_failure_goes_once_its_successor_has_ended(ended, now, status):
	failed = ended(status)
	alone = ended(status)
	successor = ended("Queued", retry_of=failed)
	clean(now)
	assert kept(failed, alone) == [failed, alone]
	plant(successor, status="Completed", modified=now)
	clean(now)
	assert kept(failed, alone, successor) == [alone, successor]


def test_what_unfinished_jobs_need_stays(ended, now):
	parent, dead = ended(), ended("Dead Letter")
	child, replay = ended("Pending", depends_on=parent), ended("Running", retry_of=dead)
	clean(now)
	assert kept(parent, dead) == [parent, dead]
	for name in (child, replay):
		plant(name, status="Canceled", modified=now)
	clean(now)
	assert kept(parent, dead, child, replay) == [child, replay]


def test_what_belongs_to_a_job_goes_along(world, ended, now):
	name, neighbour = ended(), ended(ago=DAY)
	for job in (name, neighbour):
		plant_row("Job Step", background_job=job, organization=world.a, step_key="a", key_hash="a")
		plant_row("Job Run", background_job=job, organization=world.a, status="Completed")
		plant_key(world, background_job=job)
	assert clean(now) == 1
	assert (story(name), len(story(neighbour))) == ([], 1)
	for doctype in ("Job Run", "Job Step", "Job Idempotency Key"):
		assert not frappe.db.exists(doctype, {"background_job": name}), doctype
		assert frappe.db.exists(doctype, {"background_job": neighbour}), doctype


def test_runs_can_be_kept(world, ended, now):
	settings = frappe.get_doc("Job Engine Settings")
	settings.update({"keep_runs": 1}).save()
	name = ended()
	run = plant_row("Job Run", background_job=name, organization=world.a, status="Completed")
	clean(now)
	settings.reload().update({"keep_runs": 0}).save()
	frappe.db.commit()
	assert kept(name) == []
	assert frappe.db.exists("Job Run", run)


def test_a_group_goes_with_its_last_job(world, ended, now):
	group = frappe.get_doc({"doctype": "Job Group", "group_name": "g", "organization": world.a}).insert().name
	ended(job_group=group)
	last = ended(ago=DAY, job_group=group)
	clean(now)
	assert frappe.db.exists("Job Group", group)
	plant(last, modified=now - OLD)
	clean(now)
	assert not frappe.db.exists("Job Group", group)


def test_a_run_has_an_end(ended, now, small_batches):
	names = [ended(ago=OLD + number * SECOND) for number in range(5)]
	assert clean(now, most_batches=2) == 4
	assert kept(*names) == names[:1]
	assert clean(now) == 1


def test_jobs_that_stay_do_not_hide_those_behind_them(ended, now, small_batches):
	"""Five parents at the head, all of the same moment: more than two batches that delete nothing."""
	parents = [ended(ago=2 * OLD) for _ in range(5)]
	for parent in parents:
		ended("Pending", depends_on=parent)
	expired = ended()
	assert clean(now) == 1
	assert kept(*parents, expired) == parents


def elsewhere(expression: str) -> subprocess.Popen:
	script = f"""
import frappe
from datetime import datetime
from dartwing_jobs.engine import retention
frappe.init({frappe.local.site!r}); frappe.connect()
print({expression})
frappe.destroy()
"""
	return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)


def answer(process: subprocess.Popen) -> str:
	output, _nothing = process.communicate(timeout=60)
	assert process.returncode == 0
	return output.strip()


def test_what_somebody_holds_is_left_for_next_time(ended, now):
	held, free = ended(), ended()
	frappe.db.commit()
	frappe.db.get_value("Background Job", held, "name", for_update=True)
	assert int(answer(elsewhere(f"retention.delete_expired_jobs(datetime.fromisoformat('{now}'))"))) == 1
	frappe.db.rollback()
	assert kept(held, free) == [held]
	assert clean(now) == 1


def test_two_at_once_share_the_work(ended, now):
	names = [ended(ago=OLD + number * SECOND) for number in range(30)]
	frappe.db.commit()
	script = (
		f"setattr(retention, 'BATCH', 3) or retention.delete_expired_jobs(datetime.fromisoformat('{now}'))"
	)
	counts = [int(answer(process)) for process in [elsewhere(script), elsewhere(script)]]
	clean(now)
	assert kept(*names) == []
	assert sum(counts) <= 30


def test_expired_keys_go_in_bounded_batches(world, small_batches):
	now = database.utc_now().replace(microsecond=0)
	retention.delete_expired_keys(now)
	expired = [plant_key(world, expires_at=now - number * SECOND) for number in range(1, 6)]
	others = [plant_key(world, expires_at=moment) for moment in (now, now + DAY, None)]
	frappe.db.commit()
	assert retention.delete_expired_keys(now, most_batches=2) == 4
	assert retention.delete_expired_keys(now) == 1
	assert not frappe.db.get_all("Job Idempotency Key", filters={"name": ["in", expired]})
	assert frappe.db.count("Job Idempotency Key", {"name": ["in", others]}) == 3
	frappe.db.delete("Job Idempotency Key", {"name": ["in", others]})
	frappe.db.commit()


def test_the_scheduler_and_an_operator_can_start_it(ended, now):
	name = ended()
	frappe.db.commit()
	(path,) = hooks.scheduler_events["hourly_long"]
	assert frappe.db.exists("Scheduled Job Type", {"method": path, "frequency": "Hourly Long"})
	assert frappe.get_attr(path)()["jobs"] >= 1
	frappe.db.rollback()
	assert kept(name) == []


@pytest.fixture
def crowd(world, now):
	"""Twenty thousand jobs of one type in every status, a quarter of them old."""
	job_type = make_job_type().name
	columns = ["name", "job_type", "organization", "status", "creation", "modified"]
	rows = [
		[f"{job_type}-{number:05}", job_type, world.a, states.ALL[number % 8], now, now - number * DAY / 500]
		for number in range(20_000)
	]
	frappe.db.bulk_insert("Background Job", columns, rows)
	frappe.db.commit()
	analyze = {"mariadb": "analyze table `tabBackground Job`", "postgres": 'analyze "tabBackground Job"'}
	frappe.db.multisql(analyze)
	yield job_type
	frappe.db.rollback()
	frappe.db.delete("Background Job", {"job_type": job_type})
	frappe.db.commit()


@pytest.mark.parametrize("further", [False, True])
def test_an_index_serves_each_batch(crowd, now, further):
	"""In the order of the index, without sorting what has to be looked at."""
	after = (now - 36 * DAY, f"{crowd}-18000") if further else None
	query = retention.expired(crowd, "Completed", now - 30 * DAY, after)
	assert query.run()
	if frappe.db.db_type == "mariadb":
		(plan,) = frappe.db.sql(f"explain {query}", as_dict=True)
		assert (plan.type, plan.key) == ("range", "idx_job_type_status")
		assert "filesort" not in plan.Extra and "temporary" not in plan.Extra
	else:
		plan = "\n".join(line for (line,) in frappe.db.sql(f"explain {query}"))
		assert "idx_job_type_status" in plan
		assert "Sort" not in plan and "Seq Scan" not in plan


def test_a_chain_of_failures_goes_with_its_end(world):
	"""All of one age: whichever is looked at first, none may stay because another has gone."""
	job_type, now = make_job_type().name, clock.now()
	names, before = [], None
	for number, status in enumerate((states.FAILED, states.FAILED, states.COMPLETED)):
		job = make_job(world.a, job_type=job_type, retry_of=before)
		moment = now - timedelta(days=40) + timedelta(seconds=number)
		plant(job.name, status=status, modified=moment, run_at=None)
		before = job.name
		names.append(before)
	frappe.db.commit()
	for _hour in range(3):
		retention.delete_expired_jobs(now)
	assert [name for name in names if frappe.db.exists("Background Job", name)] == []
