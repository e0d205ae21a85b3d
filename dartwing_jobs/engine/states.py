"""Status words, the table of moves, and the sets of statuses that belong together. No database here."""

from typing import NamedTuple

PENDING = "Pending"
QUEUED = "Queued"
RUNNING = "Running"
COMPLETED = "Completed"
FAILED = "Failed"
DEAD_LETTER = "Dead Letter"
TIMED_OUT = "Timed Out"
CANCELED = "Canceled"

# in the order of the field's options
ALL = (PENDING, QUEUED, RUNNING, COMPLETED, FAILED, DEAD_LETTER, TIMED_OUT, CANCELED)
WAITING = frozenset({PENDING, QUEUED})
TERMINAL = frozenset({COMPLETED, DEAD_LETTER, CANCELED})
ACTIVE = frozenset(ALL) - TERMINAL
# over for good only if a successor has taken over; otherwise they are about to be tried again
REPLACEABLE = frozenset({FAILED, TIMED_OUT})


class IllegalMove(Exception):
	"""A program asked for a move that the table of transitions does not have."""

	def __init__(self, from_status: str, to_status: str):
		super().__init__(f"A job cannot move from {from_status} to {to_status}.")


class Transition(NamedTuple):
	trigger: str
	event: str


CREATION = Transition("Job created", "job.created")

TRANSITIONS: dict[tuple[str, str], Transition] = {
	(PENDING, QUEUED): Transition("enqueue()", "job.enqueued"),
	(QUEUED, RUNNING): Transition("Worker picks up", "job.started"),
	(RUNNING, COMPLETED): Transition("Success", "job.succeeded"),
	(RUNNING, FAILED): Transition("Transient error", "job.failed"),
	(RUNNING, DEAD_LETTER): Transition("Permanent error", "job.deadlettered"),
	(RUNNING, TIMED_OUT): Transition("Timeout exceeded", "job.timed_out"),
	(FAILED, QUEUED): Transition("Retry", "job.retried"),
	(FAILED, DEAD_LETTER): Transition("Exhausted", "job.deadlettered"),
	(TIMED_OUT, QUEUED): Transition("Retry", "job.retried"),
	(TIMED_OUT, DEAD_LETTER): Transition("Exhausted", "job.deadlettered"),
	(PENDING, CANCELED): Transition("cancel()", "job.canceled"),
	(QUEUED, CANCELED): Transition("cancel()", "job.canceled"),
	(RUNNING, CANCELED): Transition("cancel()", "job.canceled"),
}


def transition(from_status: str, to_status: str) -> Transition:
	"""The table's row for this move; raises when there is none."""
	try:
		return TRANSITIONS[from_status, to_status]
	except KeyError:
		raise IllegalMove(from_status, to_status) from None
