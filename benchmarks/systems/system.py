"""What a measurement can ask of any job system. Each system says only how it submits, works and is seen."""

import contextlib
import signal
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from benchmarks.systems.plain_table import PlainTable
from benchmarks.systems.work import EMPTY, ROW
from homes import process

WORKERS = 2
WARM_UP = 10  # the first jobs connect and fill caches
LOOK_SECONDS = 0.05  # each look at our jobs is a query, which must not cost what it measures
PATIENCE_SECONDS = 60
# a worker boots within this; a second process answers a second job within that
FIRST_HOLD_SECONDS, NEXT_HOLD_SECONDS = 15, 2


class System(ABC):
	"""One job system: prepare, submit, work, close; and the measurements that are the same for all."""

	# whether one command starts all worker processes, or each needs its own
	starts_all = False

	def __init__(self, folder: Path):
		self.folder = folder
		self.log = folder / "workers.log"

	def prepare(self) -> None:  # noqa: B027
		"""Connects and makes what it needs."""

	@abstractmethod
	def versions(self) -> dict[str, str]: ...

	@abstractmethod
	def submit_each(self, count: int) -> None:
		"""Submits empty jobs one by one; each is kept before the next."""

	@abstractmethod
	def submit_many(self, count: int, kind: str = EMPTY) -> None:
		"""Submits many jobs of a kind, as fast as the system offers."""

	@abstractmethod
	def submit_stamp(self, number: int) -> None:
		"""Submits a job that notes when it was called."""

	@abstractmethod
	def submit_hold(self) -> None:
		"""Submits a job that occupies its worker until the gate opens."""

	@abstractmethod
	def holding(self) -> int:
		"""How many workers are occupied so."""

	@abstractmethod
	def open_gate(self) -> None: ...

	@abstractmethod
	def done(self) -> int:
		"""How many jobs of the kind that was submitted have ended since the last `reset`."""

	def is_done(self, count: int) -> bool:
		"""Whether so many have; asked often while workers work, so it must be cheap."""
		return self.done() >= count

	@abstractmethod
	def stamps(self) -> dict[int, float]:
		"""When each stamp was called, since the last `reset`."""

	@abstractmethod
	def reset(self) -> None:
		"""Counts from nothing again, with a closed gate; drops what still waits."""

	@abstractmethod
	def table(self) -> PlainTable:
		"""Into which jobs insert their rows."""

	@abstractmethod
	def worker_command(self, processes: int) -> list[str]: ...

	def close(self) -> None:  # noqa: B027
		"""Takes back what was made."""

	def submit_rate(self, count: int) -> float:
		self.reset()
		self.submit_each(WARM_UP)
		rate = count / timed(self.submit_each, count)
		self.reset()
		return rate

	def submit_many_rate(self, count: int, batch: int) -> float:
		self.reset()
		self.submit_many(WARM_UP)
		seconds = sum(timed(self.submit_many, batch) for _ in range(count // batch))
		self.reset()
		return count // batch * batch / seconds

	def throughput(self, count: int, kind: str = EMPTY, processes: int = WORKERS) -> float:
		"""Jobs a second: all wait while one job holds each worker; timed from the gate to the last."""
		self.reset()
		with self.workers(processes):
			self._hold_all(processes)
			self.submit_many(count, kind)
			started = time.monotonic()
			self.open_gate()
			self._wait_for_all(count)
			return count / (time.monotonic() - started)

	def rows_throughput(self, count: int) -> float:
		"""The same for jobs that insert a row; all rows must be there."""
		self.table().clear()
		rate = self.throughput(count, ROW)
		wait_until(lambda: self.table().count() == count)
		self.table().clear()
		return rate

	def latency(self, count: int, pause: float) -> list[float]:
		"""Seconds from the call of submit to the call of the job, with nothing else to do, workers warm."""
		self.reset()
		with self.workers():
			self.submit_stamp(-1)
			wait_until(lambda: -1 in self.stamps())
			submitted = {number: self._submit_stamp_at(number, pause) for number in range(count)}
			wait_until(lambda: len(self.stamps()) == count + 1)
			stamps = self.stamps()
			return [stamps[number] - moment for number, moment in submitted.items()]

	def half_load(self, jobs: int, singles: int, count: int) -> dict[str, float | list[float]]:
		"""Seconds from submit to start while jobs come steadily, half as many as the system can do."""
		rate = min(self.throughput(jobs), self.submit_rate(singles)) / 2
		self.reset()
		with self.workers():
			self._hold_all()  # one that still boots would leave all to the other
			self.open_gate()
			self._submit_stamps(range(count, count + count // 10), rate)
			began = time.monotonic()
			submitted = self._submit_stamps(range(count), rate)
			offered = count / (time.monotonic() - began)
			wait_until(lambda: submitted.keys() <= self.stamps().keys())
			stamps = self.stamps()
		self.reset()
		return {"offered": offered, "seconds": [stamps[one] - moment for one, moment in submitted.items()]}

	def _submit_stamps(self, numbers: Iterable[int], rate: float) -> dict[int, float]:
		"""By the clock, not after pauses: one slow submit does not make those after it rarer."""
		submitted, began = {}, time.monotonic()
		for turn, number in enumerate(numbers, 1):
			wait = began + turn / rate - time.monotonic()
			submitted[number] = self._submit_stamp_at(number, max(wait, 0))
		return submitted

	@contextlib.contextmanager
	def workers(self, processes: int = WORKERS) -> Iterator[list[int]]:
		"""Running workers; yields their process ids."""
		with contextlib.ExitStack() as stack:
			pids = []
			command = self.worker_command(processes)
			for _ in range(1 if self.starts_all else processes):
				worker = process.spawn(command, self.log, signal.SIGTERM, cwd=Path.cwd())
				stack.callback(process.stop, worker, signal.SIGTERM)
				pids.append(worker.pid)
			# a gate that stays closed would keep a worker from stopping
			stack.callback(self.open_gate)
			yield pids

	def _hold_all(self, processes: int = WORKERS) -> None:
		"""One job in each worker process; who fetches ahead may need to be offered one more."""
		for held in range(processes):
			patience = NEXT_HOLD_SECONDS if held else FIRST_HOLD_SECONDS
			self._hold_one_more(held, patience)

	def _hold_one_more(self, held: int, patience: float) -> None:
		for _ in range(10):
			self.submit_hold()
			if wait_while(lambda: self.holding() <= held, patience):
				return
		raise RuntimeError(f"only {held} workers took a job; see {self.log}")

	def _wait_for_all(self, count: int) -> None:
		"""As long as it takes, while it goes on."""
		done = -1
		while not wait_while(lambda: not self.is_done(count), PATIENCE_SECONDS):
			before, done = done, self.done()
			if done == before:
				raise RuntimeError(f"stuck after {done} of {count} jobs")

	def _submit_stamp_at(self, number: int, pause: float) -> float:
		time.sleep(pause)
		moment = time.time()
		self.submit_stamp(number)
		return moment


def timed(function: Callable, *arguments) -> float:
	started = time.monotonic()
	function(*arguments)
	return time.monotonic() - started


def wait_while(condition: Callable[[], bool], seconds: float) -> bool:
	"""Whether it ended in time."""
	deadline = time.monotonic() + seconds
	while condition():
		if time.monotonic() > deadline:
			return False
		time.sleep(LOOK_SECONDS)
	return True


def wait_until(condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
	if not wait_while(lambda: not condition(), seconds):
		raise RuntimeError(f"waited {seconds:g} seconds in vain")


def python_version() -> str:
	return ".".join(map(str, sys.version_info[:3]))
