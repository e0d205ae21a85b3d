"""Jobs as lines that fit the terminal: texts are shortened, and columns left out where it is too narrow."""

import os
import shutil
import sys
from collections.abc import Callable
from typing import Any

COLOURS = {"Completed": 32, "Running": 36, "Dead Letter": 31, "Canceled": 35, "Failed": 33, "Timed Out": 33}
# how wide a column must be at least, and would like to be; where it is too narrow, the last ones are left out
WIDTHS = {
	"name": (14, 14),
	"status": (11, 11),
	"type": (10, 13),
	"bar": (5, 20),
	"percent": (4, 4),
	"attempt": (2, 9),
	"organization": (7, 16),
	"note": (13, 32),
}
FIRST_TO_GROW = ("type", "organization", "note", "attempt", "bar")
CELLS: dict[str, Callable[[Any, int], str]] = {
	"name": lambda job, _width: job.name,
	"organization": lambda job, _width: job.organization,
	"type": lambda job, _width: job.job_type,
	"status": lambda job, _width: job.status,
	"bar": lambda job, width: ("█" * round(job.progress * width / 100)).ljust(width, "░"),
	"percent": lambda job, _width: f"{job.progress:>3.0f}%",
	"attempt": lambda job, width: f"attempt {job.attempt}" if width >= 9 else f"{job.attempt}",
	"note": lambda job, _width: " ".join((job.progress_message or job.error_message or "").split()),
}
SEPARATOR = "  "
WITHOUT_TERMINAL = 133


def draw(jobs: list) -> None:
	print(
		*lines(jobs, shutil.get_terminal_size((WITHOUT_TERMINAL, 24)).columns, _is_coloured()),
		sep="\n",
		flush=True,
	)


def lines(jobs: list, columns: int, coloured: bool) -> list[str]:
	longest = max((len(job.name) for job in jobs), default=0)
	widths = _fit({**WIDTHS, "name": (longest, longest)}, columns)
	return [_line(job, widths, coloured) for job in jobs]


def is_live(count: int) -> bool:
	"""Whether that many lines can be drawn again and again at the same place."""
	return sys.stdout.isatty() and count < shutil.get_terminal_size().lines


def _is_coloured() -> bool:
	return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _fit(wishes: dict[str, tuple[int, int]], columns: int) -> dict[str, int]:
	widths = {name: least for name, (least, _) in wishes.items()}
	while _total(widths) > columns and len(widths) > 1:
		widths.popitem()
	spare = columns - _total(widths)
	for name in filter(widths.get, FIRST_TO_GROW):
		more = max(0, min(spare, wishes[name][1] - widths[name]))
		widths[name] += more
		spare -= more
	return widths


def _total(widths: dict[str, int]) -> int:
	return sum(widths.values()) + len(SEPARATOR) * (len(widths) - 1)


def _line(job: Any, widths: dict[str, int], coloured: bool) -> str:
	cells = {
		name: _shorten(cell(job, widths[name]), widths[name])
		for name, cell in CELLS.items()
		if name in widths
	}
	if coloured and "status" in cells:
		cells["status"] = f"\033[{COLOURS.get(job.status, 0)}m{cells['status']}\033[0m"
	return SEPARATOR.join(cells.values())


def _shorten(text: str, width: int) -> str:
	return text.ljust(width) if len(text) <= width else text[: width - 1] + "…"
