"""Times functions from outside: wrapped wherever the app refers to them, and unwrapped afterwards."""

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import wraps
from importlib import import_module


class Stopwatch:
	"""Each part's own time: what it spends in another timed part counts there."""

	def __init__(self, clock: Callable[[], float] = time.perf_counter):
		self.clock = clock
		self.seconds: Counter[str] = Counter()
		self.calls: Counter[str] = Counter()
		self._inner: list[float] = []

	@contextlib.contextmanager
	def timing(self, parts: tuple[tuple[str, str], ...]) -> Iterator[None]:
		with contextlib.ExitStack() as stack:
			for label, path in parts:
				for owner, name, function in places(path):
					stack.enter_context(_replaced(owner, name, self.timed(label, function)))
			yield

	def timed(self, label: str, function: Callable) -> Callable:
		@wraps(function)
		def run(*args, **kwargs):
			self._inner.append(0.0)
			started = self.clock()
			try:
				return function(*args, **kwargs)
			finally:
				self._note(label, self.clock() - started)

		return run

	def _note(self, label: str, seconds: float) -> None:
		self.seconds[label] += seconds - self._inner.pop()
		self.calls[label] += 1
		if self._inner:
			self._inner[-1] += seconds


def places(path: str) -> list[tuple[object, str, Callable]]:
	"""Everywhere a function is known by name: its class, or its module and those that imported it."""
	owner, _, name = path.rpartition(".")
	if kind := _class_at(owner):
		return [(kind, name, getattr(kind, name))]
	function = getattr(import_module(owner), name)
	ours = [module for key, module in sys.modules.items() if key.startswith("dartwing_jobs")]
	return [
		(module, known_as, function)
		for module in ours
		for known_as, value in vars(module).items()
		if value is function
	]


def _class_at(path: str) -> type | None:
	module, _, name = path.rpartition(".")
	return getattr(import_module(module), name) if name[0].isupper() else None


@contextlib.contextmanager
def _replaced(owner: object, name: str, function: Callable) -> Iterator[None]:
	missing = object()
	before = vars(owner).get(name, missing)
	setattr(owner, name, function)
	try:
		yield
	finally:
		if before is missing:
			delattr(owner, name)
		else:
			setattr(owner, name, before)
