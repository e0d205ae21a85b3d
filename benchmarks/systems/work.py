"""What jobs do, by kind: the same for every system."""

import time

from benchmarks.systems import plain_table, tally

EMPTY, ROW, SLEEP, HOLD = "empty", "row", "sleep", "hold"
SLEEP_SECONDS = 0.005


def do(kind: str, number: int, folder: str | None = None) -> None:
	"""The work of a peer's job: it counts as done when its work is."""
	if kind == HOLD:
		tally.hold(folder)
		return
	if kind == ROW:
		plain_table.in_this_process().insert(number)
	elif kind == SLEEP:
		time.sleep(SLEEP_SECONDS)
	tally.stamp(number, folder)
