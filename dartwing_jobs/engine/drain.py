"""A worker's answer to the bell: claims due jobs of its RQ queue and runs them one after another."""

import time

import frappe

from dartwing_jobs import settings
from dartwing_jobs.engine import attempt, bell, database, lease, promote, sweep
from dartwing_jobs.engine.watchdog import Watchdog

# how long one answer may go on before the worker looks at its other queues
SLICE_SECONDS = 60
# how long a drain that ran dry waits for more: the next submit finds a warm worker
LINGER_SECONDS = 3
# while it does, it listens to the bell this often, and looks for what has fallen due once
LISTEN_SECONDS = 0.02
LOOK_SECONDS = 1
CLAIM_AT_ONCE = 4


def answer(rq_queue: str) -> None:
	"""What a ring enqueues: works until nothing is due, or its slice is over and it rings for the rest."""
	bell.answered(rq_queue)
	frappe.set_user("Administrator")
	database.read_committed()
	job_queues = queues_of(rq_queue)
	until = time.monotonic() + SLICE_SECONDS
	watchdog = Watchdog()
	try:
		sweep.reap_expired()
		while work_once(job_queues, watchdog) or _more_comes(rq_queue, job_queues):
			if time.monotonic() > until or bell.is_wanted_elsewhere(rq_queue):
				bell.ring(job_queues[0])
				return
	finally:
		watchdog.stop()


def drain(job_queues: list[str]) -> int:
	"""Runs everything that is due now; returns how many jobs were run."""
	total = 0
	while done := work_once(job_queues):
		total += done
	return total


def work_once(job_queues: list[str], watchdog: Watchdog | None = None) -> int:
	"""Promotes, claims a few, runs them; returns how many."""
	if not job_queues or not settings.is_online():
		return 0
	promote.promote_due(job_queues)
	claimed = lease.claim(job_queues, CLAIM_AT_ONCE)
	for number, job in enumerate(claimed):
		if bell.is_stopping():
			lease.give_back(claimed[number:])
			return number
		attempt.run(job, watchdog)
	return len(claimed)


def queues_of(rq_queue: str) -> list[str]:
	filters = {"rq_queue": rq_queue, "paused": 0}
	return frappe.get_all("Job Queue", filters=filters, pluck="name", order_by="name")


def _more_comes(rq_queue: str, job_queues: list[str]) -> bool:
	"""Lingers, so that the next submit finds a warm worker; True when there is something to do."""
	until, look_at = time.monotonic() + LINGER_SECONDS, time.monotonic() + LOOK_SECONDS
	try:
		while time.monotonic() < until and not bell.is_wanted_elsewhere(rq_queue):
			if bell.heard(rq_queue):
				return True
			if time.monotonic() > look_at and promote.promote_due(job_queues):
				return True
			time.sleep(LISTEN_SECONDS)
	finally:
		bell.fall_asleep(rq_queue)
	return False
