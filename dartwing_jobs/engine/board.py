"""Memory that a drain and its watchdog share: what the drain does now, and what it is asked to do.

The drain may be killed at any moment. What it writes goes to the place that is not being read, and one byte
says which place counts: there is always something whole to read.
"""

import mmap
import struct
import time
from typing import NamedTuple

# flags that the watchdog raises for the drain
STOP, YIELD, WANTED = 1, 2, 4
# where each single byte is
FLAGS, HAS_LEFT, HAS_FAILED, IS_HANDLING, NUMBER = range(5)
# written in one step by every processor that has eight bytes in a register
SECONDS, MOVED_AT, LEASE_SECONDS = struct.Struct("d"), 8, 16
LENGTH = struct.Struct("<I")
HEADER_BYTES, PLACE_BYTES = 24, 4096
PLACES = (HEADER_BYTES, HEADER_BYTES + PLACE_BYTES)


class Work(NamedTuple):
	"""A job that a drain works on; moments are those of the machine's monotonic clock."""

	name: str
	token: str
	seconds: float
	since: float
	held_since: float  # when its lease began, or a little before
	next: tuple[str, ...] = ()  # the name and the token of what is started while this one ends

	def text(self) -> str:
		return "\n".join(map(str, (*self[:5], *self.next)))


class Board:
	def __init__(self):
		self.memory = mmap.mmap(-1, HEADER_BYTES + len(PLACES) * PLACE_BYTES)
		self.move()

	def write(self, work: Work | None) -> None:
		text = work.text().encode() if work else b""
		number = (self.memory[NUMBER] + 1) % 256
		place = PLACES[number % len(PLACES)]
		LENGTH.pack_into(self.memory, place, len(text))
		start = place + LENGTH.size
		self.memory[start : start + len(text)] = text
		self.memory[NUMBER] = number

	def read(self) -> Work | None:
		"""Again only if the drain has written meanwhile: one that is dead does not."""
		while True:
			number = self.memory[NUMBER]
			place = PLACES[number % len(PLACES)]
			start = place + LENGTH.size
			text = bytes(self.memory[start : start + LENGTH.unpack_from(self.memory, place)[0]])
			if self.memory[NUMBER] == number:
				return _work(text.decode().split("\n")) if text else None

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
		_own.move()


def _work(words: list[str]) -> Work:
	name, token, seconds, since, held_since, *following = words
	return Work(name, token, float(seconds), float(since), float(held_since), tuple(following))
