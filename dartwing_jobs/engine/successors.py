"""Retry mode New Job: a failed job stays as it is, and a new one takes over all that hangs on it."""

import uuid
from datetime import datetime

import frappe

from dartwing_jobs.engine import (
	bell,
	database,
	fingerprints,
	keys,
	log,
	naming,
	order,
	statements,
	states,
	steps,
)

# what belongs to one job alone; everything else of the row is taken over
OWN = {
	"status": states.PENDING,
	"progress": 0,
	"progress_message": None,
	"output_reference": None,
	"error_message": None,
	"error_type": None,
	"started_at": None,
	"completed_at": None,
	"canceled_at": None,
	"canceled_by": None,
	"cancel_requested_at": None,
	"cancel_requested_by": None,
	**order.OUT_OF_LINE,
	**order.NOT_HELD,
	"lease_token": None,
	"lease_expires_at": None,
	"cost_cents": 0,
}


def take_over(job, due: datetime, now: datetime) -> str:
	"""Makes the successor of a job that has just failed, due at a moment; returns its name.

	Keys, group, place in it, children and the count of retries move over in the same transaction.
	"""
	(failed,) = statements.fetch("select * from `tabBackground Job` where name = %s", (job.name,))
	successor = frappe._dict(failed, **OWN)
	successor |= {
		"name": naming.next_job_name(),
		"job_id": str(uuid.uuid4()),
		"creation": now,
		"modified": now,
		"created_at": now,
		"retry_of": job.name,
		"retry_count": failed.retry_count + 1,
		"next_retry_at": database.as_site_time(due),
		"run_at": due,
		"input_parameters": statements.as_json(failed.input_parameters),
		"input_checksums": statements.as_json(failed.input_checksums),
	}
	if not keys.is_given(failed):
		successor.idempotency_key = fingerprints.key_of_its_own(successor)
	# a unique key has one holder at a time
	statements.update(
		"Background Job", job.name, {"unique_key": None, "next_retry_at": None, "modified": now}
	)
	statements.insert("Background Job", [successor])
	_hand_over(job.name, successor["name"])
	told = {"now": now, "actor": successor.owner_user, "message": f"Retry of {job.name}"}
	log.write(successor, states.CREATION.event, None, states.PENDING, **told)
	bell.ring_when_due_after_commit(job.job_queue, due)
	return successor["name"]


def latest(job_name: str) -> str:
	"""The end of a chain: the job that now stands for this one.

	What somebody retried by hand was dead or canceled: its retry is another job, not a link of the chain.
	"""
	seen = [job_name]
	while following := statements.fetch(
		"""select successor.name from `tabBackground Job` successor
		join `tabBackground Job` failed on failed.name = successor.retry_of
		where successor.retry_of = %s and failed.status in ('Failed', 'Timed Out')""",
		(seen[-1],),
	):
		seen.append(following[0].name)
	return seen[-1]


def _hand_over(old: str, new: str) -> None:
	"""Children wait for the new one, keys lead to it, and it remembers the steps that were done."""
	steps.hand_over(old, new)
	statements.execute("update `tabBackground Job` set depends_on = %s where depends_on = %s", (new, old))
	keys.hand_over(old, new)
