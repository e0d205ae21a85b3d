"""`bin/benchmark --bench DIR --compare COMMIT`: the app of a commit beside the present one, in turns."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import commits, report, rounds
from benchmarks.commits import PRESENT
from benchmarks.counts import Counts
from benchmarks.measurements import Measurement
from benchmarks.remote import Environment
from benchmarks.report import Table, number, spread_text, times
from benchmarks.results import Results

# what looks inside the engine knows the names of its present parts only
COMPARABLE = (
	"throughput",
	"rows",
	"sleep",
	"submit",
	"submit-many",
	"latency",
	"half-load",
	"cold-start",
	"groups",
)
SYSTEM = ("ours", "Ours")


def compare(
	bench: Path, commit: str, database: str, measurements: list[Measurement], counts: Counts
) -> Results:
	results = Results()
	with commits.open_sides(bench, commit, database) as sides, _running(sides) as systems:
		results.facts = {"here": commits.describe_present(), "against": commit, **rounds.machine_facts()}
		both = [Measurement(one.name, tuple(sides), one.take) for one in measurements]
		rounds.measure(systems, both, counts, results)
	return results


def table(results: Results, commit: str) -> Table:
	rows = [
		_row(results, commit, measurement, figure)
		for measurement, systems in results.samples.items()
		if len(systems) == 2
		for figure in systems[PRESENT]
	]
	return Table("Two commits", ["", PRESENT, commit, f"{PRESENT} : {commit}"], rows)


def text(results: Results, commit: str) -> str:
	facts = "\n".join(report.fact_lines(results))
	return "\n\n".join([facts, table(results, commit).text(), *report.not_run_lines(results)])


def _row(results: Results, commit: str, measurement: str, figure: str) -> list[str]:
	sides = [results.spread(measurement, side, figure) for side in (PRESENT, commit)]
	ratio = results.ratio_to(measurement, PRESENT, figure, commit)
	return [
		f"{measurement}, {figure}",
		*(spread_text(side, number) for side in sides),
		spread_text(ratio, times),
	]


@contextlib.contextmanager
def _running(sides: dict[str, Environment]) -> Iterator[rounds.RunningSystems]:
	with tempfile.TemporaryDirectory(prefix="dartwing-systems-") as folder, contextlib.ExitStack() as stack:
		systems = rounds.RunningSystems(Path(folder), stack)
		for name, environment in sides.items():
			systems.start(name, environment, SYSTEM)
			_check_code(systems, name, environment)
		yield systems


def _check_code(systems: rounds.RunningSystems, name: str, environment: Environment) -> None:
	"""A bench that has the app installed could win over our folder: then both sides would be the same."""
	found = systems.remote(name).call("code_folder")
	wanted = environment.variables["PYTHONPATH"].partition(":")[0]
	if Path(found).parent != Path(wanted):
		raise RuntimeError(f"{name} runs the app in {found}, not the one in {wanted}")
