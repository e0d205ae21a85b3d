"""Completions: what is to be recorded of jobs that have ended well, as plain data.

So they can wait in memory, be written many at a time, and be written by the watchdog where the drain cannot.
"""

import pickle
from typing import NamedTuple

import frappe

from dartwing_jobs.engine import dependents, log, runs, statements, states, transitions
from dartwing_jobs.engine.intake import keys
from dartwing_jobs.engine.statements import Trip

JOB = "Background Job"
HELD = f"""select name, status, exists (select 1 from `tabBackground Job` child
	where child.depends_on = job.name and {dependents.WAITING}) as is_waited_for
	from `tabBackground Job` job where lease_token = %s and name in ({{}}) order by name for update"""


# MariaDB reads the table that is being changed only from another one
UNASKED = f"""name = %s and lease_token = %s and status = %s and not exists (select 1 from
	(select name from `tab{JOB}` where depends_on = %s and {dependents.WAITING} limit 1) child)"""


class InDoubt(Exception):
	"""A job could not be recorded without asking first."""


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

	def made(self) -> transitions.Made:
		return transitions.Made(self.job, self.path(), self.columns)

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
		trip.update_each(JOB, {one.name: one.columns for one in kept})
		_write_stories(kept, trip)
		tell(kept)
	for one in kept:
		if found[one.name].is_waited_for:
			dependents.see_to_children(one.name, states.COMPLETED)
	return kept


def write_unasked(completion: Completion, trip: Trip) -> None:
	"""The same for one job that others hardly ever wait for, without a question before.

	The trip raises InDoubt if one waits, or if the job is no longer held; nothing is recorded then.
	"""
	assignments = ", ".join(f"`{column}` = %s" for column in completion.columns)
	values = [*completion.columns.values(), completion.name, completion.token, completion.status()]
	statement = f"update `tab{JOB}` set {assignments} where {UNASKED}"
	trip.execute_or_raise(statement, [*values, completion.name], InDoubt())
	_write_stories([completion], trip)


def is_plain(completion: Completion) -> bool:
	"""Whether nothing else is written with its end."""
	job = completion.job
	return not (completion.is_started or job["job_group"] or keys.is_given(frappe._dict(job)))


def tell(completions: list[Completion]) -> None:
	"""Those who follow what happens to jobs, after the commit."""
	transitions.tell_each([one.made() for one in completions])
	log.tell([event for one in completions for event in one.events])


def _held(completions: list[Completion]) -> dict:
	names = [one.name for one in completions]
	places = ", ".join(["%s"] * len(names))
	rows = statements.fetch(HELD.format(places), [completions[0].token, *names])
	return {row.name: row for row in rows}


def _write_stories(completions: list[Completion], trip: Trip) -> None:
	transitions.check_each([one.made() for one in completions])
	log.add_rows([event for one in completions for event in one.events], trip)
	if new := [one.run for one in completions if not one.is_started]:
		trip.insert(runs.DOCTYPE, new)
	for one in completions:
		if one.is_started:
			columns = {column: value for column, value in one.run.items() if column != "name"}
			trip.update(runs.DOCTYPE, one.run["name"], columns)
