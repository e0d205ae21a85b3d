"""The doorbell: tells workers that something is due. A lost ring loses nothing, sweeps ring again."""

import frappe
from frappe.utils.background_jobs import get_queue, get_redis_conn
from rq import Worker, get_current_job

DRAIN = "dartwing_jobs.engine.drain.answer"
# a ring that nobody answered may be repeated after this
RING_SECONDS = 5
# a drain that lingers says so this often; while it does, a ring needs no message
AWAKE_SECONDS = 1
# no job is ended by RQ: the engine's own deadlines end them long before
MESSAGE_SECONDS = 24 * 3600


def ring_after_commit(job_queue: str) -> None:
	frappe.db.after_commit.add(lambda: ring(job_queue))


def ring(job_queue: str) -> None:
	"""Wakes a worker for this queue: one that lingers, or by a message, unless one is on its way already."""
	try:
		_ring(frappe.get_cached_doc("Job Queue", job_queue).rq_queue)
	except Exception:  # Redis may be down: the job is committed, and the next sweep rings again
		frappe.logger("dartwing_jobs").warning("Could not ring for %s", job_queue, exc_info=True)


def _ring(rq_queue: str) -> None:
	redis = get_redis_conn()
	redis.set(_key("bell", rq_queue), 1, ex=RING_SECONDS)
	if not redis.exists(_key("awake", rq_queue)) and redis.set(
		_key("sent", rq_queue), 1, nx=True, ex=RING_SECONDS
	):
		frappe.enqueue(DRAIN, queue=rq_queue, rq_queue=rq_queue, timeout=MESSAGE_SECONDS)


def answered(rq_queue: str) -> None:
	"""A drain has started: from here on another message may be sent."""
	get_redis_conn().delete(_key("sent", rq_queue), _key("bell", rq_queue))


def heard(rq_queue: str) -> bool:
	"""Asked by a drain that lingers: has somebody rung since?"""
	redis = get_redis_conn()
	redis.set(_key("awake", rq_queue), 1, ex=AWAKE_SECONDS)
	return bool(redis.delete(_key("bell", rq_queue)))


def fall_asleep(rq_queue: str) -> None:
	get_redis_conn().delete(_key("awake", rq_queue))


def is_wanted_elsewhere(rq_queue: str) -> bool:
	"""Whether a drain should leave: its worker was asked to stop, or another message waits for it."""
	return is_stopping() or (get_current_job() is not None and get_queue(rq_queue).count > 0)


def is_stopping() -> bool:
	"""Whether this worker was asked to stop: RQ tells only the parent, its horse finds it in Redis."""
	job = get_current_job()
	if job is None:
		return False
	worker = f"{Worker.redis_worker_namespace_prefix}{job.worker_name}"
	return bool(job.connection.hexists(worker, "shutdown_requested_date"))


def _key(kind: str, rq_queue: str) -> str:
	return f"dartwing_jobs:{kind}:{frappe.local.site}:{rq_queue}"
