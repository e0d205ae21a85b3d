"""Memory that a drain and its watchdog share: the jobs that the drain holds, how far each of them is, and
what the drain is asked to do.

Either process may be killed at any moment. What the drain holds is written to the place that is not being
read, and one byte says which place counts. A step of a job is made under a lock that the system takes from a
process that dies. So there is always something whole to read.
"""

import fcntl
import json
import mmap
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

# flags that the watchdog raises for the drain
STOP, YIELD, WANTED = 1, 2, 4
# how far a job is. The drain begins it; when its handler has ended, the drain records that, or leaves a
# record of it here until either process does. The watchdog shows people one that runs for long, and takes
# back what was not begun
NOT_BEGUN, RUNS, SHOWN, ENDING, ENDED, RECORDED, TAKEN_BACK = range(7)
# as many jobs as a drain holds at once
MOST_JOBS = 32
# where each single byte is
FLAGS, HAS_LEFT, HAS_FAILED, IS_HANDLING, HELD, FOLLOWING = range(6)
# written in one step by every processor that has eight bytes in a register
SECONDS, MOVED_AT, LEASE_SECONDS = struct.Struct("d"), 8, 16
LENGTH = struct.Struct("<I")
# of each job: since when it is as it is, the moment at which it began, and where the record of its end is
ENTRY = struct.Struct("<dqQQ")
STATES_AT = LENGTH.size
ENTRIES_AT = STATES_AT + MOST_JOBS
TEXT_AT = ENTRIES_AT + MOST_JOBS * ENTRY.size
# names have 140 letters at most, and JSON needs six bytes for the worst of them
PLACE_BYTES = TEXT_AT + MOST_JOBS * 1000
HEADER_BYTES = 24


class Job(NamedTuple):
	name: str
	seconds: float  # until its deadline


class Held(NamedTuple):
	"""Jobs that a drain has claimed together, by one lease."""

	token: str
	since: float  # when the lease began, or a little before, by the machine's monotonic clock
	is_started: bool  # a single one that is Running already
	jobs: tuple[Job, ...]

	def names(self) -> list[str]:
		return [job.name for job in self.jobs]


class Work(NamedTuple):
	"""What a drain does, as its watchdog reads it."""

	held: Held
	states: bytes
	since: tuple[float, ...]  # of each job: when it was begun; of one that has ended, when that was
	moments: tuple[int, ...]  # when it was begun, in microseconds since 1970

	@property
	def token(self) -> str:
		return self.held.token

	def numbers(self, *states: int) -> list[int]:
		return [number for number, state in enumerate(self.states) if state in states]

	def names(self, *states: int) -> list[str]:
		return [self.held.jobs[number].name for number in self.numbers(*states)]

	def running(self) -> int | None:
		"""The number of the job that runs."""
		return next(iter(self.numbers(RUNS, SHOWN)), None)


class Board:
	def __init__(self):
		self.memory = mmap.mmap(-1, HEADER_BYTES + 4 * PLACE_BYTES)
		self.statements = 0  # that the engine has sent in this process
		self.records = os.memfd_create("dartwing-ends")
		self.used = 0  # bytes of the records, by the jobs that are held now
		self.has_announced = False
		self.move()

	def hold(self, held: Held | None) -> None:
		"""The drain is about to begin these jobs; None: it has nothing to do."""
		with self._turn():
			self.used = 0
			self._write(HELD, held)
		if self.has_announced:
			self._write(FOLLOWING, None)
			self.has_announced = False

	def announce(self, following: Held) -> None:
		"""Before the commit that gives the drain these jobs: should it be killed right after it."""
		self._write(FOLLOWING, following)
		self.has_announced = True

	def begin(self, number: int, microseconds: int) -> bool:
		"""The drain begins a job; False when the watchdog has taken it back."""
		with self._turn() as place:
			is_there = self.memory[place + STATES_AT + number] == NOT_BEGUN
			if is_there:
				self._enter(place, number, RUNS, microseconds)
		return is_there

	def finish(self, number: int) -> bool:
		"""The handler has ended, and the drain sees to the rest; whether the job was shown as Running."""
		with self._turn() as place:
			was_shown = self.memory[place + STATES_AT + number] == SHOWN
			self._mark(place, number, ENDING)
		return was_shown

	def keep(self, number: int, record: bytes) -> None:
		"""What is to be recorded of a job that has ended: by the drain soon, or by the watchdog."""
		offset, self.used = self.used, self.used + len(record)
		os.pwrite(self.records, record, offset)
		with self._turn() as place:
			self._enter(place, number, ENDED, 0, offset, len(record))

	def note_recorded(self, token: str, numbers: list[int]) -> None:
		"""Either process has recorded them."""
		with self._turn() as place:
			held = self._held_at(place)
			for number in numbers if held and held.token == token else ():
				self._mark(place, number, RECORDED)

	def take_back(self, token: str) -> list[int]:
		"""The watchdog takes what the drain has not begun; it never will."""
		with self._turn() as place:
			work = self._work_at(place, self._held_at(place))
			taken = work.numbers(NOT_BEGUN) if work and work.token == token else []
			for number in taken:
				self._mark(place, number, TAKEN_BACK)
		return taken

	def show(self, token: str) -> tuple[str, int] | None:
		"""The watchdog shows people the job that runs: the drain records its end knowing that.

		Returns its name, and when it was begun.
		"""
		with self._turn() as place:
			work = self._work_at(place, self._held_at(place))
			running = work.numbers(RUNS) if work and work.token == token else []
			for number in running:
				self._mark(place, number, SHOWN)
		return (work.held.jobs[running[0]].name, work.moments[running[0]]) if running else None

	def records_of(self, token: str) -> dict[int, bytes]:
		"""What is to be recorded of those that have ended, by their numbers."""
		with self._turn() as place:
			work = self._work_at(place, self._held_at(place))
			ended = work.numbers(ENDED) if work and work.token == token else []
			return {number: self._record(place, number) for number in ended}

	def read(self) -> Work | None:
		"""Again only if the drain has written meanwhile: one that is dead does not."""
		while True:
			number, place = self.memory[HELD], self._place(HELD)
			work = self._work_at(place, self._held_at(place))
			if self.memory[HELD] == number:
				return work

	def following(self) -> Held | None:
		"""What was announced; it is the drain's if the commit has happened."""
		while True:
			number, held = self.memory[FOLLOWING], self._held_at(self._place(FOLLOWING))
			if self.memory[FOLLOWING] == number:
				return held

	@contextmanager
	def _turn(self) -> Iterator[int]:
		"""One of both processes at a time; with the place that counts."""
		fcntl.lockf(self.records, fcntl.LOCK_EX)
		try:
			yield self._place(HELD)
		finally:
			fcntl.lockf(self.records, fcntl.LOCK_UN)

	def _place(self, which: int, ahead: int = 0) -> int:
		"""Where what counts is; or, one ahead, where it will be written next."""
		number = (self.memory[which] + ahead) % 2
		return HEADER_BYTES + (2 * (which - HELD) + number) * PLACE_BYTES

	def _write(self, which: int, held: Held | None) -> None:
		text = json.dumps(held, ensure_ascii=False).encode() if held else b""
		place = self._place(which, 1)
		LENGTH.pack_into(self.memory, place, len(text))
		self.memory[place + STATES_AT : place + ENTRIES_AT] = bytes(MOST_JOBS)
		self.memory[place + TEXT_AT : place + TEXT_AT + len(text)] = text
		self.memory[which] = (self.memory[which] + 1) % 256

	def _held_at(self, place: int) -> Held | None:
		length = LENGTH.unpack_from(self.memory, place)[0]
		text = bytes(self.memory[place + TEXT_AT : place + TEXT_AT + length])
		if not text:
			return None
		token, since, is_started, jobs = json.loads(text)
		return Held(token, since, is_started, tuple(Job(*job) for job in jobs))

	def _work_at(self, place: int, held: Held | None) -> Work | None:
		if held is None:
			return None
		count = len(held.jobs)
		entries = [self._entry(place, number) for number in range(count)]
		states = bytes(self.memory[place + STATES_AT : place + STATES_AT + count])
		return Work(held, states, tuple(entry[0] for entry in entries), tuple(entry[1] for entry in entries))

	def _entry(self, place: int, number: int) -> tuple[float, int, int, int]:
		return ENTRY.unpack_from(self.memory, place + ENTRIES_AT + number * ENTRY.size)

	def _record(self, place: int, number: int) -> bytes:
		_since, _moment, offset, length = self._entry(place, number)
		return os.pread(self.records, length, offset)

	def _enter(
		self, place: int, number: int, state: int, moment: int, offset: int = 0, length: int = 0
	) -> None:
		"""The state last: after a kill the rest is there if the state is."""
		at = place + ENTRIES_AT + number * ENTRY.size
		ENTRY.pack_into(self.memory, at, time.monotonic(), moment, offset, length)
		self._mark(place, number, state)

	def _mark(self, place: int, number: int, state: int) -> None:
		self.memory[place + STATES_AT + number] = state

	def move(self) -> None:
		"""The drain is not stuck: it has just sent something, or gone on to something else."""
		SECONDS.pack_into(self.memory, MOVED_AT, time.monotonic())

	@property
	def moved_at(self) -> float:
		return SECONDS.unpack_from(self.memory, MOVED_AT)[0]

	@property
	def lease_seconds(self) -> float:
		"""0 until the drain has read it in the settings."""
		return SECONDS.unpack_from(self.memory, LEASE_SECONDS)[0]

	@lease_seconds.setter
	def lease_seconds(self, seconds: float) -> None:
		SECONDS.pack_into(self.memory, LEASE_SECONDS, seconds)

	@property
	def is_handling(self) -> bool:
		"""Whether a handler runs; otherwise it is the engine itself that works, or waits for work."""
		return bool(self.memory[IS_HANDLING])

	@is_handling.setter
	def is_handling(self, is_handling: bool) -> None:
		self.move()
		self.memory[IS_HANDLING] = is_handling

	@property
	def has_left(self) -> bool:
		"""Whether the drain has gone by itself, and seen to what it leaves behind."""
		return bool(self.memory[HAS_LEFT])

	@has_left.setter
	def has_left(self, has_left: bool) -> None:
		self.memory[HAS_LEFT] = has_left

	@property
	def has_failed(self) -> bool:
		"""Whether an error ended it, and not its work or a signal."""
		return bool(self.memory[HAS_FAILED])

	@has_failed.setter
	def has_failed(self, has_failed: bool) -> None:
		self.memory[HAS_FAILED] = has_failed

	@property
	def flags(self) -> int:
		return self.memory[FLAGS]

	@flags.setter
	def flags(self, flags: int) -> None:
		self.memory[FLAGS] = flags


# of the drain that this process is
_own: Board | None = None


def take(board: Board | None) -> None:
	"""From here on this process is the drain that writes there; with None, it is no drain."""
	global _own
	_own = board


def moved() -> None:
	"""Called with each statement of the engine: a drain that stays in one for too long is stuck."""
	if _own is not None:
		_own.statements += 1
		_own.move()
