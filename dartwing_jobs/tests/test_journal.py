"""Structured logs: one line per committed event, with the ids of the job and without secrets."""

import ast
import json
import logging
import os
import random
from pathlib import Path

import frappe
import pytest
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

import dartwing_jobs
from dartwing_jobs import PermanentError, job_handler, submit
from dartwing_jobs.engine import bell
from dartwing_jobs.engine.handling.surroundings import Surroundings
from dartwing_jobs.engine.observing import journal, reports
from dartwing_jobs.testing import run_job, start_job
from dartwing_jobs.tests.processes import in_other_processes
from dartwing_jobs.tests.world import REPEATABLE, make_job_type, make_queue

IDS = {"request_id": "R-1", "correlation_id": "C-1", "project_id": "P-1"}
KEYS = ["ts", "level", "event", "request_id", "correlation_id", "job_id", "job", "job_type", "org_id"]
KEYS += ["project_id", "attempt", "queue", "duration", "error_class"]


@job_handler
def fail_with_a_secret(parameters: dict, context) -> None:
	raise PermanentError("The service refused password=hunter2")


@job_handler
def report_a_trouble(parameters: dict, context) -> None:
	reports.to_log("A trouble of the engine", ValueError("password=hunter2"))


@pytest.fixture
def verbose(monkeypatch):
	monkeypatch.setitem(frappe.local.conf, "dartwing_log_level", "INFO")


def lines_of(job_name: str) -> list[dict]:
	path = os.path.join(frappe.local.site_path, "logs", journal.FILE)
	if not os.path.exists(path):
		return []
	with open(path, encoding="utf-8") as file:
		return [line for line in map(json.loads, file) if line["job"] == job_name]


def test_by_default_what_went_wrong_is_told(world):
	job_type = make_job_type(handler_method=f"{__name__}.fail_with_a_secret").name
	job = submit(job_type, None, world.a, job_queue=make_queue(), **IDS)
	frappe.db.commit()
	run_job(job.name)
	(line,) = lines_of(job.name)
	assert set(KEYS) <= set(line)
	assert (line["event"], line["level"], line["attempt"]) == ("job.deadlettered", "WARNING", 1)
	assert line["error_class"] == "dartwing_jobs.errors.PermanentError"
	assert (line["org_id"], line["job_type"], line["job_id"]) == (world.a, job_type, job.job_id)
	assert IDS.items() <= line.items() and line["duration"] > 0
	assert line["message"] == "The service refused password=***"


def test_everything_is_told_to_those_who_ask(world, verbose):
	job = submit("sample_job", None, world.a, job_queue=make_queue(), correlation_id="token=hunter2")
	assert lines_of(job.name) == []
	frappe.db.commit()
	lines = lines_of(job.name)
	assert [line["event"] for line in lines] == ["job.created", "job.enqueued"]
	assert {line["correlation_id"] for line in lines} == {"token=***"}


def test_what_is_rolled_back_is_not_told(world, verbose):
	job = submit(REPEATABLE, None, world.a)
	frappe.db.rollback()
	frappe.db.commit()
	assert lines_of(job.name) == []


@pytest.mark.parametrize("word", ["nonsense", "", None, "warning"])
def test_a_level_that_nobody_meant_is_the_default(word):
	assert journal.lowest_level(word) == logging.WARNING


def test_a_disk_that_takes_no_more_fails_nothing(world, verbose, monkeypatch):
	monkeypatch.setattr(journal, "_file", lambda folder: journal.SharedFile("/dev/full"))
	job = submit("sample_job", None, world.a, job_queue=make_queue())
	frappe.db.commit()
	assert frappe.db.exists("Background Job", job.name)


def lines() -> list[dict]:
	path = os.path.join(frappe.local.site_path, "logs", journal.FILE)
	with open(path, encoding="utf-8") as file:
		return list(map(json.loads, file))


def test_a_line_of_the_engine_has_the_ids_of_the_job_that_runs(world):
	job_type = make_job_type(handler_method=f"{__name__}.report_a_trouble").name
	job = submit(job_type, None, world.a, job_queue=make_queue(), **IDS)
	frappe.db.commit()
	run_job(job.name)
	(line,) = lines_of(job.name)
	assert set(KEYS) <= set(line)
	assert (line["event"], line["level"]) == ("engine.log", "ERROR")
	assert (line["org_id"], line["job_type"], line["job_id"]) == (world.a, job_type, job.job_id)
	assert IDS.items() <= line.items()
	assert line["error_class"] == "builtins.ValueError"
	assert line["message"].startswith("A trouble of the engine\n") and "password=***" in line["message"]


def test_a_process_that_a_job_changed_is_told_with_its_ids(world):
	job = submit(REPEATABLE, None, world.a, job_queue=make_queue(), **IDS)
	frappe.db.commit()
	attempt = start_job(job.name)
	attempt.surroundings = Surroundings()
	attempt.poison(["the umask"])
	(line,) = lines_of(job.name)
	assert IDS.items() <= line.items() and "the umask changed" in line["message"]
	frappe.db.rollback()


def test_a_line_of_a_request_has_its_ids(site, monkeypatch):
	headers = {"X-Request-Id": "R-7", "X-Correlation-Id": "C-7"}
	monkeypatch.setattr(
		frappe.local, "request", Request(EnvironBuilder(headers=headers).get_environ()), raising=False
	)
	reports.to_log("Something of a request", ValueError("no"))
	line = lines()[-1]
	assert (line["request_id"], line["correlation_id"], line["job_id"]) == ("R-7", "C-7", None)


def test_a_line_about_nothing_in_particular_has_the_same_keys(site, monkeypatch):
	monkeypatch.setattr(bell, "_needs_message", lambda *_given: 1 / 0)
	assert bell.ring("short") is False
	line = lines()[-1]
	assert set(KEYS) <= set(line) and line["job"] is None
	assert line["message"].startswith("Could not ring for short")


def test_no_line_of_ours_is_written_past_the_journal():
	engine = Path(dartwing_jobs.__file__).parent
	found = {
		str(file.relative_to(engine))
		for file in engine.rglob("*.py")
		if "tests" not in file.parts
		for node in ast.walk(ast.parse(file.read_text()))
		if getattr(node, "attr", None) in ("logger", "getLogger")
	}
	# where it cannot write itself
	assert found == {"engine/observing/journal.py"}


def test_many_processes_share_a_file_that_is_put_aside_when_it_is_large(tmp_path, monkeypatch):
	monkeypatch.setattr(journal, "LARGEST_FILE", 20_000)
	monkeypatch.setattr(journal, "FILES_KEPT", 50)
	path = str(tmp_path / "shared.log")
	in_other_processes(_write_lines, *[(path, writer) for writer in range(3)])
	names = [name for name in os.listdir(tmp_path) if not name.endswith(".lock")]
	assert len(names) > 3
	lines = [line for name in names for line in (tmp_path / name).read_text().splitlines()]
	assert sorted(lines) == sorted(_line(writer, number) for writer in range(3) for number in range(1000))


def _write_lines(path: str, writer: int) -> None:
	shared = journal.SharedFile(path)
	for number in range(1000):
		shared.write(f"{_line(writer, number)}\n".encode())


def _line(writer: int, number: int) -> str:
	return f"{writer}:{number}:" + "x" * random.Random(number).randrange(100)


def test_a_file_that_somebody_removes_is_begun_anew(tmp_path):
	shared = journal.SharedFile(str(tmp_path / "removed.log"))
	for text in ("first", "second"):
		shared.write(f"{text}\n".encode())
		assert (tmp_path / "removed.log").read_text() == f"{text}\n"
		os.remove(tmp_path / "removed.log")


def test_of_old_files_the_last_ones_are_kept(tmp_path, monkeypatch):
	monkeypatch.setattr(journal, "LARGEST_FILE", 1)
	shared = journal.SharedFile(str(tmp_path / "kept.log"))
	for number in range(20):
		shared.write(f"line {number}\n".encode())
	kept = sorted(name for name in os.listdir(tmp_path) if not name.endswith(".lock"))
	assert kept == ["kept.log", *(f"kept.log.{number}" for number in range(1, journal.FILES_KEPT + 1))]
	assert (tmp_path / "kept.log.1").read_text() == "line 18\n"
