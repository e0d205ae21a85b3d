"""What a group is, told from the statuses of its members alone. No database here.

The table of docs/groups.md, as code.
"""

from dartwing_jobs.engine import states

QUEUED, RUNNING, COMPLETED, PARTIAL, CANCELED = "Queued", "Running", "Completed", "Partial", "Canceled"
ALL = (QUEUED, RUNNING, COMPLETED, PARTIAL, CANCELED)
ENDED = frozenset({COMPLETED, PARTIAL, CANCELED})
# nobody has worked on these
UNTOUCHED = states.WAITING | {states.CANCELED}


def derived(counts: dict[str, int]) -> str:
	"""The status of a group that has so many members in each status, each chain counted by its last job."""
	present = {status for status, count in counts.items() if count}
	if not present or present & states.ACTIVE:
		return QUEUED if present <= UNTOUCHED else RUNNING
	if present == {states.COMPLETED}:
		return COMPLETED
	return CANCELED if present == {states.CANCELED} else PARTIAL


def percent(counts: dict[str, int], progress_of_running: float) -> int:
	"""How far a group is: who has ended counts whole, who runs by its own progress, who waits not at all."""
	total = sum(counts.values())
	if not total:
		return 0
	return int((100 * ended(counts) + progress_of_running) / total)


def ended(counts: dict[str, int]) -> int:
	return sum(counts.get(status, 0) for status in states.TERMINAL)
