"""The tables: figures side by side with ratios, how near we came to the targets, where the time goes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from benchmarks.measurements import ALL, NATIVE, OURS, PEERS
from benchmarks.results import Ratio, Results, Spread
from benchmarks.targets import TARGETS, TIMES, Target

NOT_RUN, NOT_MEASURED, ELSEWHERE = "not run", "-", "not by this command"


@dataclass(frozen=True)
class Table:
	title: str
	head: Sequence[str]
	rows: Sequence[Sequence[str]]

	def text(self) -> str:
		"""For a terminal, and for Markdown too: columns of even width."""
		lines = [list(self.head), *map(list, self.rows)]
		widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
		lines.insert(1, ["-" * width for width in widths])
		rows = (
			"| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
			for line in lines
		)
		return "\n".join(rows)


@dataclass(frozen=True)
class Comparison:
	"""A row with every system, and ours as a multiple of others where more is better."""

	title: str
	measurement: str
	figure: str
	more_is_better: bool = True
	has_ratio: bool = True


COMPARISONS = (
	Comparison("Empty jobs, 2 worker processes, jobs/s", "throughput", "per second"),
	Comparison("Jobs that insert a row, 2 worker processes, jobs/s", "rows", "per second"),
	Comparison("Jobs of 5 ms, 2 worker processes, jobs/s", "sleep", "per second, 2 workers"),
	Comparison("Jobs of 5 ms, 8 worker processes, jobs/s", "sleep", "per second, 8 workers"),
	Comparison("Submit one, committed, jobs/s", "submit", "per second"),
	Comparison("Submit many, batches of {batch:,}, jobs/s", "submit-many", "per second"),
	Comparison("Submit to start, workers warm, p50 ms", "latency", "p50 ms", more_is_better=False),
	Comparison("Submit to start, workers warm, p99 ms", "latency", "p99 ms", more_is_better=False),
	Comparison("Submit to start, half load, p50 ms", "half-load", "p50 ms", more_is_better=False),
	Comparison("Submit to start, half load, p99 ms", "half-load", "p99 ms", more_is_better=False),
	Comparison("Submit to start, half load, slowest ms", "half-load", "max ms", more_is_better=False),
	Comparison("Half load was, jobs/s", "half-load", "submitted per second", has_ratio=False),
)


DETAILS = {
	"steps": ("Where a job's time goes", "µs per job"),
	"statements": ("What a job asks of the database", "per job"),
	"floor": ("What this database does at most, from two processes of Python", "per second"),
	"memory": ("Memory of a drain", "MB"),
	"shared-worker": ("A native job on a worker that ours use", "ms"),
	"groups": ("Groups", "µs per member"),
}
NAMES = {
	"questions": "round trips: statements sent, a compound one counts once",
	"com_commit": "transactions",
	"first MB": "after {memory_first:,} jobs",
	"last MB": "after {memory_last:,} jobs",
	"idle, slowest ms": "worker idle, slowest",
	"lingering, slowest ms": "drain lingering, slowest",
	"busy, slowest ms": "{waiting:,} of our jobs waiting, slowest",
	"making, few": "making one of {group_few:,} members",
	"running, few": "running them, two workers",
	"making, many": "making one of {group_many:,} members",
	"running, many": "running these",
}
LEFT_OUT = {"ratio"}  # told among the targets


def tables(results: Results) -> list[Table]:
	made = [comparison_table(results), target_table(results), *detail_tables(results)]
	return [table for table in made if table.rows]


def comparison_table(results: Results) -> Table:
	rows = [
		[
			comparison.title.format(**results.counts),
			*(cell(results, comparison, system) for system in ALL),
			ratio_text(results, comparison, PEERS),
			ratio_text(results, comparison, (NATIVE,)),
		]
		for comparison in COMPARISONS
		if comparison.measurement in chain(results.samples, results.not_run)
	]
	return Table("Side by side", ["", *ALL, "ours : best peer", "ours : native"], rows)


def cell(results: Results, comparison: Comparison, system: str) -> str:
	if results.has_given_up(comparison.measurement, system):
		return NOT_RUN
	return spread_text(results.spread(comparison.measurement, system, comparison.figure), number)


def ratio_text(results: Results, comparison: Comparison, others: tuple[str, ...]) -> str:
	ratio = _ratio(results, comparison, others)
	return f"{spread_text(ratio.times, times)} {ratio.to}" if ratio else NOT_MEASURED


def _ratio(results: Results, comparison: Comparison, others: tuple[str, ...]) -> Ratio | None:
	if not comparison.has_ratio:
		return None
	best = max if comparison.more_is_better else min
	return results.ratio(comparison.measurement, OURS, comparison.figure, others, best)


def target_table(results: Results) -> Table:
	rows = [_target_row(target, results) for target in TARGETS]
	return Table("Targets", ["", "measured", "must", "goal", "reached"], rows)


def _target_row(target: Target, results: Results) -> list[str]:
	value = target.measure(results) if target.measure else None
	missing = NOT_MEASURED if target.measure else ELSEWHERE
	return [
		target.title.format(**results.counts),
		missing if value is None else f"{number(value)}{target.unit}",
		f"{target.must:,g}{target.unit}",
		f"{target.goal:,g}{target.unit}",
		NOT_MEASURED if value is None else target.verdict(value),
	]


def detail_tables(results: Results) -> list[Table]:
	return [
		Table(title, ["", unit], _detail_rows(results, measurement))
		for measurement, (title, unit) in DETAILS.items()
	]


def _detail_rows(results: Results, measurement: str) -> list[list[str]]:
	figures = results.samples.get(measurement, {}).get(OURS, {})
	return [
		[
			NAMES.get(figure, figure).format(**results.counts),
			number(results.median(measurement, OURS, figure)),
		]
		for figure in figures
		if figure not in LEFT_OUT
	]


def spread_text(spread: Spread | None, shown: Callable[[float], str]) -> str:
	if spread is None:
		return NOT_MEASURED
	median, low, high = (shown(value) for value in spread)
	return median if low == high else f"{median} ({low}-{high})"


def times(value: float) -> str:
	return f"{value:.2f}{TIMES}"


def number(value: float) -> str:
	"""Three figures are as many as such measurements have."""
	if value >= 100:
		return f"{value:,.0f}"
	return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def fact_lines(results: Results) -> list[str]:
	lines = [f"{name}: {value}" for name, value in results.facts.items()]
	lines.append(f"rounds: {results.counts['rounds']}, interleaved; figures are medians (lowest-highest)")
	lines.append(
		"counts: " + ", ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in results.counts.items())
	)
	for system, versions in results.versions.items():
		lines.append(f"{system}: " + ", ".join(f"{name} {value}" for name, value in versions.items()))
	return lines


def not_run_lines(results: Results) -> list[str]:
	return [
		f"{system} was not run in {measurement}: {reason}"
		for measurement, systems in results.not_run.items()
		for system, reason in systems.items()
	]


def text(results: Results) -> str:
	parts = ["\n".join(fact_lines(results))]
	parts += [f"{table.title}\n\n{table.text()}" for table in tables(results)]
	if missing := not_run_lines(results):
		parts.append("\n".join(missing))
	return "\n\n".join(parts)
