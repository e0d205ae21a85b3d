"""What is measured, and on which systems. Each takes one round's figures from one system."""

import math
import statistics
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from benchmarks.counts import Counts
from benchmarks.remote import Remote

OURS, NATIVE = "Dartwing Jobs", "frappe.enqueue"
CELERY, DRAMATIQ, PROCRASTINATE = "Celery", "Dramatiq", "Procrastinate"
CELERY_LATE = "Celery acks_late"
# the best of these is the one to beat; Celery that promises more stands beside them
PEERS = (CELERY, DRAMATIQ, PROCRASTINATE)
ALL = (OURS, CELERY, CELERY_LATE, DRAMATIQ, PROCRASTINATE, NATIVE)

WARM_PAUSE_SECONDS, NATIVE_PAUSE_SECONDS = 0.075, 0.6
FEW_WORKERS, MANY_WORKERS = 2, 8
JOB_SECONDS = 0.01  # of each job that waits on the shared worker
FIRST_GROUP = 10  # members of one that fills caches and is not counted


class Systems(Protocol):
	"""What a measurement may ask for: a system that runs already, or a fresh process to look inside."""

	def remote(self, name: str) -> Remote: ...

	def look_inside(self) -> AbstractContextManager[Remote]: ...


Take = Callable[[Systems, str, Counts], dict[str, float]]


@dataclass(frozen=True)
class Measurement:
	name: str
	systems: tuple[str, ...]
	take: Take


def throughput(systems: Systems, name: str, counts: Counts) -> dict[str, float]:
	return {"per second": systems.remote(name).call("throughput", count=_jobs(name, counts))}


def rows(systems: Systems, name: str, counts: Counts) -> dict[str, float]:
	return {"per second": systems.remote(name).call("rows_throughput", count=_jobs(name, counts))}


def sleep(systems: Systems, name: str, counts: Counts) -> dict[str, float]:
	remote, count = systems.remote(name), counts.native_jobs if name == NATIVE else counts.sleeping
	return {
		f"per second, {processes} workers": remote.call(
			"throughput", count=count, kind="sleep", processes=processes
		)
		for processes in (FEW_WORKERS, MANY_WORKERS)
	}


def _jobs(name: str, counts: Counts) -> int:
	return counts.native_jobs if name == NATIVE else counts.jobs


def submit(systems: Systems, name: str, counts: Counts) -> dict[str, float]:
	return {"per second": systems.remote(name).call("submit_rate", count=counts.singles)}


def submit_many(systems: Systems, name: str, counts: Counts) -> dict[str, float]:
	remote = systems.remote(name)
	return {"per second": remote.call("submit_many_rate", count=counts.many, batch=counts.batch)}


def latency(systems: Systems, name: str, counts: Counts) -> dict[str, float]:
	count, pause = counts.latencies, WARM_PAUSE_SECONDS
	if name == NATIVE:
		count, pause = counts.native_latencies, NATIVE_PAUSE_SECONDS
	seconds = systems.remote(name).call("latency", count=count, pause=pause)
	return {"p50 ms": 1000 * statistics.median(seconds), "p99 ms": 1000 * percentile(seconds, 99)}


def half_load(systems: Systems, name: str, counts: Counts) -> dict[str, float]:
	count = counts.native_half_load if name == NATIVE else counts.half_load
	found = systems.remote(name).call(
		"half_load", jobs=_jobs(name, counts), singles=counts.singles, count=count
	)
	seconds = found["seconds"]
	return {
		"submitted per second": found["offered"],
		"p50 ms": 1000 * statistics.median(seconds),
		"p99 ms": 1000 * percentile(seconds, 99),
		"max ms": 1000 * max(seconds),
	}


def cold_start(systems: Systems, name: str, counts: Counts) -> dict[str, float]:
	seconds = systems.remote(name).call("cold_latency", count=counts.cold_starts)
	return {"p50 ms": 1000 * statistics.median(seconds)}


def shared_worker(systems: Systems, name: str, counts: Counts) -> dict[str, float]:
	remote = systems.remote(name)
	found = remote.call(
		"native_on_shared_worker", waiting=counts.waiting, seconds=JOB_SECONDS, count=counts.native_starts
	)
	return {f"{when}, slowest ms": 1000 * max(seconds) for when, seconds in found.items()}


def memory(systems: Systems, name: str, counts: Counts) -> dict[str, float]:
	submitter = systems.remote(name)
	submitter.call("reset")
	with systems.look_inside() as inside:
		submitter.call("submit_many", count=counts.memory_first)
		first = inside.call("drain", count=counts.memory_first)
		submitter.call("submit_many", count=counts.memory_last - counts.memory_first)
		last = inside.call("drain", count=counts.memory_last - counts.memory_first)
	submitter.call("reset")
	return {"first MB": first / 1e6, "last MB": last / 1e6, "ratio": last / first}


def steps(systems: Systems, name: str, counts: Counts) -> dict[str, float]:
	return _look("steps", systems, name, counts)


def statements(systems: Systems, name: str, counts: Counts) -> dict[str, float]:
	return _look("statements", systems, name, counts)


def _look(what: str, systems: Systems, name: str, counts: Counts) -> dict[str, float]:
	"""After a few jobs that fill the caches, as a worker's first jobs do."""
	submitter, warm_up = systems.remote(name), 20
	submitter.call("reset")
	with systems.look_inside() as inside:
		submitter.call("submit_many", count=warm_up)
		inside.call("drain", count=warm_up)
		submitter.call("submit_many", count=counts.traced)
		found = inside.call(what, count=counts.traced)
	submitter.call("reset")
	return found


def floor(systems: Systems, name: str, counts: Counts) -> dict[str, float]:
	return {"one row and its commit": systems.remote(name).call("floor", count=counts.jobs)}


def schedules(systems: Systems, name: str, counts: Counts) -> dict[str, float]:
	found = systems.remote(name).call("tick_schedules", count=counts.schedules, due=counts.schedules_due)
	return {"firing s": found["firing"], "idle ms": 1000 * statistics.median(found["idle"])}


def groups(systems: Systems, name: str, counts: Counts) -> dict[str, float]:
	remote = systems.remote(name)
	remote.call("run_group", count=FIRST_GROUP)
	few = _micro_per_member(remote, counts.group_few)
	many = _micro_per_member(remote, counts.group_many)
	figures = {f"{part}, few": few[part] for part in few} | {f"{part}, many": many[part] for part in many}
	return {**figures, "ratio": sum(many.values()) / sum(few.values())}


def _micro_per_member(remote: Remote, count: int) -> dict[str, float]:
	return {part: 1e6 * seconds / count for part, seconds in remote.call("run_group", count=count).items()}


def percentile(values: list[float], percent: float) -> float:
	"""The smallest value that so many percent of all do not exceed."""
	ranked = sorted(values)
	return ranked[math.ceil(len(ranked) * percent / 100) - 1]


MEASUREMENTS = (
	Measurement("throughput", ALL, throughput),
	Measurement("rows", ALL, rows),
	Measurement("sleep", ALL, sleep),
	Measurement("submit", (OURS, *PEERS), submit),
	Measurement("submit-many", (OURS, PROCRASTINATE), submit_many),
	Measurement("latency", ALL, latency),
	Measurement("half-load", ALL, half_load),
	Measurement("cold-start", (OURS,), cold_start),
	Measurement("shared-worker", (OURS,), shared_worker),
	Measurement("memory", (OURS,), memory),
	Measurement("steps", (OURS,), steps),
	Measurement("statements", (OURS,), statements),
	Measurement("floor", (OURS,), floor),
	Measurement("schedules", (OURS,), schedules),
	Measurement("groups", (OURS,), groups),
)
