"""Leases: which worker holds a running job, and until when. Only the holder may finish it."""

import secrets
from datetime import datetime, timedelta

from dartwing_jobs.engine import database, statements


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
def renew(job_name: str, lease_token: str, seconds: float) -> bool:
	"""Another lease time; False when the job is no longer ours."""
	until = database.utc_now() + timedelta(seconds=seconds)
	return statements.update(
		"Background Job", job_name, {"lease_expires_at": until}, guard={"lease_token": lease_token}
	)
