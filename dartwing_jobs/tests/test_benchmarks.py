"""The benchmark's own logic: what is claimed, what is not, and that what it wraps is there to be wrapped."""

import contextlib
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path

import frappe
import pytest

from benchmarks import compare, docs, report
from benchmarks.commits import PRESENT
from benchmarks.counts import FULL, NORMAL, QUICK
from benchmarks.measurements import (
	CELERY,
	CELERY_LATE,
	MEASUREMENTS,
	NATIVE,
	OURS,
	PEERS,
	Measurement,
	percentile,
)
from benchmarks.remote import Environment, Remote, RemoteError
from benchmarks.results import Results
from benchmarks.rounds import RunningSystems, measure
from benchmarks.systems import plain_table, work
from benchmarks.systems.engine_parts import STEPS
from benchmarks.systems.native import Native
from benchmarks.systems.stopwatch import Stopwatch, places
from benchmarks.systems.tally import Tally, hold, stamp
from benchmarks.targets import TARGETS
from dartwing_jobs import samples

HERE = Environment(
	Path(sys.executable), Path.cwd(), {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
)


BEST = "Empty jobs, against the best peer"


@pytest.fixture
def results() -> Results:
	"""Ours beats two peers, loses to one; native is far behind."""
	made = Results(facts={"home": "a planted site"}, counts=asdict(NORMAL))
	for system, rates in {
		OURS: [900, 1000, 2000],
		"Celery": [700, 800, 900],
		CELERY_LATE: [780, 780, 780],
		"Dramatiq": [1, 500, 5000],
		"Procrastinate": [1250, 1250, 1250],
		NATIVE: [10, 10, 10],
	}.items():
		for rate in rates:
			made.add("throughput", system, {"per second": rate})
	return made


class SlowToSubmit(Native):
	def submit_stamp(self, number: int) -> None:
		time.sleep(0.008)


def cells(results: Results) -> list[str]:
	return list(report.comparison_table(results).rows[0])


def test_figures_are_medians_and_ratios_are_to_the_best(results):
	_title, *figures, best, native = cells(results)
	assert figures == ["1,000 (900-2,000)", "800 (700-900)", "780", "500 (1.00-5,000)", "1,250", "10.0"]
	assert best == "0.80x (0.72x-1.60x) Procrastinate"
	assert native == "100.00x (90.00x-200.00x) frappe.enqueue"


def test_a_ratio_is_taken_round_by_round(results):
	"""A round that was slow for both says nothing against either."""
	made = Results()
	for own, other in ((10, 20), (100, 200), (40, 80)):
		made.add("throughput", OURS, {"per second": own})
		made.add("throughput", CELERY, {"per second": other})
	assert made.ratio("throughput", OURS, "per second", (CELERY,)) == ((0.5, 0.5, 0.5), CELERY)


def test_what_did_not_run_is_said_and_no_ratio_to_it_is_claimed(results):
	results.give_up("throughput", "Procrastinate", "no PostgreSQL")
	results.give_up("throughput", NATIVE, "no worker")
	_title, *figures, best, native = cells(results)
	assert figures[4:] == ["not run", "not run"]
	assert best == "1.29x (1.25x-2.22x) Celery"
	assert native == "-"
	assert "Procrastinate was not run in throughput: no PostgreSQL" in report.text(results)


def test_the_target_against_the_best_peer_needs_all_peers(results):
	reached = {row[0]: row[-1] for row in report.target_table(results).rows}
	assert reached[BEST] == "missed"
	assert reached["Empty jobs, against frappe.enqueue"] == "goal"
	results.give_up("throughput", CELERY, "not installed")
	row = next(row for row in report.target_table(results).rows if row[0] == BEST)
	assert (row[1], row[-1]) == ("-", "-")


def test_what_this_command_does_not_measure_is_promised_all_the_same(results):
	rows = {row[0]: row[1:] for row in report.target_table(results).rows}
	assert rows["A killed worker's job runs again"] == ["not by this command", "15 s", "5 s", "-"]


def test_the_best_waiting_time_is_the_shortest(results):
	for system, milliseconds in {
		OURS: 9,
		CELERY: 3,
		"Dramatiq": 27,
		"Procrastinate": 6,
		CELERY_LATE: 1,
	}.items():
		results.add("latency", system, {"p50 ms": milliseconds, "p99 ms": 2 * milliseconds})
	row = next(row for row in report.comparison_table(results).rows if "warm, p50" in row[0])
	assert row[-2] == "3.00x Celery"


def test_a_target_that_bounds_from_above_is_reached_from_below(results):
	target = next(target for target in TARGETS if "warm, p99" in target.title)
	assert [target.verdict(value) for value in (14, 50, 51)] == ["goal", "must", "missed"]


def test_every_figure_survives_the_file(results, tmp_path):
	results.give_up("submit", CELERY, "why")
	results.write(tmp_path / "deep" / "results.json")
	assert Results.read(tmp_path / "deep" / "results.json") == results


def test_the_page_shows_published_results_and_no_others(results, tmp_path):
	results.write(tmp_path / "embedded.json")
	Results(facts={"home": "a hasty site"}, counts=asdict(QUICK)).write(tmp_path / "quick-embedded.json")
	docs.write(tmp_path / "page.md", tmp_path)
	page = (tmp_path / "page.md").read_text()
	assert "## On a planted site" in page
	assert "0.80x (0.72x-1.60x) Procrastinate" in page
	assert "hasty" not in page


def test_docs_are_what_the_results_say():
	"""No figure in docs/benchmarks.md is typed by hand: `bin/benchmark --write-docs` writes it."""
	assert docs.PAGE.read_text() == docs.page(docs.published())


def test_every_measurement_has_its_place_in_the_report():
	only_promised = {"cold-start", "schedules"}
	shown = {row.measurement for row in report.COMPARISONS} | set(report.DETAILS) | only_promised
	assert shown == {measurement.name for measurement in MEASUREMENTS}


def test_as_much_is_measured_as_was_promised():
	assert (FULL.memory_first, FULL.memory_last) == (1000, 20_000)
	assert (NORMAL.schedules, NORMAL.schedules_due) == (10_000, 1000)
	assert (NORMAL.group_few, NORMAL.group_many) == (2000, 10_000)
	assert NORMAL.rounds == FULL.rounds == 10


def test_two_commits_are_shown_with_the_ratio_of_each_round():
	found = Results(counts=asdict(NORMAL))
	for here, there in ((120, 100), (90, 100), (300, 200)):
		found.add("throughput", PRESENT, {"per second": here})
		found.add("throughput", "83b8fe9", {"per second": there})
	row = ["throughput, per second", "120 (90.0-300)", "100 (100-200)", "1.20x (0.90x-1.50x)"]
	assert compare.table(found, "83b8fe9").rows == [row]


def test_only_what_every_commit_has_can_be_compared():
	assert set(compare.COMPARABLE) < {measurement.name for measurement in MEASUREMENTS}


def test_percentile_is_a_value_that_was_measured():
	assert percentile(list(range(1, 101)), 99) == 99
	assert percentile([3, 1, 2], 99) == 3
	assert percentile([5], 50) == 5


def test_a_round_measures_each_system_once_before_the_next_begins(results):
	turns = []

	def take(_systems, name, _counts):
		turns.append(name)
		return {"per second": 1}

	with contextlib.ExitStack() as stack:
		systems = RunningSystems(Path(), stack)
		measure(systems, [Measurement("throughput", PEERS, take)], QUICK, Results())
		two_rounds = type(QUICK)(**{**asdict(QUICK), "rounds": 2})
		turns.clear()
		measure(systems, [Measurement("throughput", PEERS, take)], two_rounds, Results())
	assert turns == [*PEERS, *reversed(PEERS)]


def test_a_peer_that_does_not_start_is_not_run(tmp_path):
	with contextlib.ExitStack() as stack:
		systems = RunningSystems(tmp_path, stack)
		systems.start(CELERY, HERE)  # this environment has no such package, or it is told of no broker
		found = Results()
		throughput = next(one for one in MEASUREMENTS if one.name == "throughput")
		measure(systems, [Measurement("throughput", (CELERY,), throughput.take)], QUICK, found)
	assert found.samples == {}
	assert "Error" in found.not_run["throughput"][CELERY]


def test_a_system_is_called_in_another_process(tmp_path):
	remote = Remote(HERE, "benchmarks.systems.native", "Native", tmp_path)
	remote.call("prepare")
	assert "frappe" in remote.call("versions")
	assert remote.call("is_done", count=1) is False
	stamp(7, str(tmp_path))
	assert remote.call("is_done", count=1) is True
	with pytest.raises(RemoteError, match="has no attribute 'nothing'"):
		remote.call("nothing")
	remote.close()
	assert remote.process.returncode == 0


def test_no_system_runs_without_compiled_files(tmp_path):
	"""A worker of Frappe would compile Frappe for each job: native jobs were once measured so."""
	environment = Environment(
		HERE.python, HERE.cwd, {**HERE.variables, "PYTHONDONTWRITEBYTECODE": "1", "LEFT": "as it is"}
	)
	remote = Remote(environment, "os", "fspath", tmp_path)
	variables = Path(f"/proc/{remote.process.pid}/environ").read_bytes().split(b"\0")
	remote.close()
	assert b"LEFT=as it is" in variables
	assert not any(variable.startswith(b"PYTHONDONTWRITEBYTECODE") for variable in variables)


def test_jobs_that_sleep_sleep_and_all_are_counted(tmp_path):
	tally = Tally(tmp_path)
	began = time.monotonic()
	work.do(work.SLEEP, 3)
	assert time.monotonic() - began >= work.SLEEP_SECONDS
	work.do(work.EMPTY, 4)
	assert sorted(tally.stamps()) == [3, 4]


def test_jobs_come_by_the_clock_under_half_load():
	"""Pauses between submits would make a slow submit lower the load."""
	system = SlowToSubmit(Path())
	began = time.monotonic()
	assert list(system._submit_stamps(range(20), rate=100)) == list(range(20))
	assert 0.2 <= time.monotonic() - began < 0.3


def test_the_plain_table_takes_and_counts_rows():
	frappe.db.sql_ddl(f"drop table if exists {plain_table.NAME}")
	frappe.db.sql_ddl(plain_table.MAKE[frappe.db.db_type])
	table = plain_table.PlainTable(frappe.db.sql, frappe.db.commit)
	table.insert(7)
	table.insert(7)
	assert table.count() == 2
	table.clear()
	assert table.count() == 0
	frappe.db.sql_ddl(f"drop table {plain_table.NAME}")


def test_the_tally_counts_jobs_and_holders(tmp_path):
	tally = Tally(tmp_path)
	stamp(1)
	stamp(2)
	tally.open_gate()
	hold()
	assert (tally.count(), sorted(tally.stamps()), tally.holders()) == (2, [1, 2], 1)
	tally.reset()
	assert (tally.count(), tally.holders()) == (0, 0)


@pytest.mark.parametrize("path", [path for _label, path in STEPS])
def test_the_steps_that_are_timed_exist(path):
	assert all(callable(function) for _owner, _name, function in places(path))
	assert places(path)


def test_the_stopwatch_counts_inner_steps_once():
	watch = Stopwatch(iter([0.0, 1.0, 3.0, 10.0]).__next__)
	inner = watch.timed("inner", lambda: None)
	watch.timed("outer", inner)()
	assert dict(watch.seconds) == {"outer": 8.0, "inner": 2.0}
	assert dict(watch.calls) == {"outer": 1, "inner": 1}


def test_the_stopwatch_leaves_no_trace():
	before = samples.tell_time
	with Stopwatch().timing((("telling", "dartwing_jobs.samples.tell_time"),)):
		assert samples.tell_time is not before
	assert samples.tell_time is before
