"""What was measured: every sample of every round, what did not run and why; medians and ratios of them."""

import json
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple


class Spread(NamedTuple):
	"""The median of all rounds, between the lowest and the highest."""

	median: float
	low: float
	high: float


class Ratio(NamedTuple):
	times: Spread
	to: str


@dataclass
class Results:
	facts: dict[str, str] = field(default_factory=dict)
	versions: dict[str, dict[str, str]] = field(default_factory=dict)
	counts: dict[str, int] = field(default_factory=dict)
	# measurement, system, figure: one sample per round
	samples: dict[str, dict[str, dict[str, list[float]]]] = field(default_factory=dict)
	# measurement, system: why it is missing
	not_run: dict[str, dict[str, str]] = field(default_factory=dict)

	def add(self, measurement: str, system: str, figures: dict[str, float]) -> None:
		kept = self.samples.setdefault(measurement, {}).setdefault(system, {})
		for name, value in figures.items():
			kept.setdefault(name, []).append(value)

	def give_up(self, measurement: str, system: str, reason: str) -> None:
		"""Samples of earlier rounds go too: half a measurement is none."""
		self.samples.get(measurement, {}).pop(system, None)
		self.not_run.setdefault(measurement, {})[system] = reason

	def has_given_up(self, measurement: str, system: str) -> bool:
		return system in self.not_run.get(measurement, {})

	def rounds(self, measurement: str, system: str, figure: str) -> list[float]:
		return self.samples.get(measurement, {}).get(system, {}).get(figure, [])

	def median(self, measurement: str, system: str, figure: str) -> float | None:
		spread = self.spread(measurement, system, figure)
		return spread.median if spread else None

	def spread(self, measurement: str, system: str, figure: str) -> Spread | None:
		return _spread(self.rounds(measurement, system, figure))

	def ratio(
		self, measurement: str, system: str, figure: str, others: tuple[str, ...], best: Callable = max
	) -> Ratio | None:
		"""To the best of the others, by their medians; None when either side was not measured."""
		known = {other: self.median(measurement, other, figure) for other in others}
		known = {other: value for other, value in known.items() if value}
		if not known or not self.rounds(measurement, system, figure):
			return None
		to = best(known, key=known.get)
		return Ratio(self.ratio_to(measurement, system, figure, to), to)

	def ratio_to(self, measurement: str, system: str, figure: str, other: str) -> Spread:
		"""Round by round: what slowed a whole round down slowed both."""
		pairs = zip(
			self.rounds(measurement, system, figure), self.rounds(measurement, other, figure), strict=True
		)
		return _spread([own / others for own, others in pairs])

	def write(self, path: Path) -> None:
		path.parent.mkdir(parents=True, exist_ok=True)
		path.write_text(json.dumps(asdict(self), indent=1) + "\n")

	@classmethod
	def read(cls, path: Path) -> "Results":
		return cls(**json.loads(path.read_text()))


def _spread(values: list[float]) -> Spread | None:
	return Spread(statistics.median(values), min(values), max(values)) if values else None
