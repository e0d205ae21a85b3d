"""Background jobs with real RQ workers, and the scheduler."""

from .conftest import wait_for

IMPORT = "from frappe.utils import background_jobs as bj\n"


def test_a_worker_forks_commits_what_succeeds_and_logs_what_fails(bench):
	bench.python(
		"frappe.enqueue('notes_app.api.add', title='half done', fail=1, queue='short', job_id='bad')"
	)
	enqueued = "frappe.enqueue('notes_app.api.add', title='from a job', job_id='a:b')"
	assert bench.python(f"answer = {enqueued}.id") == "notes-localhost--a-b"
	bench.run("worker", "--burst", "--queue", "short,default")
	assert bench.steps()[-2:] == [
		"after_job notes_app.api.add None",
		"after_job notes_app.api.add from a job",
	]
	status = f"{IMPORT}answer = [bj.get_job(name).get_status() for name in ('bad', 'a:b')]"
	assert bench.python(status) == ["failed", "finished"]
	added = (
		"answer = frappe.get_all('Note Item', {'name': ['in', ['half done', 'from a job']]}, pluck='name')"
	)
	assert bench.python(added) == ["from a job"]
	error = bench.python("answer = frappe.get_last_doc('Error Log').as_dict()")
	assert error["method"] == "notes_app.api.add"
	assert "no such luck" in error["error"]


def test_enqueue_waits_for_the_commit_and_knows_what_waits(bench):
	code = f"""
{IMPORT}
def counted(**arguments):
	frappe.enqueue("notes_app.api.add", queue="long", **arguments)
	return bj.get_queue("long").count
answer = [counted(title="late", enqueue_after_commit=True)]
frappe.db.commit()
answer.append(counted(title="never", enqueue_after_commit=True))
frappe.db.rollback()
frappe.db.commit()
answer += [counted(title="once", job_id="once", deduplicate=True) for _ in range(2)]
frappe.conf.max_queued_jobs = 2
for wrong in ({{}}, {{"deduplicate": True}}, {{"queue": "nope"}}):
	try:
		frappe.enqueue("notes_app.api.add", **{{"queue": "long", **wrong}})
	except frappe.ValidationError as error:
		answer.append(type(error).__name__)
bj.get_queue("long").empty()
"""
	assert bench.python(code) == [0, 1, 2, 2, "QueueOverloaded", "ValidationError", "ValidationError"]


def test_schedules_come_from_hooks_and_fall_due(bench):
	code = """
from datetime import datetime
names = frappe.get_all("Scheduled Job Type", pluck="method", order_by="method")
job = frappe.get_doc("Scheduled Job Type", {"method": "notes_app.api.for_all"})
job.last_execution = datetime(2026, 1, 1, 12, 1)
due = [job.is_event_due(datetime(2026, 1, 1, 12, minute)) for minute in (4, 5, 30)]
answer = [names, job.cron_format, due]
"""
	names, cron, due = bench.python(code)
	assert names == ["notes_app.api.each_hour", "notes_app.api.for_all"]
	assert (cron, due) == ("*/5 * * * *", [False, True, True])


def test_the_scheduler_enqueues_what_is_due_and_a_worker_runs_it(bench):
	row = "'Scheduled Job Type', 'api.each_hour', 'last_execution'"
	bench.python(f"frappe.db.set_value({row}, '2026-01-01 00:00:00')")
	bench.run("set-config", "-g", "-p", "scheduler_tick_interval", "1")
	bench.python("from frappe.utils.scheduler import enable_scheduler; enable_scheduler()")
	with bench.background("schedule"):
		ask = f"{IMPORT}answer = bj.is_job_enqueued('scheduled_job::notes_app.api.each_hour')"
		wait_for(lambda: bench.python(ask))
	bench.run("worker", "--burst")
	assert bench.python("answer = frappe.db.exists('Note Item', 'hourly')")
	assert bench.python(f"answer = frappe.db.get_value({row})") > "2026-01-02"
