"""Which queue a job may wait in: its type's, its category's, one that an operator made; not just any."""

from frappe import _

from dartwing_jobs.engine.rules import policies
from dartwing_jobs.engine.rules.categories import GENERAL, MAINTENANCE
from dartwing_jobs.engine.rules.queues import (
	CRITICAL_QUEUE,
	DEAD_LETTERS,
	MAINTENANCE_QUEUE,
	STANDARD_QUEUE_NAMES,
)
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.messages import throw

# what a schedule makes of these is housekeeping, and keeps out of the way of what people wait for
HOUSEKEEPING = frozenset({GENERAL, MAINTENANCE})


def queue_of_scheduled(job_type) -> str:
	"""Where the jobs wait that schedules make."""
	category = policies.category_of(job_type)
	return job_type.job_queue or (MAINTENANCE_QUEUE if category.name in HOUSEKEEPING else category.job_queue)


def check(job_queue: str, job_type, is_scheduled: bool = False) -> None:
	"""Raises when a job of this type must not wait in this queue."""
	if job_queue == CRITICAL_QUEUE and not job_type.allow_critical:
		message = _("Job Type {0} may not use {1}. An administrator can allow it on the Job Type.")
		throw(message.format(job_type.name, job_queue), InvalidJobError)
	if not is_open(job_queue, job_type) and not (is_scheduled and job_queue == queue_of_scheduled(job_type)):
		message = _("Jobs of type {0} do not wait in {1}: leave the queue out, or name {2}.")
		own = job_type.job_queue or policies.category_of(job_type).job_queue
		throw(message.format(job_type.name, job_queue, own), InvalidJobError)


def is_open(job_queue: str, job_type) -> bool:
	if job_queue == DEAD_LETTERS:
		return False
	if job_queue == CRITICAL_QUEUE:
		return bool(job_type.allow_critical)
	if job_queue not in STANDARD_QUEUE_NAMES:
		return True
	return job_queue in (job_type.job_queue, policies.category_of(job_type).job_queue)
