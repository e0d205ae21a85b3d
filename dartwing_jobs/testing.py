"""For tests of apps that submit jobs: run them here and now, without workers, and let time pass at once.

	job = submit("send_invoice", {"invoice": "INV-1"}, organization="Acme")
	assert run_job(job.name).status == "Completed"

Everything that is submitted and run is committed, as it is in production: use names of your own in each test.
"""

import frappe

from dartwing_jobs import settings
from dartwing_jobs.engine import attempt, claim, database, drain, promote, statements
from dartwing_jobs.engine.facts import Facts
from dartwing_jobs.engine.rules import routes


def run_job(job_name: str):
	"""Runs one job once, here, whatever waits before it; returns it as it is afterwards."""
	fall_due(job_name)
	started = start_job(job_name)
	if started is None:
		raise AssertionError(f"{job_name} does not wait to be run: {_where_it_is(job_name)}")
	attempt.run(started)
	return frappe.get_doc("Background Job", job_name)


@database.own_transaction
def start_job(job_name: str) -> attempt.Attempt | None:
	"""Takes a job that is in line as a worker would, without running it; None when it is not in line."""
	job = claim.take(job_name)
	return job and attempt.start(job, settings.lease_seconds(), Facts())


def run_all_due(*job_queues: str) -> int:
	"""Runs what is due in these queues, or in all, until nothing is; returns how many attempts that took."""
	frappe.db.commit()  # nosemgrep: workers, too, see only what was committed
	served = [queue for queues_of_one in routes.by_rq_queue().values() for queue in queues_of_one]
	return drain.drain(list(job_queues) or served)


@database.own_transaction
def fall_due(job_name: str) -> None:
	"""Lets the time pass that a delayed job or a retry waits for, and puts it in line."""
	statements.execute(
		"update `tabBackground Job` set run_at = utc_timestamp(6) where name = %s and run_at is not null",
		(job_name,),
	)
	promote.promote_due(frappe.get_all("Background Job", filters={"name": job_name}, pluck="job_queue"))


@database.own_transaction
def lose_worker(job_name: str) -> None:
	"""Lets the time pass after which a silent worker has lost its job; the next sweep takes it back."""
	statements.execute(
		"""update `tabBackground Job` set lease_expires_at = '2020-01-01'
		where name = %s and lease_token is not null""",
		(job_name,),
	)


def _where_it_is(job_name: str) -> str:
	rows = statements.fetch("select status, depends_on from `tabBackground Job` where name = %s", (job_name,))
	if not rows:
		return "there is no such job"
	return f"it is {rows[0].status}" + (f" and depends on {rows[0].depends_on}" if rows[0].depends_on else "")
