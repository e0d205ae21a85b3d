"""What was promised, and how it is read from the results."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.measurements import NATIVE, OURS, PEERS, PROCRASTINATE
from benchmarks.results import Results

TIMES = "x"
Measure = Callable[[Results], float | None]


@dataclass(frozen=True)
class Target:
	"""A figure of ours, or a ratio, that must be at least (or at most) so much.

	Without `measure` it is a promise that this command does not measure.
	"""

	title: str
	measure: Measure | None
	must: float
	goal: float
	unit: str
	more_is_better: bool = True

	def verdict(self, value: float) -> str:
		reached = [name for name in ("goal", "must") if self._reaches(value, getattr(self, name))]
		return reached[0] if reached else "missed"

	def _reaches(self, value: float, bound: float) -> bool:
		return value >= bound if self.more_is_better else value <= bound


def at_least(title: str, measure: Measure | None, must: float, goal: float, unit: str = TIMES) -> Target:
	return Target(title, measure, must, goal, unit)


def at_most(title: str, measure: Measure | None, must: float, goal: float, unit: str = TIMES) -> Target:
	return Target(title, measure, must, goal, unit, more_is_better=False)


def ratio_of(
	measurement: str, others: tuple[str, ...], figure: str = "per second", best: Callable = max
) -> Measure:
	def measure(results: Results) -> float | None:
		ratio = results.ratio(measurement, OURS, figure, others, best)
		# the best of the peers is known only when all of them ran
		complete = ratio and not set(others) & set(results.not_run.get(measurement, {}))
		return ratio.times.median if complete else None

	return measure


def own(measurement: str, figure: str) -> Measure:
	return lambda results: results.median(measurement, OURS, figure)


TARGETS = (
	at_least("Empty jobs, against the best peer", ratio_of("throughput", PEERS), 1.5, 2.5),
	at_least("Jobs that insert a row, against the best peer", ratio_of("rows", PEERS), 1, 1.5),
	at_least("Empty jobs, against frappe.enqueue", ratio_of("throughput", (NATIVE,)), 20, 35),
	at_least("Submit one, against Procrastinate", ratio_of("submit", (PROCRASTINATE,)), 0.8, 1.2),
	at_least("Submit many, against Procrastinate", ratio_of("submit-many", (PROCRASTINATE,)), 1, 2),
	at_most(
		"Submit to start, warm, p50, against the best peer", ratio_of("latency", PEERS, "p50 ms", min), 2, 1
	),
	at_most("Submit to start, warm, p99", own("latency", "p99 ms"), 50, 15, " ms"),
	at_most("Submit to start, half load, p99", own("half-load", "p99 ms"), 60, 20, " ms"),
	at_most("Submit to start, cold, p50", own("cold-start", "p50 ms"), 250, 120, " ms"),
	at_most("Claim, sweep and tick with 1,000,000 rows, against 10,000", None, 1.2, 1.05),
	at_most(
		"Any screen, list, count or metric with 1,000,000 jobs of 200 organizations, p95",
		None,
		100,
		30,
		" ms",
	),
	at_least("Cleanup of 1,000,000 expired jobs", None, 5000, 20_000, " jobs/s"),
	at_least("Speed that workers keep meanwhile", None, 80, 95, " %"),
	at_most("Longest lock meanwhile", None, 1, 1, " s"),
	at_most(
		"Worker memory after {memory_last:,} jobs, against after {memory_first:,}",
		own("memory", "ratio"),
		1.1,
		1.02,
	),
	at_most("A killed worker's job runs again", None, 15, 5, " s"),
	at_most("The same, when worker, drain and watchdog are all killed", None, 60, 35, " s"),
	at_most(
		"Native job starts while {waiting:,} of our jobs wait",
		own("shared-worker", "busy, slowest ms"),
		2000,
		300,
		" ms",
	),
	at_most(
		"Native job starts while a drain lingers",
		own("shared-worker", "lingering, slowest ms"),
		300,
		50,
		" ms",
	),
	at_most("The suite on the embedded site, two cores", None, 5, 3, " min"),
	at_most(
		"Tick of {schedules:,} schedules, {schedules_due:,} of them due",
		own("schedules", "firing s"),
		5,
		2.5,
		" s",
	),
	at_most("Tick of {schedules:,} schedules, none due", own("schedules", "idle ms"), 20, 5, " ms"),
	at_most(
		"Time per member of a group of {group_many:,}, against one of {group_few:,}",
		own("groups", "ratio"),
		1.3,
		1.1,
	),
)
