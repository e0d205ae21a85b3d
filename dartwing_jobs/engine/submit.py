"""Submitting: a row and its first log rows in the caller's transaction, and a ring after the commit."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from itertools import chain

import frappe
from frappe import _
from frappe.model.document import Document

from dartwing_jobs import tenancy
from dartwing_jobs.document import checked
from dartwing_jobs.engine import (
	afterwards,
	bell,
	database,
	dependents,
	log,
	naming,
	statements,
	states,
	submission,
)
from dartwing_jobs.engine.groups import memberships
from dartwing_jobs.engine.handling import inputs
from dartwing_jobs.engine.intake import best_effort, fingerprints, foreign, keys, payload
from dartwing_jobs.engine.intake.frozen import shipped_fields
from dartwing_jobs.engine.limits import capacity
from dartwing_jobs.engine.observing import journal, listeners, tracing
from dartwing_jobs.engine.order import Places, first_place
from dartwing_jobs.engine.outcomes import TICK
from dartwing_jobs.engine.rules import priorities
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.messages import throw

# what a submitter may say about a job beside its type, organization and parameters
OPTIONS = frozenset(
	{
		"priority",
		"scheduled_for",
		"depends_on",
		"on_parent_failure",
		"timeout_seconds",
		"max_retries",
		"owner_user",
		"job_queue",
		"project_id",
		"request_id",
		"correlation_id",
		"traceparent",
		"job_id",
		"job_template",
		"job_schedule",
		"job_group",
		"position",
		"retry_of",
		"idempotency_key",
		"unique_key",
	}
)
# keys that are given must say something: an empty one would promise what nobody keeps
KEYS = ("idempotency_key", "unique_key")
DOCTYPE = "Background Job"
# what one statement writes at most
ROWS_AT_ONCE = 500
BYTES_AT_ONCE = 4_000_000
NUMBERS = frozenset({"Int", "Percent", "Check", "Float"})


def submit(
	job_type: str,
	parameters: dict | str | None = None,
	organization: str | None = None,
	*,
	if_duplicate: str = keys.ANSWER,
	must_submit: bool = False,
	repeat: str | None = None,
	**options,
) -> Document | None:
	"""Submits one job and returns it. It runs once the caller's transaction has been committed.

	What was submitted before, by its keys or within its type's window, is not submitted again: the earlier
	job is returned, and says so (`duplicate`). A notification that cannot be submitted is logged, and None
	returned, unless it `must_submit`. `repeat`, a cron expression, makes a Job Schedule instead.
	"""
	if repeat is not None:
		# it needs much that submits otherwise do not load
		from dartwing_jobs.engine.schedules import recurring

		return recurring.repeat(repeat, job_type, parameters, organization, **options)
	its_type = submission.type_named(job_type)

	def submit_it() -> Document:
		return _submit(its_type, parameters, organization, options, if_duplicate)

	if must_submit or not best_effort.is_best_effort(its_type):
		return submit_it()
	return best_effort.attempt(submit_it, job_type)


def submit_many(
	job_type: str,
	many_parameters: list[dict],
	organization: str | None = None,
	*,
	if_duplicate: str = keys.ANSWER,
	idempotency_keys: list[str] | None = None,
	positions: list[int] | None = None,
	must_submit: bool = False,
	**options,
) -> list[str]:
	"""Submits a job for each set of parameters, with the same checks, in a few statements.

	Returns their names in the same order; for what was submitted before, the earlier job's name.
	In a group (`job_group`) they stand one behind the other from `position` on, or each at its own place.
	"""
	its_type = submission.type_named(job_type)

	def submit_them() -> list[str]:
		each = {"idempotency_key": idempotency_keys, "position": positions}
		return _submit_many(its_type, many_parameters, organization, options, if_duplicate, each)

	if must_submit or not best_effort.is_best_effort(its_type):
		return submit_them()
	return best_effort.attempt(submit_them, job_type) or []


def submit_alike(job_type: str, many: list[dict], own: list[dict], organization: str, **options) -> list[str]:
	"""For the engine: jobs of one type and owner that each have columns of their own, which it has checked.

	Nothing is deduplicated. Returns their names in the same order.
	"""
	its_type = submission.type_named(job_type)
	with _submitting(its_type, options):
		job = _new_job(its_type, organization, options)
		each = {column: [columns[column] for columns in own] for column in own[0]}
		jobs = _insert(job, its_type, submission.storable_parameters(its_type, many), keys.ALLOW, each)
	return [one.name for one in jobs]


def _submit(its_type, parameters, organization: str | None, options: dict, if_duplicate: str) -> Document:
	with _submitting(its_type, options):
		job = _new_job(its_type, organization, options)
		(answer,) = _insert(
			job, its_type, submission.storable_parameters(its_type, [parameters]), if_duplicate
		)
		if answer.earlier:
			return _earlier(answer)
	# a document sets what it is given one by one, and nothing to the rest
	told = {name: value for name, value in answer.items() if value is not None}
	return frappe.get_doc({"doctype": DOCTYPE, **_zeros(), **told})


def _submit_many(
	its_type, many: list, organization, options: dict, if_duplicate: str, each: dict
) -> list[str]:
	_check_keys_of_many(len(many), each["idempotency_key"], options)
	if each["position"]:
		options = {**options, "position": each["position"][0]}
	with _submitting(its_type, options):
		job = _new_job(its_type, organization, options)
		stored = submission.storable_parameters(its_type, many)
		answers = _insert(job, its_type, stored, if_duplicate, each) if stored else []
	return [one.name for one in answers]


@contextmanager
def _submitting(its_type, options: dict) -> Iterator[None]:
	with foreign.conflicts_named(), tracing.submitting(its_type.name, options.get("traceparent")):
		yield


def _earlier(asked) -> Document:
	"""The job that was submitted before, marked so."""
	row = keys.read_earlier(asked.earlier, asked)
	row.input_parameters = statements.as_json(row.input_parameters)
	row.input_checksums = statements.as_json(row.input_checksums)
	job = frappe.get_doc({"doctype": DOCTYPE, **row})
	job.flags.duplicate = True
	if job.job_hash or keys.is_given(job):
		afterwards.gather(keys.note_seen, job.name)
	return job


def organization_for(organization: str | None, user: str) -> str:
	"""The organization that is named, as the database has it; or else the one of a user who has just one."""
	if organization:
		return tenancy.organization_as_stored(organization, user)
	organizations = tenancy.permitted_organizations(user, "Background Job")
	if len(organizations) != 1:
		throw(_("Say for which organization the job is."), InvalidJobError)
	return organizations[0]


def _new_job(its_type, organization: str | None, options: dict) -> frappe._dict:
	"""A job that was checked in every respect but its parameters and keys, and is not written yet."""
	user = options.get("owner_user") or frappe.local.session.user
	job = frappe._dict(_blank_row(), **_checked_options(options))
	job.organization = organization_for(organization, user)
	job.priority = priorities.from_value(job.priority)
	submission.set_submitter(job, its_type)
	submission.fill_in(job, its_type)
	submission.check(job, its_type)
	return job


def _checked_options(options: dict) -> dict:
	if unknown := sorted(set(options) - OPTIONS):
		throw(_("A job has no option {0}.").format(", ".join(unknown)), InvalidJobError)
	given = {name: value for name, value in options.items() if value not in (None, "")}
	said = {name: options[name] for name in KEYS if options.get(name) is not None}
	for name, value in (said | given).items():
		if name in payload.LENGTHS:
			payload.check_text(value, name, payload.LENGTHS[name])
	return {name: checked(value, shipped_fields()[name], name) for name, value in given.items()}


@lru_cache
def _blank_row() -> dict:
	"""A job that says nothing: each field's default."""
	fields = shipped_fields().values()
	words = {field.fieldname: field.default for field in fields if field.fieldtype == "Select"}
	numbers = {field.fieldname: int(field.default or 0) for field in fields if field.fieldtype in NUMBERS}
	return {name: value for name, value in (words | numbers).items() if value} | {"doctype": DOCTYPE}


@lru_cache
def _zeros() -> dict:
	"""What is nothing in a new job, and is written by nobody: columns of numbers are 0 by themselves."""
	numbers = [field.fieldname for field in shipped_fields().values() if field.fieldtype in NUMBERS]
	return dict.fromkeys(["docstatus", "idx", *numbers], 0)


def _check_keys_of_many(count: int, idempotency_keys: list | None, options: dict) -> None:
	if given := sorted(set(KEYS) & options.keys()):
		message = _("{0} belongs to one job: submit each by itself, or give a list of idempotency_keys.")
		throw(message.format(", ".join(given)), InvalidJobError)
	if idempotency_keys is None:
		return
	if not isinstance(idempotency_keys, list) or len(idempotency_keys) != count:
		throw(_("Give as many idempotency_keys as sets of parameters."), InvalidJobError)
	for key in idempotency_keys:
		payload.check_text(key, "idempotency_key", payload.LENGTHS["idempotency_key"])


def _insert(first, its_type, stored: list[str | None], if_duplicate: str, each: dict | None = None):
	"""Writes a job for each set of parameters, all alike otherwise, and puts them in line.

	Returns a row for each; one that was not needed has the name of the job that is its answer (`earlier`).
	"""
	keys.check_wish(if_duplicate)
	first.run_at = _moment_to_wait_for(first)
	first.creation = first.modified = first.created_at
	first.modified_by = frappe.local.session.user
	del first["doctype"]  # it is no column
	jobs = _rows(first, stored, each or {})
	inputs.remember(jobs, its_type)
	claims = keys.claims_of_all(jobs, its_type, if_duplicate)
	for job, name in zip(jobs, naming.next_job_names(len(jobs), first.created_at), strict=True):
		job.name = name
	places = _places_for(first)
	if claims or first.unique_key:
		for job, earlier in _write_what_is_new(jobs, places, claims, if_duplicate):
			job.name = job.earlier = earlier
	else:
		_write(jobs, places)
	return jobs


def _places_for(job) -> Places:
	"""Checks the grounds of a job, and asks for its place in line, in one question."""
	(groundless, values), place, of_place = submission.groundless(job), "0", ()
	if not (job.run_at or job.depends_on):
		place, of_place = first_place(job.job_queue, job.organization, job.priority)
	found = statements.value(f"case when {groundless} then null else {place} end", (*values, *of_place))
	if found is None:
		submission.refuse_groundless(job)
	places = Places(job.job_queue)
	if found:
		places.begin_at(found, job.organization, job.priority)
	return places


def _rows(first, stored: list[str | None], each: dict[str, list | None]) -> list[frappe._dict]:
	"""A row for each set of parameters; `each` are the columns that they were given a list of values for."""
	jobs = [frappe._dict(first, input_parameters=one) for one in stored]
	for job in jobs[1:]:
		job.job_id = str(uuid.uuid4())
	if not each.get("idempotency_key"):
		for job in jobs[1:]:
			job.idempotency_key = fingerprints.key_of_its_own(job)
	if first.job_group and not each.get("position"):
		each = {**each, "position": range(first.position, first.position + len(jobs))}
	for column, values in each.items():
		for job, value in zip(jobs, values or (), strict=bool(values)):
			job[column] = value
	return jobs


def _write_what_is_new(
	jobs: list, places: Places, claims: list[keys.Claim], if_duplicate: str
) -> list[tuple]:
	"""Returns each job that was not needed, with the name of the earlier one."""
	try:
		with foreign.undone_if_refused():
			answers = keys.take(claims) if claims else {}
			if jobs[0].unique_key and not answers and (holder := keys.holder_of(jobs[0])):
				answers = {jobs[0].name: holder}
			keys.refuse_if_unwanted(answers, if_duplicate)
			if new := [job for job in jobs if job.name not in answers]:
				_write(new, places)
	except Exception as error:
		if not database.is_duplicate(error, keys.UNIQUE_INDEX):
			raise
		answers = {jobs[0].name: keys.holder_now(jobs[0])}
		keys.refuse_if_unwanted(answers, if_duplicate)
	return [(job, answers[job.name]) for job in jobs if job.name in answers]


def _write(jobs: list, places: Places) -> None:
	for alike in memberships.take_places(jobs) if jobs[0].job_group else [jobs]:
		_write_alike(alike, places)


def _write_alike(jobs: list, places: Places) -> None:
	first = jobs[0]
	capacity.check(jobs)
	if not (first.run_at or first.depends_on):
		_put_in_line(jobs, places)
	for batch in _batches(jobs):
		_write_batch(batch)
	tracing.describe(first)
	call_workers_after_commit(first)
	if listeners.somebody_listens():
		for job in jobs:
			listeners.tell_after_commit(job.name, None, job.status)


def _write_batch(jobs: list) -> None:
	"""In a packet of its own, and before anything is to be done after the commit."""
	trip, told = statements.Trip(), _first_log_rows(jobs)
	trip.insert(DOCTYPE, jobs)
	for rows in told if len(jobs) > 1 else [list(chain(*told))]:
		trip.insert("Job Execution Log", rows)
	trip.send()
	journal.tell_after_commit(list(chain(*told)))


def _moment_to_wait_for(job) -> datetime | None:
	"""When a delayed job falls due, in UTC; None when it is due already, or waits for its parent."""
	if not job.scheduled_utc or job.depends_on:
		return None
	return job.scheduled_utc if job.scheduled_utc > database.utc_now() else None


def _put_in_line(jobs: list, places: Places) -> None:
	for job in jobs:
		job.update(places.next(job.organization, job.priority), status=states.QUEUED, moves=1)


def _first_log_rows(jobs: list) -> list[list[dict]]:
	"""The same story for each: that it was submitted, and that it stands in line. By event."""
	first = jobs[0]
	told = {"now": first.created_at, "actor": first.owner_user}
	rows = [log.row(first, states.CREATION.event, None, states.PENDING, **told)]
	if first.status == states.QUEUED:
		event = states.transition(states.PENDING, states.QUEUED).event
		rows.append(log.row(first, event, states.PENDING, states.QUEUED, now=first.created_at + TICK))
	return [[row, *log.retold(row, jobs[1:])] for row in rows]


def _batches(jobs: list) -> Iterator[list]:
	"""No statement may be larger than a server takes, and parameters may be large."""
	batch, size = [], 0
	for job in jobs:
		length = len(job.input_parameters or "")
		if batch and (len(batch) == ROWS_AT_ONCE or size + length > BYTES_AT_ONCE):
			yield batch
			batch, size = [], 0
		batch.append(job)
		size += length
	yield batch


def call_workers_after_commit(job) -> None:
	"""Rings for a job that was submitted, whether it is due, falls due soon, or waits for its parent."""
	if job.depends_on:
		afterwards.gather(dependents.follow, job.depends_on)
	elif job.run_at:
		bell.ring_when_due_after_commit(job.job_queue, job.run_at)
	else:
		bell.ring_after_commit(job.job_queue)
