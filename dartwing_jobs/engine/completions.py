"""Completions: what is to be recorded of jobs that have ended well, as plain data.

So they can wait in memory, be written many at a time, and be written by the watchdog where the drain cannot.
"""

import pickle
from typing import NamedTuple

from dartwing_jobs.engine import dependents, runs, statements, states, transitions

HELD = """select name, status from `tabBackground Job`
	where lease_token = %s and name in ({}) order by name for update"""


class Completion(NamedTuple):
	job: dict  # as it was when its handler began
	token: str
	is_started: bool  # whether the job was Running by then, and its run and its start were written
	columns: dict  # of the job
	run: dict  # the row of its Job Run; of one that was started, its name and what its end changes
	events: list[dict]  # rows for the log: the start, unless it was written; notes; the end

	def packed(self) -> bytes:
		return pickle.dumps(tuple(self))


def unpack(record: bytes) -> Completion:
	return Completion(*pickle.loads(record))


def write(completions: list[Completion]) -> list[Completion]:
	"""Records jobs that one lease holds, in the caller's transaction; returns those that it still held.

	A job that was taken from its drain, canceled, or recorded by the other process is left out.
	"""
	kept = _still_held(completions)
	if kept:
		_write_jobs(kept)
		_write_runs(kept)
		dependents.parents_ended([one.job for one in kept], states.COMPLETED)
	return kept


def _still_held(completions: list[Completion]) -> list[Completion]:
	names = [one.job["name"] for one in completions]
	places = ", ".join(["%s"] * len(names))
	found = {
		row.name: row.status for row in statements.fetch(HELD.format(places), [completions[0].token, *names])
	}
	return [one for one in completions if found.get(one.job["name"]) == _status(one)]


def _status(completion: Completion) -> str:
	return states.RUNNING if completion.is_started else states.QUEUED


def _write_jobs(completions: list[Completion]) -> None:
	transitions.apply_each(
		[transitions.Made(one.job, _path(one), one.columns) for one in completions],
		[event for one in completions for event in one.events],
	)


def _path(completion: Completion) -> tuple[str, ...]:
	return (states.COMPLETED,) if completion.is_started else (states.RUNNING, states.COMPLETED)


def _write_runs(completions: list[Completion]) -> None:
	if new := [one.run for one in completions if not one.is_started]:
		statements.insert(runs.DOCTYPE, new)
	for one in completions:
		if one.is_started:
			columns = {column: value for column, value in one.run.items() if column != "name"}
			statements.update(runs.DOCTYPE, one.run["name"], columns)
