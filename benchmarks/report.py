"""The tables: figures side by side with ratios, the targets with how near we came, where the time goes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from benchmarks.measurements import ALL, NATIVE, OURS, PEERS, PROCRASTINATE
from benchmarks.results import Ratio, Results, Spread

NOT_RUN, NOT_MEASURED, TIMES = "not run", "-", "x"


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


COMPARISONS = (
	Comparison("Empty jobs, two worker processes, jobs/s", "throughput", "per second"),
	Comparison("Submit one, committed, jobs/s", "submit", "per second"),
	Comparison("Submit many, batches of {batch:,}, jobs/s", "submit-many", "per second"),
	Comparison("Submit to start, workers warm, p50 ms", "latency", "p50 ms", more_is_better=False),
	Comparison("Submit to start, workers warm, p99 ms", "latency", "p99 ms", more_is_better=False),
)


@dataclass(frozen=True)
class Target:
	"""What was promised: a figure of ours, or a ratio, that must be at least (or at most) so much."""

	title: str
	measure: Callable[[Results], float | None]
	must: float
	goal: float
	unit: str
	more_is_better: bool = True

	def verdict(self, value: float | None) -> str:
		if value is None:
			return NOT_MEASURED
		reached = [name for name in ("goal", "must") if self._reaches(value, getattr(self, name))]
		return reached[0] if reached else "missed"

	def _reaches(self, value: float, bound: float) -> bool:
		return value >= bound if self.more_is_better else value <= bound


def ratio_of(measurement: str, others: tuple[str, ...]) -> Callable[[Results], float | None]:
	def measure(results: Results) -> float | None:
		ratio = results.ratio(measurement, OURS, "per second", others)
		# the best of the peers is known only when all of them ran
		complete = ratio and not set(others) & set(results.not_run.get(measurement, {}))
		return ratio.times.median if complete else None

	return measure


def own(measurement: str, figure: str) -> Callable[[Results], float | None]:
	return lambda results: results.median(measurement, OURS, figure)


TARGETS = (
	Target("Empty jobs, against the best peer", ratio_of("throughput", PEERS), 1, 2, TIMES),
	Target("Empty jobs, against frappe.enqueue", ratio_of("throughput", (NATIVE,)), 80, 150, TIMES),
	Target("Submit one, against Procrastinate", ratio_of("submit", (PROCRASTINATE,)), 0.6, 1, TIMES),
	Target("Submit many", own("submit-many", "per second"), 5000, 10_000, " jobs/s"),
	Target("Submit to start, warm, p50", own("latency", "p50 ms"), 30, 10, " ms", False),
	Target("Submit to start, warm, p99", own("latency", "p99 ms"), 150, 50, " ms", False),
	Target("Submit to start, cold, p50", own("cold-start", "p50 ms"), 400, 200, " ms", False),
	Target(
		"Worker memory after {memory_last:,} jobs, against after {memory_first:,}",
		own("memory", "ratio"),
		1.1,
		1.02,
		TIMES,
		False,
	),
	Target(
		"Native job starts while {waiting:,} of our jobs wait",
		own("shared-worker", "busy, slowest ms"),
		2000,
		500,
		" ms",
		False,
	),
	Target(
		"Native job starts while a drain lingers",
		own("shared-worker", "lingering, slowest ms"),
		300,
		100,
		" ms",
		False,
	),
	Target(
		"Tick of {schedules:,} schedules, {schedules_due:,} of them due",
		own("schedules", "firing s"),
		5,
		2.5,
		" s",
		False,
	),
	Target("Tick of {schedules:,} schedules, none due", own("schedules", "idle ms"), 20, 5, " ms", False),
	Target(
		"Time per member of a group of {group_many:,}, against one of {group_few:,}",
		own("groups", "ratio"),
		1.3,
		1.1,
		TIMES,
		False,
	),
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
	if not comparison.more_is_better:
		return None  # a ratio of waiting times says little: the times are promised themselves
	return results.ratio(comparison.measurement, OURS, comparison.figure, others)


def target_table(results: Results) -> Table:
	measured = [(target, target.measure(results)) for target in TARGETS]
	rows = [
		[
			target.title.format(**results.counts),
			f"{number(value)}{target.unit}",
			f"{target.must:,g}{target.unit}",
			f"{target.goal:,g}{target.unit}",
			target.verdict(value),
		]
		for target, value in measured
		if value is not None
	]
	return Table("Targets", ["", "measured", "must", "goal", "reached"], rows)


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
