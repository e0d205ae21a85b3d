"""Metrics: counted once whatever happens to jobs and processes, shown to those who may see them."""

import contextvars
import json
import os
import subprocess
import sys
from datetime import timedelta

import frappe
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from prometheus_client.parser import text_string_to_metric_families
from rq import Queue, Worker

from dartwing_jobs import PermanentError, TransientError, clock, job_handler, submit, submit_many
from dartwing_jobs.api import metrics as api
from dartwing_jobs.engine import bell, database, retention, rows, statements, sweep
from dartwing_jobs.engine.observing import counters, gauges
from dartwing_jobs.engine.observing.counters import Counter
from dartwing_jobs.testing import run_job, start_job
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.processes import in_other_processes
from dartwing_jobs.tests.world import make_job_type, make_organization, make_queue, plant

PATH = "/api/method/dartwing_jobs.api.metrics.prometheus"
TOKEN = "s3cret-of-the-scraper"
LOG = "Job Execution Log"
# what a column holds: no text ends with NUL or half a character
labels = some.text(some.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=140)


@job_handler
def fail_twice(parameters: dict, context) -> None:
	context.cost_cents = 5
	if context.attempt < 3:
		raise TransientError("not yet")


@job_handler
def fail_for_good(parameters: dict, context) -> None:
	raise PermanentError("never")


@pytest.fixture
def queue(site):
	name = make_queue()
	frappe.db.commit()  # who counts everything first begins a new transaction
	return name


@pytest.fixture
def type_of(site):
	def make(handler=None, **fields) -> str:
		path = {"handler_method": f"{__name__}.{handler.__name__}"} if handler else {}
		return make_job_type(**path, **fields).name

	return make


@pytest.fixture
def token(site):
	"""The token in the site's configuration, as an operator would set it."""
	path = os.path.join(frappe.local.site_path, "site_config.json")
	with open(path) as file:
		before = file.read()

	def configure(value: str | None) -> None:
		with open(path, "w") as file:
			json.dump({**json.loads(before), **({"dartwing_metrics_token": value} if value else {})}, file)

	configure(TOKEN)
	yield configure
	with open(path, "w") as file:
		file.write(before)


@pytest.fixture
def everything_counted():
	counters.fold(60)


def scraped(authorization: str | None = f"Bearer {TOKEN}", path: str = PATH, **query):
	headers = {"X-Frappe-Site-Name": frappe.local.site}
	headers |= {"Authorization": authorization} if authorization else {}
	options = {"query_string": query}
	return contextvars.Context().run(Browser._request, "GET", path, headers, options)


def samples(text: str | None = None) -> dict[tuple, float]:
	"""Each sample by its name and its labels."""
	families = text_string_to_metric_families(text or api.prometheus().get_data(as_text=True))
	return {
		(sample.name, *sorted(sample.labels.items())): sample.value
		for family in families
		for sample in family.samples
	}


def sample(found: dict, name: str, **labels) -> float | None:
	return found.get((name, *sorted(labels.items())))


def run_to_its_end(job_name: str) -> None:
	while frappe.db.get_value("Background Job", job_name, "status") == "Queued":
		run_job(job_name)


def test_a_scraper_with_the_token_gets_prometheus_text(token):
	answer = scraped()
	assert answer.status_code == 200
	assert answer.content_type.startswith("text/plain; version=")
	assert ("jobs_workers_alive",) in samples(answer.get_data(as_text=True))


@pytest.mark.parametrize("authorization", [None, "Bearer wrong", f"Bearer {TOKEN}x", "Bearer ", "Bearer"])
def test_without_the_token_nothing_is_shown(token, authorization):
	answer = scraped(authorization)
	assert answer.status_code in (401, 403)
	assert b"jobs_" not in answer.get_data()


def test_a_wrong_token_is_forbidden(token):
	assert scraped("Bearer wrong").status_code == 403


def test_no_token_in_the_configuration_opens_nothing(token):
	token(None)
	assert scraped("Bearer None").status_code == 403
	assert scraped(None).status_code == 403


def test_the_token_opens_nothing_else(token):
	assert scraped(path="/api/method/frappe.auth.get_logged_user").status_code in (401, 501)
	assert scraped(path="/api/resource/Background Job").status_code == 401
	other = scraped(cmd="frappe.auth.get_logged_user")
	assert other.status_code in (401, 403) or b"jobs_workers_alive" in other.get_data()
	assert b"scraper" not in other.get_data()


def test_system_managers_need_no_token_and_others_see_nothing(world, token):
	assert Browser(world.manager).get(PATH).status_code == 200
	assert Browser(world.admin_a).get(PATH).status_code == 403
	assert Browser(world.manager).post(PATH).status_code == 403


def test_a_job_is_counted_from_its_submit_to_its_end(world, queue, type_of):
	job_type = type_of()
	run_job(submit(job_type, None, world.a, job_queue=queue).name)
	found, which = samples(), {"job_type": job_type, "queue": queue}
	for name in ("jobs_enqueued_total", "jobs_started_total", "jobs_succeeded_total"):
		assert sample(found, name, **which) == 1
	assert sample(found, "jobs_duration_seconds_count", **which) == 1
	assert sample(found, "jobs_duration_seconds_bucket", **which, le="+Inf") == 1
	assert sample(found, "jobs_attempts_histogram_bucket", job_type=job_type, le="1.0") == 1
	assert sample(found, "deadletter_total", **which) is None


def test_failures_are_counted_by_their_class(world, queue, type_of):
	again, never = type_of(fail_twice), type_of(fail_for_good)
	for job_type in (again, never):
		job = submit(job_type, None, world.a, job_queue=queue).name
		frappe.db.commit()
		run_to_its_end(job)
	found, which = samples(), {"job_type": again, "queue": queue}
	assert sample(found, "jobs_failed_total", **which, error_class="dartwing_jobs.errors.TransientError") == 2
	assert sample(found, "jobs_retried_total", **which) == 2
	assert sample(found, "jobs_started_total", **which) == 3
	assert sample(found, "jobs_attempts_histogram_sum", job_type=again) == 3
	assert sample(found, "jobs_attempts_histogram_bucket", job_type=again, le="2.0") == 0
	which = {"job_type": never, "queue": queue}
	assert sample(found, "jobs_failed_total", **which, error_class="dartwing_jobs.errors.PermanentError") == 1
	assert sample(found, "deadletter_total", **which) == 1
	assert sample(found, "jobs_attempts_histogram_count", job_type=never) == 1


def test_a_second_fold_counts_nothing_twice(world, queue, type_of):
	run_job(submit(type_of(), None, world.a, job_queue=queue).name)
	before = {key: value for key, value in samples().items() if "_total" in key[0]}
	counters.fold(60)
	after = samples()
	assert {key: after.get(key) for key in before} == before


def test_what_retention_deletes_was_counted(world, queue, type_of, everything_counted):
	job_type = type_of()
	job = submit(job_type, None, world.a, job_queue=queue).name
	run_job(job)
	plant(job, modified=clock.now() - timedelta(days=1000))
	frappe.db.commit()
	assert frappe.db.count(LOG, {"background_job": job, "uncounted": 1}) == 3
	retention.delete_expired_jobs(clock.now())
	assert not frappe.db.exists("Background Job", job)
	assert counters.read(Counter("jobs_succeeded_total", job_type, queue)) == 1
	assert counters.read(Counter("jobs_started_total", job_type, queue)) == 1


def test_what_somebody_deletes_was_counted(world, queue, type_of, everything_counted):
	job_type = type_of()
	job = submit(job_type, None, world.a, job_queue=queue).name
	run_job(job)
	frappe.delete_doc("Background Job", job)
	frappe.db.rollback()
	assert counters.read(Counter("jobs_succeeded_total", job_type, queue)) is None
	frappe.delete_doc("Background Job", job)
	frappe.db.commit()
	assert counters.read(Counter("jobs_succeeded_total", job_type, queue)) == 1


def test_many_who_fold_at_once_count_each_row_once(world, queue, type_of, everything_counted, monkeypatch):
	monkeypatch.setattr(counters, "BATCH", 50)
	job_type = type_of()
	submit_many(job_type, [{}] * 1000, world.a, job_queue=queue)
	frappe.db.commit()
	folded = in_other_processes(counters.fold, *[(60,)] * 4)
	assert counters.fold(60) + sum(folded) == 1000
	frappe.db.rollback()
	assert counters.read(Counter("jobs_enqueued_total", job_type, queue)) == 1000
	frappe.db.delete("Background Job", {"job_type": job_type})
	frappe.db.delete(LOG, {"job_type": job_type})
	frappe.db.commit()


def test_a_fold_waits_for_nobody(world, queue, type_of, everything_counted):
	"""Not for a submit that is not committed yet; and that is counted later."""
	job_type = type_of()
	frappe.db.commit()
	submit(job_type, None, world.a, job_queue=queue)
	assert in_other_processes(counters.fold, (60,)) == [0]
	frappe.db.commit()
	assert counters.fold(60) == 1


def test_a_submit_waits_for_no_fold(world, queue, type_of):
	"""One that is in the middle of its batch: what it has read must not close the table to others."""
	job_type = type_of()
	submit(job_type, None, world.a, job_queue=queue)
	frappe.db.commit()
	database.begin_read_committed()
	locked = statements.fetch(f"select name from `tab{LOG}` where uncounted = 1 for update skip locked")
	assert locked
	assert in_other_processes(_submit_at_once, (job_type, world.a, queue)) == [True]
	frappe.db.rollback()


def _submit_at_once(job_type: str, organization: str, queue: str) -> bool:
	if frappe.db.db_type == "mariadb":
		frappe.db.sql("set innodb_lock_wait_timeout = 2")
	else:
		frappe.db.sql("set lock_timeout = '2s'")
	frappe.db.commit()
	job = submit(job_type, None, organization, job_queue=queue)
	frappe.db.commit()
	return frappe.db.exists("Background Job", job.name) == job.name


def test_the_level_of_isolation_is_the_folds_alone(world, queue, type_of):
	isolation = {"mariadb": "select @@tx_isolation", "postgres": "show transaction_isolation"}
	before = frappe.db.multisql(isolation)
	frappe.db.rollback()
	counters.fold(1)
	assert frappe.db.multisql(isolation) == before


@settings(max_examples=30)
@given(some.lists(some.tuples(labels, labels, labels), min_size=1, max_size=5, unique=True))
def test_whatever_labels_say_can_be_read_back(given_labels):
	frappe.db.rollback()
	frappe.db.delete(counters.DOCTYPE)
	for number, (job_type, queue, error_class) in enumerate(given_labels, start=1):
		counters.add({Counter(counters.FAILED, job_type, queue, error_class): number})
		counters.add({Counter(counters.DURATION, job_type, queue, bucket="0.5"): 1})
	stored = statements.fetch(f"select * from `tab{counters.DOCTYPE}`")
	scrape = api.CollectorRegistry()
	scrape.register(OnlyCounters(stored))
	found = samples(api.generate_latest(scrape).decode())
	frappe.db.rollback()
	for number, (job_type, queue, error_class) in enumerate(given_labels, start=1):
		which = {"job_type": job_type, "queue": queue}
		assert sample(found, "jobs_failed_total", **which, error_class=error_class) == number
		assert sample(found, "jobs_duration_seconds_bucket", **which, le="+Inf") >= 1


class OnlyCounters:
	def __init__(self, stored: list):
		self.stored = stored

	def describe(self) -> list:
		return []

	def collect(self):
		yield api._counter(counters.FAILED, self.stored)
		yield api._histogram(counters.DURATION, self.stored)


def test_who_waits_is_counted_by_priority_and_by_age(world, queue, type_of):
	job_type, priorities = type_of(), ["Low", "Low", "Critical"]
	jobs = [submit(job_type, None, world.a, job_queue=queue, priority=one).name for one in priorities]
	plant(jobs[0], modified=clock.now() - timedelta(seconds=500))
	frappe.db.set_value("Job Queue", queue, "max_wait_seconds", 60)
	frappe.db.commit()
	found = samples()
	assert sample(found, "jobs_waiting", queue=queue, priority="Low") == 2
	assert sample(found, "jobs_waiting", queue=queue, priority="Critical") == 1
	assert 500 <= sample(found, "jobs_oldest_waiting_seconds", queue=queue) < 560
	assert sample(found, "jobs_wait_objective_seconds", queue=queue) == 60
	(shown,) = [one for one in api.get_job_metrics()["queues"] if one["queue"] == queue]
	assert (shown["waiting"], shown["is_late"]) == (3, True)
	assert shown["waiting_by_priority"] == {"Low": 2, "Critical": 1}


def test_who_runs_is_counted(world, queue, type_of):
	job = submit(type_of(), None, world.a, job_queue=queue).name
	frappe.db.commit()
	start_job(job)
	assert sample(samples(), "jobs_running", queue=queue) == 1
	assert gauges.running([world.b]).get(queue) is None


def test_workers_are_counted_while_they_live(site):
	name = frappe.utils.background_jobs.get_queue("short").name
	connection = bell.client()
	before, worker = (
		gauges.workers_alive(),
		Worker([Queue(name, connection=connection)], connection=connection),
	)
	worker.register_birth()
	assert gauges.workers_alive() == before + 1
	connection.delete(worker.key)  # as when it has not been heard of for long
	assert gauges.workers_alive() == before
	worker.register_death()


def test_redis_that_does_not_answer_is_no_reason_to_tell_nothing(site, monkeypatch):
	sweep.sweep()
	monkeypatch.setitem(frappe.local.conf, "redis_queue", "redis://127.0.0.1:1")
	assert gauges.workers_alive() is None
	assert sample(samples(), "jobs_seconds_since_last_sweep") is not None
	assert sample(samples(), "jobs_workers_alive") is None


def test_a_sweep_is_remembered(site):
	sweep.sweep()
	assert 0 <= gauges.seconds_since_sweep() < 30
	counters.raise_to(gauges.SWEPT, 1)  # somebody whose clock is slow
	assert gauges.seconds_since_sweep() < 30


def test_figures_of_an_organization(type_of, queue):
	organization, job_type = make_organization(), type_of(fail_twice)
	job = submit(job_type, None, organization, job_queue=queue).name
	frappe.db.commit()
	run_to_its_end(job)
	durations = [0.1] * 95 + [9.0] * 5
	plant_runs(organization, job_type, durations)
	figures = api.get_job_metrics(organization)
	assert (figures["statuses"]["Completed"], sum(figures["statuses"].values())) == (1, 1)
	(of_type,), (of_organization,) = figures["types"], figures["organizations"]
	assert (of_type["job_type"], of_type["runs"], of_type["failed"]) == (job_type, 103, 2)
	assert of_type["failure_rate"] == pytest.approx(2 / 103)
	assert of_type["average_seconds"] == pytest.approx(54.5 / 103, abs=0.1)
	assert 0.1 <= of_type["p95_seconds"] <= 0.11
	assert (of_organization["organization"], of_organization["cost_cents"]) == (organization, 15)
	assert api.get_job_metrics(organization, hours=0.000001)["types"] == []


def plant_runs(organization: str, job_type: str, durations: list[float]) -> None:
	told = {"organization": organization, "job_type": job_type, "status": "Completed"}
	now = clock.now()
	statements.insert(
		"Job Run", [rows.new("Administrator", now, **told, duration_seconds=one) for one in durations]
	)
	frappe.db.commit()


def test_an_admin_sees_the_figures_of_their_own_organizations_only(world, queue, type_of):
	for organization in (world.a, world.b):
		run_job(submit(type_of(), None, organization, job_queue=queue).name)
		submit(type_of(), None, organization, job_queue=queue)
	frappe.db.commit()
	frappe.set_user(world.admin_a)
	figures = api.get_job_metrics()
	assert [row["organization"] for row in figures["organizations"]] == [world.a]
	assert next(one["waiting"] for one in figures["queues"] if one["queue"] == queue) == 1
	for status, number in figures["statuses"].items():
		there = frappe.db.count("Background Job", {"organization": world.a, "status": status})
		assert number == min(there, figures["counted_up_to"])
	with pytest.raises(frappe.PermissionError):
		api.get_job_metrics(world.b)


@pytest.mark.parametrize("person", ["user_a", "stranger"])
def test_figures_are_for_admins(world, person):
	answer = Browser(getattr(world, person)).get("/api/method/dartwing_jobs.api.metrics.get_job_metrics")
	assert answer.status_code == 403


def test_figures_over_http(world):
	answer = Browser(world.admin_a).get("/api/method/dartwing_jobs.api.metrics.get_job_metrics", hours=1)
	assert answer.status_code == 200
	assert {"statuses", "queues", "types", "organizations", "workers_alive"} <= set(answer.json["message"])


def test_each_batch_is_found_by_its_index(world, queue, type_of, everything_counted):
	"""However much has been counted: a fold reads what it counts."""
	submit_many(type_of(), [{}] * 20, world.a, job_queue=queue)
	frappe.db.commit()
	statement = f"""select name from `tab{LOG}` force index (idx_uncounted) where uncounted = 1 and name > ''
		order by name limit 10"""
	if frappe.db.db_type == "mariadb":
		(plan,) = statements.fetch(f"explain {statement}")
		assert plan.key == "idx_uncounted" and "filesort" not in plan.Extra
	else:
		statements.execute(f"analyze `tab{LOG}`")
		statements.execute("set local enable_seqscan = off")
		plan = "\n".join(row["QUERY PLAN"] for row in statements.fetch(f"explain {statement}"))
		assert "idx_uncounted" in plan and "Sort" not in plan


def test_only_the_endpoint_imports_the_library(site):
	script = "import sys, dartwing_jobs.engine.sweep, dartwing_jobs.scraper, dartwing_jobs.engine.metrics;"
	script += "print('prometheus_client' in sys.modules)"
	done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
	assert done.stdout.strip() == "False", done.stderr
