"""Structured logs: one line per committed event, with the ids of the job and without secrets."""

import json
import logging
import os
import random

import frappe
import pytest

from dartwing_jobs import PermanentError, job_handler, submit
from dartwing_jobs.engine.observing import journal
from dartwing_jobs.testing import run_job
from dartwing_jobs.tests.processes import in_other_processes
from dartwing_jobs.tests.world import REPEATABLE, make_job_type, make_queue

IDS = {"request_id": "R-1", "correlation_id": "C-1", "project_id": "P-1"}
KEYS = ["ts", "level", "event", "request_id", "correlation_id", "job_id", "job", "job_type", "org_id"]
KEYS += ["project_id", "attempt", "queue", "duration", "error_class"]


@job_handler
def fail_with_a_secret(parameters: dict, context) -> None:
	raise PermanentError("The service refused password=hunter2")


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
