"""Leases: which worker holds a job, and until when. Only the holder may begin it and finish it."""

import secrets
from datetime import datetime, timedelta

from dartwing_jobs.engine import database, statements, states


def new_lease(claimed_at: datetime, seconds: float) -> dict:
	"""The columns that give a job to a worker, from the database's clock on."""
	return {
		"lease_token": secrets.token_hex(16),
		"lease_expires_at": claimed_at + timedelta(seconds=seconds),
	}


def is_held(job_name: str, lease_token: str) -> bool:
	"""Whether the stored job still has this lease; asked on a clean connection."""
	database.rollback()
	statement = "select name from `tabBackground Job` where name = %s and lease_token = %s"
	return bool(statements.fetch(statement, (job_name, lease_token)))


@database.own_transaction
def renew(job_names: list[str], lease_token: str, seconds: float) -> set[str]:
	"""Another lease time; returns those of the jobs that are still ours."""
	held = {row.name for row in _read(job_names, lease_token)}
	if held:
		until = database.utc_now() + timedelta(seconds=seconds)
		statements.execute(
			f"update `tabBackground Job` set lease_expires_at = %s where {_which(held)}",
			(until, lease_token, *held),
		)
	return held


def hold(jobs: list, seconds: float) -> str:
	"""Gives jobs that are locked to a worker, which begins them one by one; returns their token.

	They keep their places in line, in case that they are given back.
	"""
	columns = new_lease(jobs[0].claimed_at, seconds)
	assignments = ", ".join(f"`{column}` = %s" for column in columns)
	names = [job.name for job in jobs]
	statements.execute(
		f"update `tabBackground Job` set line = null, {assignments} where name in ({_places(names)})",
		[*columns.values(), *names],
	)
	return columns["lease_token"]


def waiting_of(job_names: list[str], lease_token: str) -> set[str]:
	"""Those of these jobs that are still ours, and Queued: the others were canceled, or taken from us."""
	return {row.name for row in _read(job_names, lease_token) if row.status == states.QUEUED}


@database.own_transaction
def give_back(job_names: list[str], lease_token: str, is_doubtful: bool = False) -> int:
	"""Puts jobs that were not begun back to their places; returns how many.

	If it is not known whether one has begun (`is_doubtful`), it is claimed alone next.
	"""
	if not job_names:
		return 0
	mark = ", claim_alone = 1" if is_doubtful else ""
	return statements.execute(
		f"""update `tabBackground Job` set line = job_queue, lease_token = null, lease_expires_at = null{mark}
		where {_which(job_names)} and status = 'Queued'""",
		(lease_token, *job_names),
	)


def _read(job_names: list[str], lease_token: str) -> list:
	statement = f"select name, status from `tabBackground Job` where {_which(job_names)}"
	return statements.fetch(statement, (lease_token, *job_names))


def _which(job_names) -> str:
	return f"lease_token = %s and name in ({_places(job_names)})"


def _places(values) -> str:
	return ", ".join(["%s"] * len(values))
