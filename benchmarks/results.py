"""What was measured: every sample of every round, what did not run and why; medians and ratios of them."""

import json
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple


class Ratio(NamedTuple):
	times: float
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

	def median(self, measurement: str, system: str, figure: str) -> float | None:
		samples = self.samples.get(measurement, {}).get(system, {}).get(figure)
		return statistics.median(samples) if samples else None

	def ratio(self, measurement: str, system: str, figure: str, others: tuple[str, ...]) -> Ratio | None:
		"""How many times the highest of the others; None when either side was not measured."""
		own = self.median(measurement, system, figure)
		known = {other: self.median(measurement, other, figure) for other in others}
		known = {other: value for other, value in known.items() if value}
		if own is None or not known:
			return None
		best = max(known, key=known.get)
		return Ratio(own / known[best], best)

	def write(self, path: Path) -> None:
		path.parent.mkdir(parents=True, exist_ok=True)
		path.write_text(json.dumps(asdict(self), indent=1) + "\n")

	@classmethod
	def read(cls, path: Path) -> "Results":
		return cls(**json.loads(path.read_text()))
