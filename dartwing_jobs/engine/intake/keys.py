"""Keys: what was submitted before is answered with its job. Unique indexes decide, however many are at it.

Idempotency keys and deduplication windows are rows of one table, taken by the job that comes first; a unique
key is a column of the job itself. A look comes first, so that a duplicate locks nothing: only those who find
nothing and lose the race for the row wait for whoever won it, for a short while.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import NamedTuple

import frappe
from frappe import _
from frappe.utils import cint

from dartwing_jobs import clock
from dartwing_jobs.engine import database, rows, statements, states
from dartwing_jobs.engine.intake import fingerprints, foreign
from dartwing_jobs.engine.rules import policies
from dartwing_jobs.errors import DuplicateJob, InvalidJobError, KeyConflict, SubmitConflict
from dartwing_jobs.messages import throw

DOCTYPE = "Job Idempotency Key"
UNIQUE_INDEX = "unique_active_job_key"
IDEMPOTENCY_KEY, WINDOW = "Idempotency Key", "Deduplication Window"
KINDS = (IDEMPOTENCY_KEY, WINDOW)
# of Background Job: two that differ by a byte are two keys. The table of keys compares digests
COLLATIONS = {
	"unique_key": database.EVERY_BYTE,
	"idempotency_key": database.BYTES_OF_WORDS,
	"job_hash": database.BYTES_OF_WORDS,
}
ANSWER, REFUSE, ALLOW = "answer", "refuse", "allow"
DAY = 24 * 60 * 60
ROWS_AT_ONCE = 500
# what a key says of its job's status
STATUSES = {
	states.PENDING: "pending",
	states.QUEUED: "pending",
	states.RUNNING: "running",
	states.COMPLETED: "succeeded",
	states.FAILED: "failed",
	states.TIMED_OUT: "failed",
	states.DEAD_LETTER: "dead",
	states.CANCELED: "dead",
}
SUCCEEDED = STATUSES[states.COMPLETED]
# a job that ended so has no answer: the next one takes its keys over
WITHOUT_ANSWER = frozenset({states.DEAD_LETTER, states.CANCELED})
# what a job that was cleaned up has left behind
LEFT = f"""select owner, background_job, job_id, organization, result_ref, first_seen_at, modified
	from `tab{DOCTYPE}` where background_job = %s and kind = '{IDEMPOTENCY_KEY}' and status = '{SUCCEEDED}'"""
JOB = "select * from `tabBackground Job` where name = %s"
HOLDER = "select name from `tabBackground Job` where organization = %s and unique_key = %s"
# reads what is committed now, where the transaction's own snapshot is older
AS_IT_IS_NOW = "lock in share mode"


class Claim(NamedTuple):
	"""That a job is the only one of its kind for some time."""

	job: object
	kind: str
	key: str
	key_hash: str
	params_hash: str
	seconds: int


def claims_of_all(jobs: list, job_type, if_duplicate: str) -> list[Claim]:
	"""What jobs that are about to be written must take: most take nothing, and are not asked one by one."""
	if not cint(job_type.deduplication_window) and not any(map(is_given, jobs)):
		return []
	return [claim for job in jobs for claim in claims_of(job, job_type, if_duplicate)]


def claims_of(job, job_type, if_duplicate: str = ANSWER) -> list[Claim]:
	"""What a job that is about to be written must take; also fills in its hash, if its type has a window."""
	claims, parameters = [], job.input_parameters
	if is_given(job):
		days = policies.category_of(job_type).key_lifetime_days
		claims.append(_claim(job, IDEMPOTENCY_KEY, job.idempotency_key, days * DAY, parameters))
	if window := cint(job_type.deduplication_window):
		job.job_hash = fingerprints.job_hash(job, parameters)
		# who retries a job by hand, or puts it into a group, wants another one
		if if_duplicate != ALLOW and not (job.retry_of or job.job_group):
			claims.append(_claim(job, WINDOW, job.job_hash, window, parameters))
	return claims


def is_given(job) -> bool:
	"""Whether somebody gave this job its idempotency key; the engine's own ends in the job's number."""
	return bool(job.idempotency_key) and not job.idempotency_key.endswith(job.job_id)


def take(claims: list[Claim]) -> dict[str, str]:
	"""Takes what is claimed; for each job that came too late: the name of the one that answers for it."""
	utc = clock.utc_now()
	answers: dict[str, str] = {}
	for kind in KINDS:
		wanted = [one for one in claims if one.kind == kind and one.job.name not in answers]
		if wanted:
			answers |= _take(wanted, utc)
	if answers:
		_let_go(claims, answers)
	return {name: _last(answers, name) for name in answers}


def holder_of(job) -> str | None:
	"""The active job that has this job's unique key, as far as this transaction sees."""
	found = statements.fetch(HOLDER, (job.organization, job.unique_key))
	return found[0].name if found else None


def holder_now(job) -> str:
	"""The same for one that has just refused this job: it may be newer than this transaction's snapshot."""
	return _read_now(HOLDER, (job.organization, job.unique_key)).name


def read_earlier(job_name: str, asked):
	"""The row of the job that answers for what is `asked`; of one that was cleaned up, what its key knows.

	Type, project and parameters were compared with the key's: they are as asked.
	"""
	if row := _find_now(JOB, (job_name,)):
		return row
	key = _read_now(LEFT, (job_name,))
	same = {
		name: asked.get(name) for name in ("job_type", "project_id", "input_parameters", "idempotency_key")
	}
	return frappe._dict(
		same,
		name=job_name,
		job_id=key.job_id,
		organization=key.organization,
		owner=key.owner,
		owner_user=key.owner,
		status=states.COMPLETED,
		created_at=key.first_seen_at,
		completed_at=key.modified,
		output_reference=key.result_ref if key.result_ref != job_name else None,
	)


def _find_now(statement: str, values: tuple):
	"""A row that was committed, perhaps after this transaction's snapshot; None where it cannot be seen."""
	found = statements.fetch(statement, values)
	if not found and _can_look_past_snapshot():
		found = statements.fetch(f"{statement} {AS_IT_IS_NOW}", values)
	return found[0] if found else None


def _read_now(statement: str, values: tuple):
	found = _find_now(statement, values)
	if not found:
		raise SubmitConflict(_("The same is being submitted by somebody else; roll back and try again."))
	return found


def refuse_if_unwanted(answers: dict[str, str], if_duplicate: str) -> None:
	if answers and if_duplicate == REFUSE:
		refuse(next(iter(answers.values())))


def refuse(job_name: str) -> None:
	throw(_("This was submitted before, as {0}.").format(job_name), DuplicateJob)


def check_wish(if_duplicate: str) -> None:
	if if_duplicate not in (ANSWER, REFUSE, ALLOW):
		message = _("if_duplicate must be {0}, {1} or {2}, not {3}.")
		throw(message.format(ANSWER, REFUSE, ALLOW, if_duplicate), InvalidJobError)


@contextmanager
def held_by(document, job_type) -> Iterator[None]:
	"""Around the insert of a document, which cannot answer with another one: a duplicate is refused."""
	claims = claims_of(document, job_type)
	if not claims and not document.unique_key:
		yield
		return
	if holder := document.unique_key and holder_of(document):
		refuse(holder)
	try:
		with foreign.conflicts_named(), foreign.undone_if_refused():
			refuse_if_unwanted(take(claims), REFUSE)
			yield
	except frappe.UniqueValidationError as error:
		if not document.unique_key or UNIQUE_INDEX not in str(error):
			raise
		refuse(holder_now(document))


def follow(job, to_status: str, now: datetime, changes: dict) -> None:
	"""A job moves: the key that it was given says so. Costs a job without one nothing."""
	status = STATUSES[to_status]
	if not job.get("idempotency_key") or status == STATUSES[job.status] or not is_given(job):
		return
	columns = {"status": status, "modified": now}
	if to_status == states.COMPLETED:
		columns |= {"result_ref": changes.get("output_reference") or job.name, "error_ref": None}
	elif status in ("failed", "dead"):
		columns["error_ref"] = job.name
	assignments = ", ".join(f"`{column}` = %s" for column in columns)
	statement = f"update `tab{DOCTYPE}` set {assignments} where background_job = %s"
	statements.execute(statement, [*columns.values(), job.name])


def hand_over(from_job: str, to_job: str) -> None:
	"""A successor takes over the keys of the job that failed, and has yet to run."""
	statements.execute(
		f"""update `tab{DOCTYPE}` set background_job = %s, status = 'pending',
		job_id = (select job_id from `tabBackground Job` where name = %s) where background_job = %s""",
		(to_job, to_job, from_job),
	)


def forget_all_but_answers(jobs: list[str]) -> None:
	"""Jobs are cleaned up: the keys of those that succeeded go on to answer, for as long as they live."""
	statements.execute(
		f"""delete from `tab{DOCTYPE}` where background_job in ({", ".join(["%s"] * len(jobs))})
		and (kind = %s or coalesce(status, '') <> %s)""",
		[*jobs, WINDOW, SUCCEEDED],
	)


@database.own_transaction
def note_seen(job_names: list[str]) -> None:
	"""A caller was answered with these jobs. Afterwards, so that no submit waits for another's note."""
	free = f"select name from `tab{DOCTYPE}` where background_job = %s for update skip locked"
	for job_name in sorted(set(job_names)):
		for row in statements.fetch(free, (job_name,)):
			statements.update(DOCTYPE, row.name, {"last_seen_at": clock.now()})


def _claim(job, kind: str, key: str, seconds: int, parameters: str | None) -> Claim:
	of_parameters = fingerprints.params_hash(job, parameters) if kind == IDEMPOTENCY_KEY else key
	return Claim(job, kind, key, fingerprints.exact_digest([kind, key]), of_parameters, seconds)


def _take(claims: list[Claim], utc: datetime) -> dict[str, str]:
	"""Claims of one kind: by a new row, or by a row whose job or time is over; else its job answers."""
	found = _find(claims)
	firsts: dict[str, Claim] = {}
	answers, lost = {}, []
	for claim in claims:
		first = firsts.setdefault(claim.key_hash, claim)
		if first is not claim:
			answers[claim.job.name] = _answer(claim, first.params_hash, first.job.name)
	for key_hash, row in found.items():
		claim = firsts.pop(key_hash)
		if _is_answer(row):
			answers[claim.job.name] = _answer(claim, row.params_hash, row.background_job)
		elif not _take_over(claim, row, utc):
			lost.append(claim)
	lost += _insert(list(firsts.values()), utc)
	return answers | (_answers_of_winners(lost) if lost else {})


def _is_answer(row) -> bool:
	"""A key does not expire before its job has ended, and outlives the job's row. A window does neither."""
	is_key = row.kind == IDEMPOTENCY_KEY
	if row.job_status is None:
		return bool(row.is_fresh) and is_key and row.status == SUCCEEDED
	is_alive = is_key and row.job_status in states.ACTIVE
	return row.job_status not in WITHOUT_ANSWER and (is_alive or bool(row.is_fresh))


def _answer(claim: Claim, params_hash: str, job_name: str) -> str:
	if params_hash != claim.params_hash:
		message = _("The idempotency key {0} was used for {1}, with other parameters.")
		throw(message.format(claim.key, job_name), KeyConflict)
	return job_name


def _find(claims: list[Claim], how: str = "") -> dict:
	"""The rows that stand for these claims, by their hash."""
	hashes, found = list({claim.key_hash for claim in claims}), []
	for start in range(0, len(hashes), ROWS_AT_ONCE):
		some = hashes[start : start + ROWS_AT_ONCE]
		found += statements.fetch(
			f"""select k.name, k.kind, k.status, k.key_hash, k.params_hash, k.background_job,
			job.status as job_status, k.expires_at > utc_timestamp(6) as is_fresh from `tab{DOCTYPE}` k
			left join `tabBackground Job` job on job.name = k.background_job
			where k.organization = %s and k.key_hash in ({", ".join(["%s"] * len(some))}) {how}""",
			[claims[0].job.organization, *some],
		)
	return {row.key_hash: row for row in found}


def _insert(claims: list[Claim], utc: datetime) -> list[Claim]:
	"""Writes a row for each; returns those whose row somebody else wrote in the meantime."""
	lost = []
	# in one order, so that two batches wait for each other at most once
	claims = sorted(claims, key=lambda claim: claim.key_hash)
	for start in range(0, len(claims), ROWS_AT_ONCE):
		some = claims[start : start + ROWS_AT_ONCE]
		written = statements.insert_missing(DOCTYPE, [_row(claim, utc) for claim in some])
		if written < len(some):
			found = _find(some)
			lost += [claim for claim in some if not _is_ours(claim, found.get(claim.key_hash))]
	return lost


def _is_ours(claim: Claim, row) -> bool:
	return row is not None and row.background_job == claim.job.name


def _row(claim: Claim, utc: datetime) -> dict:
	job = claim.job
	key = {"organization": job.organization, "kind": claim.kind, "idempotency_key": claim.key}
	return rows.new(job.owner_user, job.created_at, key_hash=claim.key_hash, **key, **_held(claim, utc))


def _held(claim: Claim, utc: datetime) -> dict:
	"""The columns of a row that has just been taken."""
	return {
		"params_hash": claim.params_hash,
		"status": STATUSES[states.PENDING],
		"background_job": claim.job.name,
		"job_id": claim.job.job_id,
		"first_seen_at": claim.job.created_at,
		"last_seen_at": claim.job.created_at,
		"expires_at": utc + timedelta(seconds=claim.seconds),
	}


def _take_over(claim: Claim, row, utc: datetime) -> bool:
	"""Unless somebody else has done so since it was read."""
	columns = {**_held(claim, utc), "result_ref": None, "error_ref": None}
	columns |= {"owner": claim.job.owner_user, "modified": claim.job.created_at}
	return statements.update(DOCTYPE, row.name, columns, {"background_job": row.background_job})


def _answers_of_winners(lost: list[Claim]) -> dict[str, str]:
	"""Who was quicker. Where the server does not let us look past our snapshot, all must be done again."""
	found = _find(lost)
	if hidden := [claim for claim in lost if claim.key_hash not in found and _can_look_past_snapshot()]:
		found |= _find(hidden, AS_IT_IS_NOW)
	answers = {}
	for claim in lost:
		row = found.get(claim.key_hash)
		if row is None or not _is_answer(row):
			raise SubmitConflict(_("The same is being submitted by somebody else; roll back and try again."))
		answers[claim.job.name] = _answer(claim, row.params_hash, row.background_job)
	return answers


def _let_go(claims: list[Claim], answers: dict[str, str]) -> None:
	"""Jobs that are not needed after all keep nothing that they took before that was known."""
	several = {claim.job.name for claim in claims if claim.kind == IDEMPOTENCY_KEY}
	several &= {claim.job.name for claim in claims if claim.kind == WINDOW} & answers.keys()
	for name in sorted(several):
		statements.execute(f"delete from `tab{DOCTYPE}` where background_job = %s", (name,))


def _last(answers: dict[str, str], name: str) -> str:
	while name in answers:
		name = answers[name]
	return name


def _can_look_past_snapshot() -> bool:
	"""PostgreSQL never does in a transaction with a snapshot; one without has seen everything already."""
	return frappe.db.db_type == "mariadb"
