"""Names of jobs: no transaction waits for another, none is used twice, the turn of the year is no event."""

import subprocess
import sys
import textwrap
import time
from datetime import datetime

import frappe
import pytest

from dartwing_jobs import clock
from dartwing_jobs.engine import naming
from dartwing_jobs.tests.world import make_job

OTHER_PROCESS = """
import frappe, sys
from dartwing_jobs.tests.world import make_job
frappe.init({site!r})
frappe.connect()
names = [make_job({organization!r}).name for _ in range({count})]
frappe.db.commit()
print(" ".join(names))
frappe.destroy()
"""


def submit_elsewhere(organization: str, count: int = 1) -> subprocess.Popen:
	script = OTHER_PROCESS.format(site=frappe.local.site, organization=organization, count=count)
	return subprocess.Popen(
		[sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True
	)


def names_from(process: subprocess.Popen) -> list[str]:
	output, _ = process.communicate(timeout=60)
	assert process.returncode == 0
	return output.split()


def test_names_follow_the_series(world):
	first, second = make_job(world.a).name, make_job(world.a).name
	year = clock.now().year
	assert first.startswith(f"JOB-{year}-")
	assert int(second.rpartition("-")[2]) > int(first.rpartition("-")[2])


def test_an_uncommitted_submit_keeps_nobody_waiting(world):
	mine = make_job(world.a).name
	(theirs,) = names_from(submit_elsewhere(world.a))
	assert theirs != mine
	frappe.db.rollback()
	assert frappe.db.exists("Background Job", theirs)


def test_names_are_drawn_without_waiting(world):
	make_job(world.a)
	started = time.monotonic()
	naming.next_job_name()
	assert time.monotonic() - started < 0.1


def test_processes_never_draw_the_same_name(world):
	names = [
		name for process in [submit_elsewhere(world.a, 20) for _ in range(4)] for name in names_from(process)
	]
	assert len(names) == len(set(names)) == 80


@pytest.mark.parametrize("year", [2026, 2027])
def test_the_turn_of_the_year_is_no_event(world, monkeypatch, year):
	monkeypatch.setattr(clock, "now", lambda: datetime(year, 1, 1))
	assert make_job(world.a).name.startswith(f"JOB-{year}-")
