"""Runs the measurements, in each round every system once, so that a slow minute hits all alike."""

import contextlib
import os
import platform
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path

from benchmarks import places
from benchmarks.counts import Counts
from benchmarks.measurements import (
	ALL,
	CELERY,
	CELERY_LATE,
	DRAMATIQ,
	NATIVE,
	OURS,
	PROCRASTINATE,
	Measurement,
)
from benchmarks.remote import Environment, Remote, RemoteError
from benchmarks.results import Results

MODULES = {
	OURS: ("ours_engine", "OursAndEngine"),
	NATIVE: ("native", "Native"),
	CELERY: ("celery_peer", "Celery"),
	CELERY_LATE: ("celery_peer", "CeleryAcksLate"),
	DRAMATIQ: ("dramatiq_peer", "Dramatiq"),
	PROCRASTINATE: ("procrastinate_peer", "Procrastinate"),
}
INSIDE = ("inside", "Inside")


class RunningSystems:
	"""The systems' processes; one that does not start is remembered with the reason."""

	def __init__(self, folder: Path, stack: contextlib.ExitStack):
		self.folder = folder
		self.stack = stack
		self.remotes: dict[str, Remote] = {}
		self.missing: dict[str, str] = {}
		self.home: Environment | None = None

	def start(self, name: str, environment: Environment, kind: tuple[str, str] | None = None) -> None:
		try:
			self.remotes[name] = self.stack.enter_context(
				self._open(environment, kind or MODULES[name], name.replace(" ", "-"))
			)
		except RemoteError as error:
			self.missing[name] = str(error)

	def remote(self, name: str) -> Remote:
		if name in self.missing:
			raise RemoteError(self.missing[name])
		return self.remotes[name]

	def look_inside(self) -> contextlib.AbstractContextManager[Remote]:
		return self._open(self.home, INSIDE, "inside")

	@contextlib.contextmanager
	def _open(self, environment: Environment, kind: tuple[str, str], folder: str) -> Iterator[Remote]:
		module, class_name = kind
		remote = Remote(environment, f"benchmarks.systems.{module}", class_name, self.folder / folder)
		try:
			remote.call("prepare")
			yield remote
		finally:
			_close(remote, folder)


@contextlib.contextmanager
def running_systems(place: places.Place, wanted: set[str]) -> Iterator[RunningSystems]:
	with contextlib.ExitStack() as stack:
		folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dartwing-systems-")))
		systems = RunningSystems(folder, stack)
		systems.home = place.environment
		systems.start(OURS, place.environment)
		if NATIVE in wanted:
			systems.start(NATIVE, place.environment)
		peers = [name for name in ALL if name in wanted and name not in (OURS, NATIVE)]
		_start_peers(systems, place, peers, stack)
		yield systems


def measure(
	systems: RunningSystems, measurements: list[Measurement], counts: Counts, results: Results
) -> None:
	results.counts = asdict(counts)
	results.versions = {name: remote.call("versions") for name, remote in systems.remotes.items()}
	for measurement in measurements:
		for number in range(1, counts.rounds + 1):
			for name in _in_turn(measurement.systems, number):
				if not results.has_given_up(measurement.name, name):
					_take(systems, measurement, name, counts, results, f"{number}/{counts.rounds}")


def _in_turn(names: tuple[str, ...], number: int) -> Iterable[str]:
	"""Every second round backwards: what one leaves behind must not always burden the same next one."""
	return names if number % 2 else reversed(names)


def machine_facts() -> dict[str, str]:
	return {
		"date": datetime.now(timezone.utc).date().isoformat(),
		"cores": str(len(os.sched_getaffinity(0))),
		"processor": _processor(),
		"system": f"{platform.system()} {platform.release()}",
		"load average before the run (1 minute)": f"{os.getloadavg()[0]:.2f}",
	}


def _take(
	systems: RunningSystems, measurement: Measurement, name: str, counts: Counts, results: Results, turn: str
) -> None:
	print(f"{turn}  {measurement.name:<14} {name:<17}", end="", flush=True)
	try:
		figures = measurement.take(systems, name, counts)
	except RemoteError as error:
		results.give_up(measurement.name, name, str(error))
		print(f"not run: {error}", flush=True)
		return
	results.add(measurement.name, name, figures)
	print(", ".join(f"{value:,.1f} {figure}" for figure, value in figures.items()), flush=True)


def _start_peers(
	systems: RunningSystems, place: places.Place, names: list[str], stack: contextlib.ExitStack
) -> None:
	if not names:
		return
	try:
		environment = stack.enter_context(places.peers_place(place.environment))
	except (RuntimeError, OSError) as error:
		systems.missing |= dict.fromkeys(names, str(error))
		return
	for name in names:
		systems.start(name, environment)


def _close(remote: Remote, name: str) -> None:
	try:
		remote.close()
	except RemoteError as error:
		print(f"{name} did not clean up after itself: {error}", flush=True)


def _processor() -> str:
	with open("/proc/cpuinfo") as lines:
		names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
	return names[0] if names else platform.machine()
