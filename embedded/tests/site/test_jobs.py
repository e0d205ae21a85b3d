"""Background jobs with real RQ workers, and the scheduler."""

import pytest

from .conftest import wait_for

IMPORT = "from frappe.utils import background_jobs as bj\n"


def notes(bench) -> list[str]:
	return bench.python("answer = frappe.get_all('Note Item', pluck='name', order_by='creation')")


def enqueue(bench, arguments: str) -> str | None:
	return bench.python(f"job = frappe.enqueue({arguments})\nanswer = job and job.id")


def forget(bench) -> None:
	bench.python(f"{IMPORT}[queue.empty() for queue in bj.get_queues()]")


def test_a_worker_forks_runs_and_commits_a_job(bench):
	job_id = enqueue(bench, "'notes_app.jobs.write', title='from a job', queue='short', job_id='a:b'")
	assert job_id == "notes-localhost--a-b"
	worker = bench.run("worker", "--burst", "--queue", "short,default")
	assert worker.returncode == 0
	assert "from a job" in notes(bench)
	assert bench.steps()[-2:] == [
		"before_job notes_app.jobs.write",
		"after_job notes_app.jobs.write from a job",
	]
	assert bench.python(f"{IMPORT}answer = bj.get_job_status('a:b')") == "finished"


def test_a_failing_job_is_rolled_back_and_logged(bench):
	enqueue(bench, "'notes_app.jobs.fail', title='half done', job_id='doomed'")
	bench.run("worker", "--burst")
	assert "half done" not in notes(bench)
	errors = bench.python("answer = frappe.get_all('Error Log', fields=['method', 'error'])")
	assert any(e["method"] == "notes_app.jobs.fail" and "as asked" in e["error"] for e in errors)
	assert bench.python(f"{IMPORT}answer = bj.get_job_status('doomed')") == "failed"


def test_enqueue_after_commit_waits_for_it(bench):
	code = f"""
{IMPORT}
waiting = lambda: bj.get_queue("default").count
frappe.enqueue("notes_app.jobs.write", title="late", enqueue_after_commit=True)
answer = [waiting()]
frappe.db.commit()
answer.append(waiting())
frappe.enqueue("notes_app.jobs.write", title="never", enqueue_after_commit=True)
frappe.db.rollback()
frappe.db.commit()
answer.append(waiting())
"""
	assert bench.python(code) == [0, 1, 1]
	forget(bench)


def test_deduplicate_enqueues_a_waiting_job_once(bench):
	arguments = "'notes_app.jobs.write', title='once', job_id='once', deduplicate=True"
	assert enqueue(bench, arguments)
	assert enqueue(bench, arguments) is None
	forget(bench)


def test_now_runs_here_and_drops_unknown_arguments(bench):
	code = "answer = frappe.enqueue('notes_app.jobs.write', title='now', now=True, unknown=1)"
	assert bench.python(code) == "now"


@pytest.mark.parametrize(
	("arguments", "error"),
	[
		("'notes_app.jobs.write', queue='nope'", "ValidationError"),
		("'notes_app.jobs.write', deduplicate=True", "ValidationError"),
	],
)
def test_enqueue_refuses(bench, arguments, error):
	code = f"try:\n\tfrappe.enqueue({arguments})\nexcept Exception as e:\n\tanswer = type(e).__name__"
	assert bench.python(code) == error


def test_a_full_queue_is_an_error(bench):
	code = """
frappe.conf.max_queued_jobs = 1
frappe.enqueue("notes_app.jobs.write", title="first", queue="long")
try:
	frappe.enqueue("notes_app.jobs.write", title="second", queue="long")
except frappe.QueueOverloaded:
	answer = "full"
"""
	assert bench.python(code) == "full"
	forget(bench)


def test_schedules_come_from_hooks_and_fall_due(bench):
	code = """
from datetime import datetime
rows = {row.method: row for row in frappe.get_all("Scheduled Job Type", fields=["name", "method"])}
job = frappe.get_doc("Scheduled Job Type", rows["notes_app.jobs.each_five_minutes"].name)
job.last_execution = datetime(2026, 1, 1, 12, 1)
due = [job.is_event_due(datetime(2026, 1, 1, 12, minute)) for minute in (4, 5, 30)]
answer = [sorted(rows), job.cron_format, due]
"""
	names, cron, due = bench.python(code)
	assert names == ["notes_app.jobs.each_five_minutes", "notes_app.jobs.each_hour"]
	assert (cron, due) == ("*/5 * * * *", [False, True, True])


def test_the_scheduler_enqueues_what_is_due_and_a_worker_runs_it(bench):
	bench.run("set-config", "-g", "-p", "scheduler_tick_interval", "1")
	overdue = (
		"frappe.db.set_value('Scheduled Job Type', 'jobs.each_hour', 'last_execution', '2026-01-01 00:00:00')"
	)
	bench.python(overdue)
	bench.run("enable-scheduler")
	with bench.background("schedule"):
		ask = f"{IMPORT}answer = bj.is_job_enqueued('scheduled_job::notes_app.jobs.each_hour')"
		wait_for(lambda: bench.python(ask))
	bench.run("disable-scheduler")
	bench.run("worker", "--burst")
	assert "hourly" in notes(bench)
	ran = bench.python(
		"answer = frappe.db.get_value('Scheduled Job Type', 'jobs.each_hour', 'last_execution')"
	)
	assert ran > "2026-01-02"
