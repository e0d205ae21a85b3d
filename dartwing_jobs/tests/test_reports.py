"""No secret leaves the engine with an error: not into Error Log, logs, standard error, or what RQ keeps."""

import ast
import binascii
import json
import subprocess
import zlib
from base64 import b64decode
from pathlib import Path

import frappe
import pytest
from frappe.utils.background_jobs import get_redis_conn

import dartwing_jobs
from dartwing_jobs import submit
from dartwing_jobs.engine import alerts, bell, drain, pauses, retention, sweep
from dartwing_jobs.engine.intake import best_effort
from dartwing_jobs.engine.observing import reports
from dartwing_jobs.errors import EngineFailed
from dartwing_jobs.tests import confiding, workers
from dartwing_jobs.tests.confiding import SECRET
from dartwing_jobs.tests.world import REPEATABLE, make_job_type, make_queue, stored_status

ENGINE = Path(dartwing_jobs.__file__).parent / "engine"
MESSAGE = f"{confiding.__name__}.message"


def error_logs() -> list[str]:
	frappe.db.rollback()
	rows = frappe.get_all("Error Log", fields=["method", "error"], order_by="creation desc", limit=20)
	return [f"{row.method}\n{row.error}" for row in rows]


def log_files() -> str:
	folders = (Path("..") / "logs", Path(frappe.local.site_path) / "logs")
	files = [file for folder in folders for file in folder.glob("*.log*")]
	return "".join(file.read_text(errors="replace") for file in files)


def kept_in_redis() -> str:
	"""Everything that RQ keeps of messages: their fields, and how they ended."""
	redis, kept = get_redis_conn(), []
	for key in redis.scan_iter("rq:*"):
		kind = redis.type(key)
		kept += redis.hgetall(key).values() if kind == b"hash" else []
		kept += (
			[entry for _id, fields in redis.xrange(key) for entry in fields.values()]
			if kind == b"stream"
			else []
		)
	return "".join(_readable(value) for value in kept)


def _readable(value: bytes) -> str:
	for unpacked in (zlib.decompress, lambda packed: zlib.decompress(b64decode(packed))):
		try:
			return unpacked(value).decode(errors="replace")
		except (zlib.error, binascii.Error):
			continue  # most of it is not packed
	return value.decode(errors="replace")


# what escapes


@pytest.mark.parametrize("kind", ["error", "exit"])
def test_what_escapes_a_message_has_no_secret_no_variables_and_no_cause(site, kind):
	with pytest.raises(EngineFailed) as caught:
		confiding.message(kind)
	error = caught.value
	assert (error.__cause__, error.__context__) == (None, None)
	assert "password=***" in str(error)
	frames, frame = [], caught.tb
	while frame:
		frames.append(str(frame.tb_frame.f_locals))
		frame = frame.tb_next
	assert not [variables for variables in frames[1:] if SECRET in variables]


@pytest.mark.parametrize(
	"entry", [drain.answer, sweep.sweep, pauses.mark_held, alerts.call_for_all, retention.clean_up]
)
def test_every_entry_of_the_engine_is_masked(entry):
	"""What messages and the scheduler call."""
	assert entry.__wrapped__
	assert entry.__code__ is reports.masked(entry).__code__


# what is written


def test_only_one_file_writes_errors():
	"""All others go through it: what Frappe and logging would write has the variables, or the secrets."""
	found = []
	for file in ENGINE.rglob("*.py"):
		for node in ast.walk(ast.parse(file.read_text())):
			name = getattr(node, "attr", None) or getattr(node, "arg", None)
			if name in ("log_error", "exc_info", "exception", "print_exc", "format_exc"):
				found.append(f"{file.relative_to(ENGINE)}: {name}")
	# the alert for an organization that is gone tells of no error
	assert sorted(found) == ["alerts.py: log_error", "observing/reports.py: log_error"]


def test_the_error_log_and_the_log_are_masked(site):
	try:
		confiding._fail()
	except ValueError as error:
		reports.to_error_log(f"token={SECRET}", error)
		reports.to_log(f"token={SECRET}", error)
	frappe.db.commit()
	written = error_logs()[0]
	assert "token=***" in written and "password=***" in written
	assert "confiding.py" in written
	assert json.dumps("token=***\nTraceback")[1:-1] in log_files()
	assert SECRET not in written + log_files()


def test_a_submit_that_may_fail_tells_without_secrets(world):
	def fail():
		note = f"password={SECRET}"
		raise ValueError(note)

	assert best_effort.attempt(fail, REPEATABLE) is None
	frappe.db.commit()
	written = error_logs()[0]
	assert f"{REPEATABLE} could not be submitted" in written
	assert "password=***" in written
	assert SECRET not in written


def test_redis_that_does_not_answer_is_told_without_secrets(world, monkeypatch):
	def fail(*_arguments):
		raise ConnectionError(f"redis://:{SECRET}@cache.example.com")

	monkeypatch.setattr(bell, "_needs_message", fail)
	assert bell.ring("short") is False
	assert "redis://:***@cache.example.com" in log_files()
	assert SECRET not in log_files()


def test_an_error_after_the_commit_is_masked(world):
	queue = make_queue()
	job_type = make_job_type(handler_method=f"{confiding.__name__}.fail_after_the_commit").name
	job = submit(job_type, {}, world.a, job_queue=queue).name
	frappe.db.commit()
	drain.drain([queue])
	(written,) = [text for text in error_logs() if text.startswith(job)]
	assert "password=***" in written
	assert SECRET not in written


def test_an_output_that_lets_people_in_is_masked_wherever_it_is_stored(world):
	queue = make_queue()
	job_type = make_job_type(handler_method=f"{confiding.__name__}.refer_to_an_output").name
	job = submit(job_type, {}, world.a, job_queue=queue, idempotency_key=f"key-of-{queue}").name
	frappe.db.commit()
	drain.drain([queue])
	masked = "https://ann:***@files.example.com/report.csv"
	assert frappe.db.get_value("Background Job", job, ["status", "output_reference"]) == ("Completed", masked)
	assert frappe.db.get_value("Job Run", {"background_job": job}, "output_reference") == masked
	details = frappe.get_all("Job Execution Log", {"background_job": job}, pluck="details")
	assert [masked in str(text) for text in details].count(True) == 1
	keys = frappe.get_all("Job Idempotency Key", {"background_job": job}, pluck="result_ref")
	assert keys == [masked]
	assert not [text for text in map(str, details) if SECRET in text]


# with a real worker


def test_what_cannot_be_recorded_leaves_no_secret_behind(world):
	"""Neither in the database, nor in the logs, nor in what the worker prints, nor in Redis."""
	queue = workers.make_queue()
	jobs = [
		workers.submit(world.a, queue, f"{confiding.__name__}.{handler}", max_retries=0)
		for handler in ("cannot_be_recorded", "leave")
	]
	frappe.enqueue(MESSAGE, queue="short", kind="error")
	worker = subprocess.Popen(
		[*workers.COMMAND, "short"], start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
	)
	try:
		for job in jobs:
			workers.wait_until(lambda job=job: stored_status(job) == "Dead Letter", 60)
		workers.wait_until(lambda: "Could not go on: password=***" in kept_in_redis(), 30)
	finally:
		worker.terminate()
		printed = worker.communicate(timeout=30)[0].decode(errors="replace")
		workers.retire_queue(queue)
	told = "\n".join(error_logs())
	assert "Could not write: The service refused {'text': 'password=***" in told
	assert f"{MESSAGE}\n" in told
	everything = told + log_files() + kept_in_redis() + printed
	assert SECRET not in everything
