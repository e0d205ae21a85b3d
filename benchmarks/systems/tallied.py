"""A system whose jobs are counted by the tally: it need only say how to send and how to start workers."""

from abc import abstractmethod
from pathlib import Path

from benchmarks.systems import work
from benchmarks.systems.system import System
from benchmarks.systems.tally import Tally


class TalliedSystem(System):
	def __init__(self, folder: Path):
		super().__init__(folder)
		self.tally = Tally(folder)

	@abstractmethod
	def forget(self) -> None:
		"""Drops jobs that still wait."""

	@abstractmethod
	def send(self, kind: str, number: int) -> None:
		"""Submits one job."""

	def submit_each(self, count: int) -> None:
		for number in range(count):
			self.submit_stamp(number)

	def submit_many(self, count: int, kind: str = work.EMPTY) -> None:
		for number in range(count):
			self.send(kind, number)

	def submit_stamp(self, number: int) -> None:
		self.send(work.EMPTY, number)

	def submit_hold(self) -> None:
		self.send(work.HOLD, 0)

	def holding(self) -> int:
		return self.tally.holders()

	def open_gate(self) -> None:
		self.tally.open_gate()

	def done(self) -> int:
		return self.tally.count()

	def stamps(self) -> dict[int, float]:
		return self.tally.stamps()

	def reset(self) -> None:
		self.forget()
		self.tally.reset()
