"""Completions: what is to be recorded of jobs that have ended well, as plain data.

So they can wait in memory, be written many at a time, and be written by the watchdog where the drain cannot.
"""

import pickle
from typing import NamedTuple

from dartwing_jobs.engine import dependents, runs, statements, states, transitions
from dartwing_jobs.engine.statements import Trip

HELD = f"""select name, status, exists (select 1 from `tabBackground Job` child
	where child.depends_on = job.name and {dependents.WAITING}) as is_waited_for
	from `tabBackground Job` job where lease_token = %s and name in ({{}}) order by name for update"""


class Completion(NamedTuple):
	job: dict  # as it was when its handler began
	token: str
	is_started: bool  # whether the job was Running by then, and its run and its start were written
	columns: dict  # of the job
	run: dict  # the row of its Job Run; of one that was started, its name and what its end changes
	events: list[dict]  # rows for the log: the start, unless it was written; notes; the end

	@property
	def name(self) -> str:
		return self.job["name"]

	def status(self) -> str:
		"""What its job has been until now."""
		return states.RUNNING if self.is_started else states.QUEUED

	def path(self) -> tuple[str, ...]:
		return (states.COMPLETED,) if self.is_started else (states.RUNNING, states.COMPLETED)

	def packed(self) -> bytes:
		return pickle.dumps(tuple(self))


def unpack(record: bytes) -> Completion:
	return Completion(*pickle.loads(record))


def record(completions: list[Completion]) -> None:
	"""In the caller's transaction."""
	trip = Trip()
	write(completions, trip)
	trip.send()


def write(completions: list[Completion], trip: Trip) -> list[Completion]:
	"""Lets a trip record jobs that one lease holds; returns those that it still held.

	A job that was taken from its drain, canceled, or recorded by the other process is left out.
	"""
	found = _held(completions)
	kept = [one for one in completions if one.name in found and found[one.name].status == one.status()]
	if kept:
		_write_jobs(kept, trip)
		_write_runs(kept, trip)
	for one in kept:
		if found[one.name].is_waited_for:
			dependents.see_to_children(one.name, states.COMPLETED)
	return kept


def _held(completions: list[Completion]) -> dict:
	names = [one.name for one in completions]
	places = ", ".join(["%s"] * len(names))
	rows = statements.fetch(HELD.format(places), [completions[0].token, *names])
	return {row.name: row for row in rows}


def _write_jobs(completions: list[Completion], trip: Trip) -> None:
	made = [transitions.Made(one.job, one.path(), one.columns) for one in completions]
	transitions.apply_each(made, [event for one in completions for event in one.events], trip)


def _write_runs(completions: list[Completion], trip: Trip) -> None:
	if new := [one.run for one in completions if not one.is_started]:
		trip.insert(runs.DOCTYPE, new)
	for one in completions:
		if one.is_started:
			columns = {column: value for column, value in one.run.items() if column != "name"}
			trip.update(runs.DOCTYPE, one.run["name"], columns)
